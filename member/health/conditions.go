package health

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// condition is one entry of status.conditions.
type condition struct {
	kind, status, reason, message string
	observed                      int64 // observedGeneration; -1 if there is none
}

// conditionsOf reads the well-formed entries of status.conditions.
func conditionsOf(obj *unstructured.Unstructured) []condition {
	return readConditions(statusOf(obj))
}

func readConditions(status map[string]any) []condition {
	list, _ := status["conditions"].([]any)
	var out []condition
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		c := condition{observed: -1}
		c.kind, _ = m["type"].(string)
		c.status, _ = m["status"].(string)
		if c.kind == "" || c.status == "" {
			continue
		}
		c.reason, _ = m["reason"].(string)
		c.message, _ = m["message"].(string)
		// Zero is what a controller that does not track generations serialises.
		if g, ok := integer(m["observedGeneration"]); ok && g > 0 {
			c.observed = g
		}
		out = append(out, c)
	}
	return out
}

func holds(conditions []condition, kind string) bool {
	return slices.ContainsFunc(conditions, func(c condition) bool { return c.kind == kind && c.status == "True" })
}

// refusing are positive condition types whose False says that the object cannot get there as it is written; the False of
// the other ones is judged by its reason.
var refusing = map[string]bool{"Accepted": true, "Synced": true, "Reconciled": true, "Healthy": true, "Succeeded": true}

// positive condition types: True is good. The order decides which of two equally bad ones is shown.
var positive = []string{"Accepted", "Reconciled", "Synced", "Ready", "Available", "Healthy", "Established", "Programmed", "Succeeded", "Complete"}

// negative condition types: True says that something failed. Those that end in Error or Failure are meant as well.
var negative = []string{"Stalled", "Degraded", "Failed", "Failure"}

// podsNotReady are the reasons of the Prometheus operator's Available condition while it is False or Degraded. They are not a
// failure to reconcile, which it reports in Reconciled.
var podsNotReady = map[string]bool{"NoPodReady": true, "SomePodsNotReady": true, "StatefulSetNotFound": true}

// failing are parts of reasons that tell a failure from a wait.
var failing = []string{"fail", "error", "invalid", "backoff", "denied", "forbidden", "exceeded", "misconfigured"}

// byConditions gives the verdict of the worst condition; judged is false if there is none that it knows.
func byConditions(conditions []condition, generation int64) (v Verdict, judged bool) {
	slices.SortStableFunc(conditions, func(a, b condition) int { return rank(a.kind) - rank(b.kind) })
	v = Verdict{Health: hubv1.HealthHealthy}
	for _, c := range conditions {
		if !known(c.kind) {
			continue
		}
		judged = true
		if c.observed >= 0 && c.observed < generation {
			// The rest of the conditions may be of the old spec, too.
			return notObserved(c.observed, generation), true
		}
		if h := judge(c); worse(h, v.Health) {
			v = explain(h, c)
		}
	}
	// While it is reconciling, False means "not yet"; only a failure that is stated as such counts.
	i := slices.IndexFunc(conditions, func(c condition) bool { return c.kind == "Reconciling" && c.status == "True" })
	failed := slices.ContainsFunc(conditions, func(c condition) bool { return isNegative(c.kind) && c.status == "True" })
	if i >= 0 && !failed {
		return explain(hubv1.HealthProgressing, conditions[i]), true
	}
	return v, judged
}

func judge(c condition) hubv1.Health {
	if isNegative(c.kind) {
		if c.status == "True" {
			return hubv1.HealthDegraded
		}
		return hubv1.HealthHealthy
	}
	switch {
	case c.status == "True":
		return hubv1.HealthHealthy
	case c.status == "Unknown":
		return hubv1.HealthProgressing
	case podsNotReady[c.reason]:
		return hubv1.HealthProgressing
	case c.status == "Degraded" || refusing[c.kind] || saysFailure(c.reason):
		return hubv1.HealthDegraded
	}
	return hubv1.HealthProgressing
}

func explain(h hubv1.Health, c condition) Verdict {
	reason, message := c.reason, c.message
	if reason == "" {
		reason = c.kind + c.status
	}
	if message == "" {
		message = fmt.Sprintf("condition %s is %s", c.kind, c.status)
	}
	return verdict(h, reason, message)
}

func saysFailure(reason string) bool {
	reason = strings.ToLower(reason)
	return slices.ContainsFunc(failing, func(word string) bool { return strings.Contains(reason, word) })
}

func isNegative(kind string) bool {
	return slices.Contains(negative, kind) || strings.HasSuffix(kind, "Error") || strings.HasSuffix(kind, "Failure")
}

func known(kind string) bool { return isNegative(kind) || slices.Contains(positive, kind) }

// rank sorts failures first, then the positive types in their order, then the rest.
func rank(kind string) int {
	if isNegative(kind) {
		return -1
	}
	if i := slices.Index(positive, kind); i >= 0 {
		return i
	}
	return len(positive)
}

func worse(a, b hubv1.Health) bool { return severity(a) > severity(b) }

func severity(h hubv1.Health) int {
	return slices.Index([]hubv1.Health{hubv1.HealthHealthy, hubv1.HealthProgressing, hubv1.HealthDegraded}, h)
}

// phases of objects without conditions, in lower case. A word in neither list says nothing.
var (
	phasesFailed  = []string{"failed", "failure", "error", "degraded", "crashloopbackoff"}
	phasesOnTheir = []string{
		"pending", "creating", "updating", "provisioning", "initializing", "starting", "progressing", "installing", "upgrading",
		"reconciling", "scaling", "deleting", "terminating", "unknown",
	}
)

// byPhase judges the phase or state of a custom resource without conditions.
func byPhase(status map[string]any) (v Verdict, judged bool) {
	for _, field := range []string{"phase", "state"} {
		word, _ := status[field].(string)
		switch {
		case slices.Contains(phasesFailed, strings.ToLower(word)):
			return verdict(hubv1.HealthDegraded, word, fmt.Sprintf("%s is %s", field, word)), true
		case slices.Contains(phasesOnTheir, strings.ToLower(word)):
			return verdict(hubv1.HealthProgressing, word, fmt.Sprintf("%s is %s", field, word)), true
		}
	}
	return Verdict{}, false
}
