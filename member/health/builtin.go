package health

import (
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	claim           = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	service         = schema.GroupKind{Kind: "Service"}
	admissionPolicy = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}
)

// builtIn judges a kind for which kstatus has rules.
func builtIn(obj *unstructured.Unstructured) Verdict {
	if v, judged := beyondKstatus(obj); judged {
		return v
	}
	result, err := compute(obj)
	if err != nil {
		return verdict(hubv1.HealthUnknown, ReasonStatusUnreadable, err.Error())
	}
	reason := string(result.Status)
	if len(result.Conditions) > 0 && result.Conditions[0].Reason != "" {
		reason = result.Conditions[0].Reason
	}
	switch result.Status {
	case status.CurrentStatus:
		// kstatus reports Current for a Job as soon as it has started.
		if obj.GroupVersionKind().GroupKind() == job && !holds(conditionsOf(obj), "Complete") {
			return verdict(hubv1.HealthProgressing, ReasonJobRunning, result.Message)
		}
		return Verdict{Health: hubv1.HealthHealthy}
	case status.FailedStatus:
		return verdict(hubv1.HealthDegraded, reason, result.Message)
	case status.InProgressStatus:
		return withCause(obj, verdict(hubv1.HealthProgressing, reason, result.Message))
	}
	return verdict(hubv1.HealthUnknown, reason, result.Message)
}

// beyondKstatus judges the states that kstatus does not know.
func beyondKstatus(obj *unstructured.Unstructured) (v Verdict, judged bool) {
	switch obj.GroupVersionKind().GroupKind() {
	case claim:
		if phase := statusOf(obj)["phase"]; phase == "Lost" {
			return verdict(hubv1.HealthDegraded, "Lost", "phase is Lost: the volume of the claim is gone"), true
		}
	case service:
		if kind := specOf(obj)["type"]; kind == "LoadBalancer" && isEmpty(at(obj.Object, []string{"status", "loadBalancer", "ingress"})) {
			return verdict(hubv1.HealthProgressing, ReasonNoAddress, "the load balancer has no address yet"), true
		}
	}
	return Verdict{}, false
}

// withCause adds the cause to a verdict of kstatus, which counts replicas only: pods that the API server refuses, for
// example by a quota, or a rollout that its spec pauses.
func withCause(obj *unstructured.Unstructured, v Verdict) Verdict {
	for _, c := range conditionsOf(obj) {
		if c.kind == "ReplicaFailure" && c.status == "True" && c.message != "" {
			return verdict(v.Health, c.reason, fmt.Sprintf("%s (%s)", c.message, v.Message))
		}
	}
	if paused(obj) {
		return verdict(v.Health, ReasonPausedBySpec, fmt.Sprintf("it is paused by its spec (%s)", v.Message))
	}
	return v
}

// byTypeChecks judges a ValidatingAdmissionPolicy. An expression that does not fit the schema of a kind fails for each
// object of the kind.
func byTypeChecks(obj *unstructured.Unstructured) (v Verdict, judged bool) {
	if obj.GroupVersionKind().GroupKind() != admissionPolicy {
		return Verdict{}, false
	}
	warnings, _ := at(obj.Object, []string{"status", "typeChecking", "expressionWarnings"}).([]any)
	if len(warnings) == 0 {
		return Verdict{}, false
	}
	first, _ := warnings[0].(map[string]any)
	message := strings.TrimSuffix(fmt.Sprintf("%v: %v", first["fieldRef"], first["warning"]), ": <nil>")
	return verdict(hubv1.HealthDegraded, ReasonTypeCheckFailed, message), true
}

// compute calls kstatus and recovers from its panics, which a field of an unexpected type can cause.
func compute(obj *unstructured.Unstructured) (result *status.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("reading the status: %v", r)
		}
	}()
	result, err = status.Compute(obj)
	if err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	return result, nil
}
