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
	severity                      string // Error, Warning or Info, of the operators that know it
	observed                      int64  // observedGeneration; -1 if there is none
}

// perReader are lists of a status with one entry for each of those that read the object, each with conditions of its own: the
// gateways of a route, the targets of a policy.
var perReader = []string{"parents", "ancestors"}

// conditionsOf reads the well-formed entries of status.conditions, and of the conditions of each reader.
func conditionsOf(obj *unstructured.Unstructured) []condition {
	status := statusOf(obj)
	out := readConditions(status)
	for _, name := range perReader {
		readers, _ := status[name].([]any)
		for _, r := range readers {
			entry, _ := r.(map[string]any)
			out = append(out, readConditions(entry)...)
		}
	}
	for i := range out {
		if opposite := opposites[out[i].status]; out[i].kind == "NotReady" && opposite != "" {
			out[i].kind, out[i].status = "Ready", opposite // so say those of Strimzi
		}
	}
	return out
}

var opposites = map[string]string{"True": "False", "False": "True"}

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
		c.severity, _ = m["severity"].(string)
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

// byStatedErrors judges conditions without a status, which hold while they are there: those of Argo CD's Applications.
func byStatedErrors(status map[string]any) (v Verdict, judged bool) {
	list, _ := status["conditions"].([]any)
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		kind, _ := m["type"].(string)
		if _, has := m["status"]; has || !strings.HasSuffix(kind, "Error") {
			continue
		}
		message, _ := m["message"].(string)
		return verdict(hubv1.HealthDegraded, kind, message), true
	}
	return Verdict{}, false
}

// Types of conditions. Those of positive, and those that a column of the kind names, speak for the whole object: True is good. The order
// decides which of two equally bad ones is shown.
var positive = []string{
	"Accepted", "ResolvedRefs", "Reconciled", "Synced", "Installed", "Ready", "Available", "Healthy", "Established", "Programmed", "Succeeded",
	"Valid", "Complete",
}

// refusing are positive types whose False says that the object cannot get there as it is written, unless the reason is a wait; the
// False of the other ones is judged by its reason.
var refusing = map[string]bool{"Accepted": true, "ResolvedRefs": true, "Synced": true, "Reconciled": true, "Succeeded": true, "Valid": true}

// negative types: True says that something failed. Those with these endings and beginning are meant as well.
var (
	negative        = []string{"Stalled", "Degraded", "Failed", "Failure", "Fallback", "Unhealthy", "InvalidSpec"}
	negativeEndings = []string{"Error", "Failure", "Failed"}
	failedPrefix    = "Failed"
)

// underway types: True says that something is being done, False with a reason of failure that it did not come to its end.
var underway = []string{
	"Reconciling", "Progressing", "RollingOut", "ScalingUp", "ScalingDown", "Updating", "Upgrading", "Deleting", "Remediating", "Installing",
	"Provisioning", "Migrating",
}

// attempts are types that say nothing of the object while they are True, which goes on with what it has; False with a reason of failure
// says that the last attempt failed.
var attempts = []string{"Issuing"}

// partEndings are endings of positive types that speak for a part of the object. They are asked only if nothing speaks for the whole:
// who says Ready has weighed the parts.
var partEndings = []string{"Ready", "Available", "Healthy", "Synced", "Succeeded", "Success", "Complete", "Reachable", "Active"}

// podsNotReady are the reasons of the Prometheus operator's Available condition while it is False or Degraded. They are not a
// failure to reconcile, which it reports in Reconciled.
var podsNotReady = map[string]bool{"NoPodReady": true, "SomePodsNotReady": true, "StatefulSetNotFound": true}

// Parts of reasons, in lower case, that tell a failure from a wait.
var (
	failing = []string{
		"fail", "error", "invalid", "backoff", "denied", "forbidden", "exceeded", "misconfigured", "unhealthy", "aborted", "rejected",
		"unsupported", "unrecoverable", "notallowed", "notpermitted",
	}
	waiting = []string{"pending", "waiting", "progress", "creating", "reconciling", "notreconciled", "initializing"}
	settled = []string{"available", "complete", "succeeded", "asexpected", "uptodate", "finished"}
)

// role is what a type of condition says.
type role int

const (
	roleNone role = iota
	roleNegative
	roleWhole
	roleUnderway
	roleAttempt
	rolePart
)

// roleOf a type of condition, of a kind with these columns.
func roleOf(kind string, c Conventions) role {
	switch {
	case slices.Contains(negative, kind), strings.HasPrefix(kind, failedPrefix), slices.ContainsFunc(negativeEndings, func(end string) bool { return strings.HasSuffix(kind, end) }):
		return roleNegative
	case slices.Contains(positive, kind), slices.ContainsFunc(c.Columns, func(column Column) bool { return column.Condition == kind }):
		return roleWhole
	case slices.Contains(underway, kind):
		return roleUnderway
	case slices.Contains(attempts, kind):
		return roleAttempt
	case strings.HasPrefix(kind, "No"), strings.HasPrefix(kind, "Un"):
		return roleNone
	case slices.ContainsFunc(partEndings, func(end string) bool { return strings.HasSuffix(kind, end) }):
		return rolePart
	}
	return roleNone
}

// byConditions gives the verdict of the worst condition; judged is false if there is none that it knows.
func byConditions(obj *unstructured.Unstructured, generation int64, conventions Conventions) (v Verdict, judged bool) {
	conditions := conditionsOf(obj)
	slices.SortStableFunc(conditions, func(a, b condition) int { return rank(a.kind) - rank(b.kind) })
	whole := slices.ContainsFunc(conditions, func(c condition) bool { return roleOf(c.kind, conventions) == roleWhole })
	counts := func(r role) bool { return r != roleNone && (r != rolePart || !whole) }
	// Where neither the status nor those that count say of which generation they are, the others speak for them.
	dated := ownObservedGeneration(obj) >= 0 || slices.ContainsFunc(conditions, func(c condition) bool { return c.observed >= 0 && counts(roleOf(c.kind, conventions)) })
	v = Verdict{Health: hubv1.HealthHealthy}
	failed := false // by its own words
	for _, c := range conditions {
		r := roleOf(c.kind, conventions)
		if c.observed >= 0 && c.observed < generation && (counts(r) || !dated) {
			// The rest of the conditions may be of the old spec, too.
			return notObserved(c.observed, generation), true
		}
		if !counts(r) {
			continue
		}
		judged = true
		h := judge(c, r)
		failed = failed || r == roleNegative && h == hubv1.HealthDegraded
		if worse(h, v.Health) {
			v = explain(h, c)
		}
	}
	// While it is reconciling, False means "not yet"; only a failure that is stated as such counts.
	i := slices.IndexFunc(conditions, func(c condition) bool { return c.kind == "Reconciling" && c.status == "True" })
	if i >= 0 && !failed {
		return explain(hubv1.HealthProgressing, conditions[i]), true
	}
	return v, judged
}

func judge(c condition, r role) hubv1.Health {
	switch r {
	case roleNegative:
		if c.status == "True" {
			return hubv1.HealthDegraded
		}
		return hubv1.HealthHealthy
	case roleUnderway, roleAttempt:
		return judgeUnderway(c, r)
	}
	switch {
	case c.status == "True":
		return hubv1.HealthHealthy
	case r == rolePart && c.severity == "Info":
		return hubv1.HealthHealthy // by its own words no part of what makes the object ready
	case c.status == "Unknown":
		return hubv1.HealthProgressing
	case podsNotReady[c.reason]:
		return hubv1.HealthProgressing
	case c.status == "Degraded" || c.severity == "Error" || saysFailure(c.reason):
		return hubv1.HealthDegraded
	case refusing[c.kind] && !contains(waiting, c.reason):
		return hubv1.HealthDegraded
	}
	return hubv1.HealthProgressing
}

func judgeUnderway(c condition, r role) hubv1.Health {
	switch {
	case c.status == "False" && saysFailure(c.reason):
		return hubv1.HealthDegraded
	case c.status == "False", r == roleAttempt, contains(settled, c.reason):
		return hubv1.HealthHealthy
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
	return strings.HasPrefix(reason, "Err") || contains(failing, reason)
}

// contains is true if the reason has one of the words in it.
func contains(words []string, reason string) bool {
	reason = strings.ToLower(reason)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(reason, word) })
}

// rank sorts failures first, then the positive types in their order, then the rest.
func rank(kind string) int {
	if roleOf(kind, Conventions{}) == roleNegative {
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
