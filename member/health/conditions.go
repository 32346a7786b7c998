package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// condition is one entry of status.conditions.
type condition struct {
	kind, status, reason, message string
	severity                      string // Error, Warning or Info, of the operators that know it
	observed                      int64  // observedGeneration; -1 if there is none
}

// Types of conditions of which the one is the other's opposite. Strimzi's objects have the one or the other.
const (
	ConditionReady    = "Ready"
	ConditionNotReady = "NotReady"
)

// perReader are lists of a status with one entry for each reader of the object, each with conditions of its own: the
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
		if opposite := opposites[out[i].status]; out[i].kind == ConditionNotReady && opposite != "" {
			out[i].kind, out[i].status = ConditionReady, opposite
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

// role of a type of condition for objects of this kind. If a column shows the condition as the object's status, the
// condition counts for the whole object.
func (r reader) role(kind string) role {
	says := words.condition(r.kind, kind).says
	shown := slices.ContainsFunc(r.Columns, func(column Column) bool { return column.Condition == kind })
	if shown && (says == roleUnread || says == rolePart) {
		return roleWhole
	}
	return says
}

// reader reads the statuses of one kind.
type reader struct {
	kind schema.GroupKind
	Conventions
}

// conditionsSay is the joint verdict of conditions.
type conditionsSay struct {
	verdict Verdict
	// judged is false if there is no condition that the vocabulary has; whole is true if one that speaks for the whole
	// object is True, and sound if such a one or a part is.
	judged, whole, sound bool
	// unread names the conditions that no word is known of and that are not True.
	unread []string
}

// byConditions gives the verdict of the worst condition.
func (r reader) byConditions(obj *unstructured.Unstructured, generation int64) conditionsSay {
	conditions := conditionsOf(obj)
	slices.SortStableFunc(conditions, func(a, b condition) int { return cmp.Compare(r.rank(a.kind), r.rank(b.kind)) })
	counts := r.counting(conditions)
	if v, old := outdated(obj, conditions, generation, counts); old {
		return conditionsSay{verdict: v, judged: true}
	}
	say := conditionsSay{verdict: Verdict{Health: hubv1.HealthHealthy}}
	failed, ended := false, false // by their own words
	for _, c := range conditions {
		is := r.role(c.kind)
		if is == roleUnread && c.status != "True" {
			say.unread = append(say.unread, c.kind)
		}
		if !counts(c) && !(is == roleUnread && c.status == "False" && saysFailure(c.reason)) {
			continue
		}
		say.judged = true
		if c.status == "True" {
			say.hear(is)
			ended = ended || is == roleEnded
		}
		h := r.judge(c, is)
		failed = failed || is == roleFailure && h == hubv1.HealthDegraded
		if worse(h, say.verdict.Health) {
			say.verdict = explain(h, c)
		}
	}
	if ended {
		say.end()
	}
	// While it is reconciling, False means "not yet"; only a failure that is stated as such counts.
	i := slices.IndexFunc(conditions, func(c condition) bool { return c.kind == "Reconciling" && c.status == "True" })
	if i >= 0 && !failed {
		say.verdict, say.judged = explain(hubv1.HealthProgressing, conditions[i]), true
	}
	return say
}

// hear notes a condition that is True.
func (s *conditionsSay) hear(is role) {
	s.whole = s.whole || is == roleWhole
	s.sound = s.sound || is == roleWhole || is == rolePart
}

// end is for an object that ran to its end: it waits for nothing any more.
func (s *conditionsSay) end() {
	s.whole, s.sound = true, true
	if s.verdict.Health == hubv1.HealthProgressing {
		s.verdict = Verdict{Health: hubv1.HealthHealthy}
	}
}

// counting tells which conditions say how the object fares: parts only if none of all speaks for the whole.
func (r reader) counting(conditions []condition) func(condition) bool {
	whole := slices.ContainsFunc(conditions, func(c condition) bool { return r.role(c.kind) == roleWhole })
	return func(c condition) bool {
		switch r.role(c.kind) {
		case roleUnread, roleNotice, roleNothing:
			return false
		case rolePart:
			return !whole
		}
		return true
	}
}

// outdated is true if a condition is of an older generation: then the others may be of the old spec, too. Where neither
// the status nor the conditions that count say of which generation they are, those that do not count speak for them.
func outdated(obj *unstructured.Unstructured, conditions []condition, generation int64, counts func(condition) bool) (v Verdict, old bool) {
	dated := ownObservedGeneration(obj) >= 0 || slices.ContainsFunc(conditions, func(c condition) bool { return c.observed >= 0 && counts(c) })
	for _, c := range conditions {
		if c.observed >= 0 && c.observed < generation && (counts(c) || !dated) {
			return notObserved(c.observed, generation), true
		}
	}
	return Verdict{}, false
}

func (r reader) judge(c condition, is role) hubv1.Health {
	switch is {
	case roleFailure:
		if c.status == "True" {
			return hubv1.HealthDegraded
		}
		return hubv1.HealthHealthy
	case roleEnded:
		if c.status == "True" && saysFailure(c.reason) {
			return hubv1.HealthDegraded
		}
		return hubv1.HealthHealthy
	case roleUnderway, roleAttempt:
		return judgeUnderway(c, is)
	}
	switch {
	case c.status == "True":
		return hubv1.HealthHealthy
	case is == rolePart && c.severity == "Info":
		return hubv1.HealthHealthy // by its own words no part of what makes the object ready
	case c.status == "Unknown":
		return hubv1.HealthProgressing
	case slices.Contains(words.Reasons.PodsNotReady.Words, c.reason):
		return hubv1.HealthProgressing
	case c.status == "Degraded" || c.severity == "Error" || saysFailure(c.reason):
		return hubv1.HealthDegraded
	case words.condition(r.kind, c.kind).refuses && !contains(words.Reasons.Waiting.Words, c.reason):
		return hubv1.HealthDegraded
	}
	return hubv1.HealthProgressing
}

func judgeUnderway(c condition, is role) hubv1.Health {
	switch {
	case c.status == "False" && saysFailure(c.reason):
		return hubv1.HealthDegraded
	case c.status == "False", is == roleAttempt, contains(words.Reasons.Settled.Words, c.reason):
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
	return strings.HasPrefix(reason, "Err") || contains(words.Reasons.Failing.Words, reason) && !contains(words.Reasons.Harmless.Words, reason)
}

// contains is true if the reason has one of the parts in it.
func contains(parts []string, reason string) bool {
	reason = strings.ToLower(reason)
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(reason, part) })
}

// rank sorts failures first, then the types in the order of the vocabulary.
func (r reader) rank(kind string) int {
	m := words.condition(r.kind, kind)
	if m.says == roleFailure {
		return -1
	}
	return m.order
}

func worse(a, b hubv1.Health) bool { return severity(a) > severity(b) }

func severity(h hubv1.Health) int {
	return slices.Index([]hubv1.Health{hubv1.HealthHealthy, hubv1.HealthProgressing, hubv1.HealthDegraded}, h)
}
