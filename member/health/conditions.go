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

// condition is an element of status.conditions.
type condition struct {
	kind, status, reason, message string
	severity                      string // Error, Warning or Info, if the operator sets it
	observed                      int64  // observedGeneration; -1 if the condition has none
}

// ConditionReady and ConditionNotReady are opposite types of conditions. An object of the operator Strimzi has a
// condition of one of these types.
const (
	ConditionReady    = "Ready"
	ConditionNotReady = "NotReady"

	conditionAvailable = "Available"
)

// perReader are lists in a status whose items have conditions: one item for each controller that uses the object, such
// as each gateway of a route or each target of a policy, or for each listener of a gateway.
var perReader = []string{"parents", "ancestors", "listeners", "bindings"}

// conditionsOf returns the well-formed conditions in status.conditions and in the lists of perReader.
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
		// Controllers that do not set observedGeneration in a condition write it as zero.
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

// byStatedErrors judges conditions that have no status, such as those of Argo CD's Applications. A condition without a
// status is true as long as it is in the list.
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

// role returns what a condition type tells about objects of the kind. A condition that a printer column shows as the
// state of the object gets the role roleWhole: it describes the whole object. rolePart is for a condition that
// describes only a part.
func (r reader) role(kind string) role {
	meaning := words.condition(r.kind, kind).role
	shown := slices.ContainsFunc(r.Columns, func(column Column) bool { return column.Condition == kind })
	if shown && (meaning == roleUnread || meaning == rolePart) {
		return roleWhole
	}
	return meaning
}

// reader reads the status of objects of one kind.
type reader struct {
	kind schema.GroupKind
	Conventions
}

// conditionsResult is the result of reading all conditions of an object.
type conditionsResult struct {
	verdict Verdict
	// judged is false if no condition affects the health. A condition with roleWhole describes the whole object, and one
	// with rolePart describes a part. whole is true if a condition with roleWhole is True. sound is true if a condition
	// with either role is True.
	judged, whole, sound bool
	// rests is true if a condition such as Stopped or Suspended is True, and underway if one such as Updating is.
	rests, underway bool
	// ended is true if a condition says that the object has run to completion.
	ended bool
	// unread has the conditions whose type is not in vocabulary.yaml and whose status is not True.
	unread []string
}

// byConditions reads all conditions of an object. The verdict is that of the worst condition.
func (r reader) byConditions(obj *unstructured.Unstructured, generation int64) conditionsResult {
	conditions := conditionsOf(obj)
	slices.SortStableFunc(conditions, func(a, b condition) int { return cmp.Compare(r.rank(a.kind), r.rank(b.kind)) })
	counts := r.counting(conditions)
	if v, old := outdated(obj, conditions, generation, counts); old {
		return conditionsResult{verdict: v, judged: true}
	}
	result := conditionsResult{verdict: Verdict{Health: hubv1.HealthHealthy}}
	answered := holds(conditions, ConditionReady) || holds(conditions, conditionAvailable)
	failed, ended := false, false // a condition reports a failure, or that the object has run to completion
	for _, c := range conditions {
		is := r.role(c.kind)
		result.noteAny(c, is)
		if !counts(c) && !r.countsAnyway(c, is) || !isReported(c, is, answered) {
			continue
		}
		result.judged = true
		if c.status == "True" {
			result.noteTrue(c, is)
			ended = ended || is == roleEnded
		}
		h := r.judge(c, is)
		result.underway = result.underway || is == roleUnderway && h == hubv1.HealthProgressing
		failed = failed || is == roleFailure && h == hubv1.HealthDegraded
		if worse(h, result.verdict.Health) {
			result.verdict = explain(h, c)
		}
	}
	if ended {
		result.end()
	}
	// While the condition Reconciling is True, another condition that is False only means "not yet". The object is
	// Degraded only if a condition reports a failure.
	i := slices.IndexFunc(conditions, func(c condition) bool { return c.kind == "Reconciling" && c.status == "True" })
	if i >= 0 && !failed {
		result.verdict, result.judged = explain(hubv1.HealthProgressing, conditions[i]), true
	}
	return result
}

// noteAny records what a condition says even if it does not affect the health.
func (s *conditionsResult) noteAny(c condition, is role) {
	if is == roleUnread && c.status != "True" {
		s.unread = append(s.unread, c.kind)
	}
	s.rests = s.rests || c.status == "True" && healthOfWord(lastWord(c.kind)) == stopped
}

// noteTrue records a condition that has this role and the status True, and affects the health.
func (s *conditionsResult) noteTrue(c condition, is role) {
	s.whole = s.whole || is == roleWhole
	s.sound = s.sound || is == roleWhole || is == rolePart
	s.ended = s.ended || is == roleEnded || is == roleWhole && slices.Contains(endings, strings.ToLower(c.kind))
}

// end records that the object has run to completion. If a condition means Progressing, it no longer affects the health
// of the object.
func (s *conditionsResult) end() {
	s.whole, s.sound = true, true
	if s.verdict.Health == hubv1.HealthProgressing {
		s.verdict = Verdict{Health: hubv1.HealthHealthy}
	}
}

// counting returns a function that reports whether a condition affects the health. A condition that describes a part of
// the object (rolePart) affects the health only if no condition describes the whole object (roleWhole).
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

// countsAnyway reports whether a condition of a part, or of a type that vocabulary.yaml lacks, affects the health even
// beside a condition that describes the whole object. Its reason names a failure, or it is False and its reason means
// that something is being done. A part that refuses counts when it is False.
func (r reader) countsAnyway(c condition, is role) bool {
	switch {
	case is == roleUnread && c.status != "Unknown" && namesFailure(c.reason):
		return true
	case is == roleUnread && strings.HasSuffix(lastWord(c.kind), "ing"):
		return false // an activity that does not take place, such as Synchronizing between two runs
	case c.status != "False" || is != roleUnread && is != rolePart:
		return false
	}
	return namesProgress(c.reason) || words.condition(r.kind, c.kind).refuses
}

// isReported reports whether a condition says anything yet. answered is true if Ready or Available is True.
func isReported(c condition, is role, answered bool) bool {
	return !(answered && notReported(c, is)) && !(is == roleEnded && c.status != "True")
}

// notReported reports whether a condition beside Ready or Available is Unknown only because nothing reports its value.
// An example is Healthy of a machine whose hardware has no report of its health.
func notReported(c condition, is role) bool {
	if c.status != "Unknown" || c.reason != "" && !strings.EqualFold(c.reason, "unknown") || is != roleWhole && is != rolePart {
		return false
	}
	return c.kind != ConditionReady && c.kind != conditionAvailable
}

// outdated reports whether a condition that affects the health belongs to an older generation of the object. The other
// conditions may then belong to the older spec, too. If neither the status nor the conditions that affect the health
// have an observedGeneration, outdated looks at the other conditions instead.
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
		if c.status == "True" && namesFailure(c.reason) {
			return hubv1.HealthDegraded
		}
		return hubv1.HealthHealthy
	case roleUnderway, roleAttempt:
		return judgeUnderway(c, is)
	}
	switch {
	case is == roleUnread && namesFailure(c.reason):
		return hubv1.HealthDegraded
	case c.status == "True", slices.Contains(words.Reasons.Resting.Words, strings.ToLower(c.reason)):
		return hubv1.HealthHealthy
	case is == rolePart && c.severity == "Info":
		return hubv1.HealthHealthy // the condition has a severity that does not affect readiness
	case c.status == "Unknown":
		return hubv1.HealthProgressing
	case slices.Contains(words.Reasons.PodsNotReady.Words, c.reason):
		return hubv1.HealthProgressing
	case c.status == "Degraded" || c.severity == "Error" || namesFailure(c.reason):
		return hubv1.HealthDegraded
	case words.condition(r.kind, c.kind).refuses && !contains(words.Reasons.Waiting.Words, c.reason):
		return hubv1.HealthDegraded
	}
	return hubv1.HealthProgressing
}

func judgeUnderway(c condition, is role) hubv1.Health {
	switch {
	case c.status == "False" && namesFailure(c.reason):
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

// namesFailure reports whether a reason names a failure.
func namesFailure(reason string) bool {
	return strings.HasPrefix(reason, "Err") || contains(words.Reasons.Failing.Words, withoutHarmless(reason))
}

// namesProgress reports whether a reason means that something is being done. A reason such as NoPendingChange does not.
func namesProgress(reason string) bool {
	return contains(words.Reasons.Waiting.Words, reason) && !strings.HasPrefix(reason, "No") && !namesFailure(reason)
}

// withoutHarmless returns the text in lower case, without the parts that contain a word of failure and report none,
// such as failover.
func withoutHarmless(text string) string {
	text = strings.ToLower(text)
	for _, harmless := range words.Reasons.Harmless.Words {
		text = strings.ReplaceAll(text, harmless, "")
	}
	return text
}

// contains reports whether the reason contains one of the parts, ignoring case.
func contains(parts []string, reason string) bool {
	reason = strings.ToLower(reason)
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(reason, part) })
}

// rank orders conditions: failures first, then all others by the position of their type in vocabulary.yaml.
func (r reader) rank(kind string) int {
	m := words.condition(r.kind, kind)
	if m.role == roleFailure {
		return -1
	}
	return m.order
}

func worse(a, b hubv1.Health) bool { return severity(a) > severity(b) }

func severity(h hubv1.Health) int {
	return slices.Index([]hubv1.Health{hubv1.HealthHealthy, hubv1.HealthProgressing, hubv1.HealthDegraded}, h)
}
