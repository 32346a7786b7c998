// Package health judges one member object and projects its status, from the object and what its definition says: no
// client, no clock, no memory.
//
// Assess judges built-in kinds by kstatus, and custom resources by its generic rules and what they leave open. The
// worst of these counts:
//   - Conditions, by the conventions of the ecosystem. One that lags behind metadata.generation speaks of an older
//     spec.
//   - Words: phases, states and healths, and the printer columns of the kind that tell how an object fares.
//   - Replicas: those that the status counts against those that the spec asks for, where the scale subresource has
//     them.
//
// A resource whose kind has a status and that carries none is Progressing: its operator has not seen it yet. A status
// that says nothing which is known is Unknown, never Healthy. The words that are known are in vocabulary.yaml, for
// package rollup as well. Kinds whose status nobody writes are known by name. An object that is paused by its own spec
// is judged by the status that it has, of whatever generation.
//
// Degraded is kept for objects that say that they cannot get there. Pods that are not ready say no such thing: an
// operator reports the same while a set starts, while it rolls and after pods were lost, and telling these apart needs
// a clock.
//
// Pods are not judged: kstatus reads the clock for them. A kind without status is Healthy when it exists. What the
// conventions cannot tell, an Expression of the placement does.
package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	ReasonStatusNotUnderstood   = "StatusNotUnderstood"
	ReasonNotJudged             = "NotJudged"
	ReasonGenerationNotObserved = "GenerationNotObserved"
	ReasonJobRunning            = "JobRunning"
	ReasonReplicas              = "ReplicasDiffer"
)

const (
	maxMessage = 256 // characters, as the row's
	maxReason  = 64
)

// Verdict on one object. Reason and Message are empty if it is Healthy, unless it is paused by its spec and its status
// speaks of an older generation.
type Verdict struct {
	Health  hubv1.Health
	Reason  string
	Message string
}

var (
	pod = schema.GroupKind{Kind: "Pod"}
	job = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// Assess judges an object by the conventions of its kind.
func Assess(obj *unstructured.Unstructured, c Conventions) Verdict { return assess(obj, c, nil) }

// assess judges by an expression unless that is nil.
func assess(obj *unstructured.Unstructured, c Conventions, e *Expression) Verdict {
	switch {
	case obj == nil || obj.Object == nil:
		return verdict(hubv1.HealthUnknown, ReasonStatusUnreadable, "there is no object to judge")
	case terminating(obj):
		return verdict(hubv1.HealthProgressing, ReasonTerminating, "the object is being deleted")
	}
	gk := obj.GroupVersionKind().GroupKind()
	if gk == pod && e == nil {
		return verdict(hubv1.HealthUnknown, ReasonNotJudged, "pods are not judged")
	}
	isBuiltIn := status.GetLegacyConditionsFn(obj) != nil
	byKind := func(generation int64) Verdict {
		switch {
		case e != nil:
			return e.judge(obj, generation, c)
		case isBuiltIn:
			return builtIn(obj)
		}
		return customResource(obj, gk, generation, c)
	}
	generation := obj.GetGeneration()
	var v Verdict
	if observed := ownObservedGeneration(obj); observed >= 0 && observed < generation {
		v = notObserved(observed, generation)
	} else if neverObserved(obj) {
		v = verdict(hubv1.HealthProgressing, ReasonGenerationNotObserved, "the status speaks of no generation: nothing has looked at the object yet")
	} else {
		v = byKind(generation)
	}
	if v.Reason != ReasonGenerationNotObserved || isBuiltIn || !paused(obj) {
		return v
	}
	// No controller will observe the newest generation: the status is judged as it is. The reason stays, for those who ask
	// which one was observed.
	last := byKind(0)
	return verdict(last.Health, ReasonGenerationNotObserved, strings.TrimSuffix("it is paused; "+v.Message+"; "+last.Message, "; "))
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

// customResource judges a kind that only its conventions are known of. The generic rules of kstatus are among them,
// read here from whatever part of the content is well-formed: kstatus gives up on an object as soon as one condition is
// not.
//
// Healthy needs a statement that it is so. A status in which none is found is Unknown, with what was seen.
func customResource(obj *unstructured.Unstructured, gk schema.GroupKind, generation int64, c Conventions) Verdict {
	r := reader{kind: gk, Conventions: c}
	status := statusOf(obj)
	conditions := r.byConditions(obj, generation)
	worst := conditions.verdict
	if worst.Reason == ReasonGenerationNotObserved {
		return worst
	}
	judged := conditions.judged
	weigh := func(v Verdict, ok bool) {
		judged = judged || ok
		if ok && worse(v.Health, worst.Health) {
			worst = v
		}
	}
	weigh(byStatedErrors(status))
	weigh(byErrorTexts(status))
	said := r.byWords(obj, conditions.judged)
	weigh(said.verdict, said.judged)
	weigh(byReplicas(obj.Object, c.Scale))
	if !conditions.whole {
		weigh(byNestedReplicas(status))
	}
	switch {
	case worst.Health != hubv1.HealthHealthy, isSilent(gk):
		return worst
	case !judged && isEmpty(obj.Object["status"]):
		if c.HasStatus {
			return verdict(hubv1.HealthProgressing, ReasonStatusMissing, "nothing has written the object's status yet")
		}
		return worst
	case !judged && isBuiltInGroup(gk.Group), conditions.sound:
		return worst
	case !judged:
		return notUnderstood(obj, "")
	case said.unread != "":
		return notUnderstood(obj, said.unread)
	case len(conditions.unread) > 0 && !said.well:
		return notUnderstood(obj, "")
	}
	return worst
}

// notUnderstood says what was seen of a status that no convention reads: a word that the vocabulary does not have, else
// conditions and fields. Values are those that a projection keeps: the message shall not change with each heartbeat.
func notUnderstood(obj *unstructured.Unstructured, unread string) Verdict {
	seen := []string{unread}
	if unread == "" {
		seen = nil
		for _, c := range conditionsOf(obj) {
			seen = append(seen, fmt.Sprintf("condition %s is %s", c.kind, c.status))
		}
		for _, name := range slices.Sorted(maps.Keys(statusOf(obj))) {
			if value, kept := scalars(map[string]any{name: statusOf(obj)[name]}, maxDepth)[name]; kept && name != "conditions" {
				seen = append(seen, fmt.Sprintf("%s is %v", name, value))
			} else if name != "conditions" {
				seen = append(seen, name)
			}
		}
	}
	return verdict(hubv1.HealthUnknown, ReasonStatusNotUnderstood, "no convention says how the object fares: "+strings.Join(seen, ", "))
}

// isEmpty is true for a status that no controller has filled in: without fields, or with empty lists and objects alone.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, field := range v {
			if !isEmpty(field) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// pauses are fields of a spec whose true asks the operator to leave the object as it is.
var pauses = []string{"paused", "pause", "suspend", "suspended"}

func paused(obj *unstructured.Unstructured) bool {
	spec, _ := obj.Object["spec"].(map[string]any)
	return slices.ContainsFunc(pauses, func(name string) bool { return spec[name] == true })
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
	return Verdict{Health: h, Reason: camel(reason), Message: line(message, maxMessage)}
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

// line returns the first characters of a message on one line.
func line(message string, most int) string {
	return hubv1.CutMessage(strings.Join(strings.Fields(strings.ToValidUTF8(message, "?")), " "), most)
}
