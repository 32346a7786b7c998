// Package health judges one member object and projects its status, from the object alone: no client, no clock, no memory.
//
// Assess judges built-in kinds by kstatus, and custom resources by its generic rules and what they leave open:
//   - a resource whose kind has a status and that carries none is Progressing: its operator has not seen it yet;
//   - conditions are read by the conventions of the ecosystem, the worst one wins, and a condition that lags behind
//     metadata.generation speaks of an older spec;
//   - Degraded is kept for objects that say that they cannot get there. Pods that are not ready say no such thing: an operator
//     reports the same while a set starts, while it rolls and after pods were lost, and telling these apart needs a clock.
//
// Pods are not judged: kstatus reads the clock for them. A kind without status is Healthy when it exists.
package health

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Reasons that are this package's own; all others are taken from the object.
const (
	ReasonTerminating           = "Terminating"
	ReasonStatusMissing         = "StatusMissing"
	ReasonStatusUnreadable      = "StatusUnreadable"
	ReasonNotJudged             = "NotJudged"
	ReasonGenerationNotObserved = "GenerationNotObserved"
	ReasonJobRunning            = "JobRunning"
)

const (
	maxMessage = 256 // characters, as the row's
	maxReason  = 64
)

// Verdict on one object. Reason and Message are empty if it is Healthy.
type Verdict struct {
	Health  hubv1.Health
	Reason  string
	Message string
}

var (
	pod = schema.GroupKind{Kind: "Pod"}
	job = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// Assess judges an object. hasStatusSchema says that its kind is a custom resource whose schema has a status.
func Assess(obj *unstructured.Unstructured, hasStatusSchema bool) Verdict {
	switch {
	case obj == nil || obj.Object == nil:
		return verdict(hubv1.HealthUnknown, ReasonStatusUnreadable, "there is no object to judge")
	case terminating(obj):
		return verdict(hubv1.HealthProgressing, ReasonTerminating, "the object is being deleted")
	case obj.GroupVersionKind().GroupKind() == pod:
		return verdict(hubv1.HealthUnknown, ReasonNotJudged, "pods are not judged")
	}
	if observed := ownObservedGeneration(obj); observed >= 0 && observed < obj.GetGeneration() {
		return notObserved(observed, obj.GetGeneration())
	}
	if status.GetLegacyConditionsFn(obj) != nil {
		return builtIn(obj)
	}
	return customResource(obj, hasStatusSchema)
}

// builtIn judges a kind for which kstatus has rules.
func builtIn(obj *unstructured.Unstructured) Verdict {
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
		// kstatus calls a job Current once it has started.
		if obj.GroupVersionKind().GroupKind() == job && !holds(conditionsOf(obj), "Complete") {
			return verdict(hubv1.HealthProgressing, ReasonJobRunning, result.Message)
		}
		return Verdict{Health: hubv1.HealthHealthy}
	case status.FailedStatus:
		return verdict(hubv1.HealthDegraded, reason, result.Message)
	case status.InProgressStatus:
		return verdict(hubv1.HealthProgressing, reason, result.Message)
	}
	return verdict(hubv1.HealthUnknown, reason, result.Message)
}

// compute calls kstatus, which asserts types of content that no schema has checked.
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

// customResource judges a kind that only its conventions are known of. The generic rules of kstatus are among them, read here from
// whatever part of the content is well-formed: kstatus gives up on an object as soon as one condition is not.
func customResource(obj *unstructured.Unstructured, hasStatusSchema bool) Verdict {
	if v, judged := byConditions(conditionsOf(obj), obj.GetGeneration()); judged {
		return v
	}
	if v, judged := byPhase(statusOf(obj)); judged {
		return v
	}
	if hasStatusSchema && len(statusOf(obj)) == 0 {
		return verdict(hubv1.HealthProgressing, ReasonStatusMissing, "nothing has written the object's status yet")
	}
	return Verdict{Health: hubv1.HealthHealthy}
}

func notObserved(observed, generation int64) Verdict {
	return verdict(hubv1.HealthProgressing, ReasonGenerationNotObserved,
		fmt.Sprintf("the status speaks of generation %d, the object is at %d", observed, generation))
}

func terminating(obj *unstructured.Unstructured) bool {
	// Not obj.GetDeletionTimestamp: an unreadable time counts, too.
	meta, _ := obj.Object["metadata"].(map[string]any)
	return meta["deletionTimestamp"] != nil && meta["deletionTimestamp"] != ""
}

func statusOf(obj *unstructured.Unstructured) map[string]any {
	s, _ := obj.Object["status"].(map[string]any)
	return s
}

func verdict(h hubv1.Health, reason, message string) Verdict {
	return Verdict{Health: h, Reason: camel(reason), Message: cut(message, maxMessage)}
}

// camel makes a word of the object fit for a row's reason.
func camel(reason string) string {
	word := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, reason)
	return word[:min(len(word), maxReason)]
}

// cut keeps the first n characters on one line.
func cut(message string, n int) string {
	message = strings.Join(strings.Fields(strings.ToValidUTF8(message, "?")), " ")
	if utf8.RuneCountInString(message) <= n {
		return message
	}
	return string([]rune(message)[:n-1]) + "…"
}
