// Package health judges one member object and projects its status. It uses only the object and its kind's definition:
// no client, no clock, no state.
//
// Assess judges built-in kinds by kstatus. It judges custom resources by kstatus' generic rules and by conventions. The
// worst of these counts:
//
//   - Conditions, by the conventions of the ecosystem. A condition older than metadata.generation belongs to an older
//     spec.
//   - Words: phases, states and healths, and the printer columns that show an object's state.
//   - Replicas: the count in the status compared with the spec, at the paths of the scale subresource.
//
// An object without a status is Progressing if its kind has one: its operator has not seen it yet. A status without any
// known statement is Unknown, never Healthy. vocabulary.yaml has the known words, for package rollup too. Kinds whose
// status no controller writes are listed by name. An object that its own spec pauses is judged by its current status,
// of any generation.
//
// Degraded means that an object reports a failure. Pods that are not ready are no failure: operators report the same
// while a set starts, while it rolls out and after it lost pods. Only a clock could distinguish these cases.
//
// Pods are not judged, because kstatus needs the clock for them. An object of a kind without a status is Healthy when
// it exists. An Expression of the placement can judge other cases.
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

// Reasons of this package; other reasons come from the object.
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
	maxMessage = 256 // in characters, equal to the limit of a row's message
	maxReason  = 64
)

// Verdict is the health of one object. Reason and Message are empty if it is Healthy, except for an object whose spec
// pauses it and whose status has an older generation.
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

// assess judges by the expression, or by the conventions if it is nil.
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
	// No controller will observe the newest generation, so the current status is judged. The reason stays, as a hint
	// about the observed generation.
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
		// kstatus returns Current for a job that has started.
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

// compute calls kstatus, which panics on content of unexpected types, because no schema has checked it.
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

// customResource judges a kind by its conventions. They include the generic rules of kstatus, applied to all
// well-formed parts of the status; kstatus itself returns an error if one condition is malformed.
//
// The verdict Healthy needs an explicit statement. A status without one is Unknown, with the fields that were found.
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

// notUnderstood describes a status that no convention can read: by a word that the vocabulary lacks, or else by its
// conditions and fields. It uses only values that a projection keeps, so that the message does not change with each
// heartbeat.
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

// isEmpty reports whether no controller has filled in the status: it has no fields, or only empty lists and objects.
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

// pauses are fields of a spec that, if true, ask the operator to ignore the object.
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
	// Do not use obj.GetDeletionTimestamp, because an unreadable time counts, too.
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

// camel converts a word of the object to a valid reason of a row.
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
