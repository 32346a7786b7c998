// Package health judges one member object and projects its status: a projection is the part of a status that the hub
// keeps. The result depends only on the object and the definition of its kind. The package has no client, no clock and
// no state.
//
// Assess judges built-in kinds by kstatus. It judges custom resources by kstatus' generic rules and by conventions. Of
// the following parts of the status, the one with the worst health decides:
//
//   - Conditions, by the usual meanings of their types. A condition with an observedGeneration below
//     metadata.generation belongs to an older spec.
//   - Words: phases, states and healths, and the printer columns that show an object's state.
//   - Replicas: the number in the status is compared with the number in the spec, at the paths of the scale
//     subresource.
//
// An object without a status is Progressing if its kind has a status, because its operator has not processed it yet. If
// the package understands no part of the status, the object is Unknown, never Healthy. vocabulary.yaml has the known
// words; package member/rollup uses them, too. Kinds with a status that no controller writes are listed by name in
// silent.go. If the spec pauses an object, its current status is judged, although it may belong to an older generation.
//
// An object is Degraded only if its status reports a failure. Pods that are not ready are not a failure. A status looks
// the same while pods start, while they roll out, and after some were lost. Only the time distinguishes these cases,
// and this package has no clock.
//
// Pods themselves are not judged, because the rules of kstatus for pods need the time. An object of a kind without a
// status is Healthy when it exists. The Expression of a placement can judge objects by other rules.
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

// These are the reasons that this package itself gives in a verdict. All other reasons come from the status of the
// object.
const (
	ReasonTerminating           = "Terminating"
	ReasonStatusMissing         = "StatusMissing"
	ReasonStatusUnreadable      = "StatusUnreadable"
	ReasonStatusNotUnderstood   = "StatusNotUnderstood"
	ReasonNotJudged             = "NotJudged"
	ReasonGenerationNotObserved = "GenerationNotObserved"
	ReasonJobRunning            = "JobRunning"
	ReasonReplicas              = "ReplicasDiffer"
	ReasonNoAddress             = "NoAddress"
	ReasonPausedBySpec          = "PausedBySpec"
	ReasonTypeCheckFailed       = "TypeCheckFailed"
)

const (
	maxMessage = 256 // in characters, equal to the limit for a message in a row of a binding
	maxReason  = 64
)

// Verdict is the health of one object. Reason and Message are empty for a Healthy object, except for a paused object
// whose status belongs to an older generation.
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

// assess judges an object by the expression. If e is nil, it uses the conventions c.
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
		v = verdict(hubv1.HealthProgressing, ReasonGenerationNotObserved, "status.observedGeneration is negative: no controller has observed the object yet")
	} else {
		v = byKind(generation)
	}
	if v.Reason != ReasonGenerationNotObserved || isBuiltIn || !paused(obj) {
		return v
	}
	// No controller will process the newest generation of a paused object. The current status is judged instead, and the
	// reason says that it belongs to an older generation.
	last := byKind(0)
	return verdict(last.Health, ReasonGenerationNotObserved, strings.TrimSuffix("it is paused; "+v.Message+"; "+last.Message, "; "))
}

// customResource judges an object by the conventions of its kind. It applies the generic rules of kstatus to each
// well-formed part of the status. kstatus itself would return an error if one condition were malformed.
//
// The verdict is Healthy only if the status says so. If no part of the status is understood, it is Unknown, and the
// message names the fields of the status.
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
	weigh(byTypeChecks(obj))
	weigh(byStatedErrors(status))
	weigh(byErrorTexts(status))
	wordsFound := r.byWords(obj, conditions.judged)
	weigh(wordsFound.verdict, wordsFound.judged)
	weigh(byReplicas(obj.Object, c.Scale))
	nested := r.byNested(status, conditions.ended || wordsFound.ended)
	weigh(nested.failure, nested.failed)
	if !conditions.whole {
		weigh(nested.progress, nested.underway)
		weigh(nested.counts, nested.counted)
	}
	// An object that its spec stops is not on its way: it has reached the state in its spec.
	rests := restWanted(obj) && wordsFound.rests || stopWanted(obj) && conditions.rests || scaledToZero(obj, c.Scale)
	if rests && worst.Health == hubv1.HealthProgressing && !conditions.underway && !wordsFound.underway {
		return Verdict{Health: hubv1.HealthHealthy}
	}
	switch {
	case worst.Health != hubv1.HealthHealthy, isSilent(gk), conditions.sound:
		return worst
	case !judged:
		return r.unjudged(obj)
	case wordsFound.unread != "":
		return notUnderstood(obj, wordsFound.unread)
	case len(conditions.unread) > 0 && !wordsFound.healthy:
		return notUnderstood(obj, "")
	}
	return worst
}

// unjudged returns the verdict for an object of which no part of the status is understood.
func (r reader) unjudged(obj *unstructured.Unstructured) Verdict {
	empty := isEmpty(obj.Object["status"])
	switch {
	case empty && r.HasStatus:
		return verdict(hubv1.HealthProgressing, ReasonStatusMissing, "no controller has written the object's status yet")
	case empty, isBuiltInGroup(r.kind.Group):
		return Verdict{Health: hubv1.HealthHealthy}
	}
	return notUnderstood(obj, "")
}

// notUnderstood returns the verdict for a status that is not understood. Its message names a word that vocabulary.yaml
// lacks, or else the conditions and fields. The message quotes no value that changes often, such as a time. Otherwise
// each heartbeat of the operator would change the message.
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
	return verdict(hubv1.HealthUnknown, ReasonStatusNotUnderstood, "the status follows no known convention: "+strings.Join(seen, ", "))
}

// isEmpty reports whether a status, or a value in it, has no content: it is missing, or contains only empty lists and
// objects.
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

func notObserved(observed, generation int64) Verdict {
	return verdict(hubv1.HealthProgressing, ReasonGenerationNotObserved,
		fmt.Sprintf("status.observedGeneration is %d, metadata.generation is %d", observed, generation))
}

func terminating(obj *unstructured.Unstructured) bool {
	// obj.GetDeletionTimestamp is not used, because it returns nil for a malformed time, which also means that the
	// object is being deleted.
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

// camel converts a word from the status of an object to a valid reason in CamelCase.
func camel(reason string) string {
	word := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, reason)
	return word[:min(len(word), maxReason)]
}

// line returns the first `limit` characters of a message, on one line.
func line(message string, limit int) string {
	return hubv1.CutMessage(strings.Join(strings.Fields(strings.ToValidUTF8(message, "?")), " "), limit)
}
