package health

import (
	"fmt"
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// byReplicas compares the replicas in the status with the replicas in the spec. judged is false if one of the two
// numbers cannot be read. A missing number is not zero, because many operators omit a number that they do not know.
func byReplicas(object map[string]any, scale Scale) (v Verdict, judged bool) {
	v = Verdict{Health: hubv1.HealthHealthy}
	wanted, ok := integer(at(object, specReplicas))
	if scale.Spec != nil {
		if wanted, ok = integer(at(object, scale.Spec)); !ok {
			return Verdict{}, false
		}
		has, counted := integer(at(object, scale.Status))
		if counted && has != wanted && inForce(object, scale) {
			return fewer(has, wanted, "there"), true
		}
		judged = counted && has == wanted
		// If the replicas in the spec come from another field than spec.replicas, they may be shards or partitions, each of
		// which has several replicas. The number of ready replicas is then not compared with this field.
		ok = len(scale.Spec) == 2 && scale.Spec[1] == specReplicas[1]
	}
	if !ok {
		return v, judged
	}
	for _, c := range counters {
		has, counted := integer(at(object, c.path))
		if counted && has < wanted {
			return fewer(has, wanted, c.word), true
		}
		judged = judged || counted
	}
	return v, judged
}

// byNestedReplicas compares ready replicas with existing replicas in nested objects and lists of a status. An example
// is the list of instance sets of a database.
func byNestedReplicas(status map[string]any) (v Verdict, judged bool) {
	for _, name := range slices.Sorted(maps.Keys(status)) {
		nested, _ := status[name].([]any)
		if object, ok := status[name].(map[string]any); ok {
			nested = append(slices.Collect(maps.Values(object)), any(object))
		}
		for _, entry := range nested {
			counts, _ := entry.(map[string]any)
			there, ok := integer(counts["replicas"])
			ready, counted := integer(counts["readyReplicas"])
			if ok && counted && ready < there {
				v = fewer(ready, there, "ready")
				v.Message += " in " + name
				return v, true
			}
		}
	}
	return Verdict{}, false
}

var (
	specReplicas = []string{"spec", "replicas"}
	counters     = []struct {
		path []string
		word string
	}{
		{[]string{"status", "updatedReplicas"}, "updated"},
		{[]string{"status", "readyReplicas"}, "ready"},
		{[]string{"status", "availableReplicas"}, "available"},
	}
)

// inForce reports whether the scale subresource has an effect on the object. An operator may ignore the number of
// replicas in some modes, such as a mode with one pod per node. In such a mode, the status has no label selector. If
// the CRD has no labelSelectorPath, inForce returns true.
func inForce(object map[string]any, scale Scale) bool {
	if scale.Selector == nil {
		return true
	}
	selector, _ := at(object, scale.Selector).(string)
	return selector != ""
}

func fewer(has, wanted int64, word string) Verdict {
	return verdict(hubv1.HealthProgressing, ReasonReplicas, fmt.Sprintf("%d of %d replicas are %s", has, wanted, word))
}
