package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// byReplicas compares the replicas in the status with the replicas in the spec. judged is false if one of the two
// numbers cannot be read. A missing number is not zero, because many operators omit a number that they do not know.
func byReplicas(object map[string]any, scale Scale) (v Verdict, judged bool) {
	wanted, ok := integer(at(object, specReplicas))
	if scale.Spec != nil {
		if wanted, ok = integer(at(object, scale.Spec)); !ok {
			return Verdict{}, false
		}
		// If the replicas in the spec come from another field than spec.replicas, they may be shards or partitions, each of
		// which has several replicas. The number of ready replicas is then not compared with this field.
		ok = len(scale.Spec) == 2 && scale.Spec[1] == specReplicas[1]
		has, counted := integer(at(object, scale.Status))
		if counted && has != wanted && inForce(object, scale) {
			return fewer(has, wanted, "there"), true
		}
		judged = counted && has == wanted
	}
	status, _ := object["status"].(map[string]any)
	spec, _ := object["spec"].(map[string]any)
	of := wantedBeside(status, spec)
	switch {
	case ok:
		of = wantedOf(status, spec, wanted)
	case scale.Spec != nil:
		of = wantedBeside(status, nil)
	}
	counts, counted := compareCounts(status, of)
	return counts, judged || counted
}

// states are the beginnings of the names of counts that a rollout raises, such as readyReplicas and upToDateNodes, each
// with its word in a message. The counts of updated units rise to the partition only.
var states = []struct {
	begin, word string
	updated     bool
}{
	{"updatedReady", "updated and ready", true},
	{"updatedAvailable", "updated and available", true},
	{"updated", "updated", true},
	{"upToDate", "up to date", true},
	{"ready", "ready", false},
	{"available", "available", false},
}

// units are the endings of the names of counts whose units are pods, so that spec.replicas is their wanted number.
var units = []string{"Replicas", "Nodes", "Pods", "Instances", "Members"}

// wantedNumber returns the number that a count of a unit, such as Replicas, shall reach. updated is true for a count of
// updated units.
type wantedNumber func(unit string, updated bool) (int64, bool)

// wantedOf returns the wanted numbers of the counts of a whole object whose spec asks for this number of replicas.
func wantedOf(status, spec map[string]any, replicas int64) wantedNumber {
	beside := wantedBeside(status, spec)
	return func(unit string, updated bool) (int64, bool) {
		switch n, ok := beside(unit, updated); {
		case !slices.Contains(units, unit), ok && unit != "Replicas":
			return n, ok
		case !updated:
			return replicas, true
		}
		if expected, ok := integer(status["expectedUpdatedReplicas"]); ok {
			return expected, true
		}
		return max(replicas-partition(spec, replicas, false), 0), true
	}
}

// wantedBeside returns the wanted numbers of counts from other fields of the same name: desiredTablets of the same
// object, tablets of the spec, or tablets of the same object for readyTablets.
func wantedBeside(object, spec map[string]any) wantedNumber {
	return func(unit string, _ bool) (int64, bool) {
		plain := strings.ToLower(unit[:1]) + unit[1:]
		for _, value := range []any{object["desired"+unit], spec[plain], object[plain]} {
			if n, ok := integer(value); ok {
				return n, true
			}
		}
		return 0, false
	}
}

// compareCounts compares the counts of an object with the numbers that they shall reach. judged is false if no count
// has such a number. availableReplicas counts pods, but availableCPU is an amount, so that available is read with the
// units of pods only.
func compareCounts(object map[string]any, wanted wantedNumber) (v Verdict, judged bool) {
	v = Verdict{Health: hubv1.HealthHealthy}
	read := map[string]bool{}
	for _, s := range states {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			unit, ok := strings.CutPrefix(name, s.begin)
			if !ok || unit == "" || unit[0] < 'A' || unit[0] > 'Z' || s.begin == "available" && !slices.Contains(units, unit) {
				continue
			}
			if read[name] {
				continue // updatedReadyReplicas is no number of updated ReadyReplicas
			}
			read[name] = true
			has, counted := integer(object[name])
			want, known := wanted(unit, s.updated)
			if !counted || !known {
				continue
			}
			if judged = true; has < want {
				v = fewer(has, want, s.word)
				if unit != "Replicas" {
					v.Message = strings.Replace(v.Message, "replicas", strings.ToLower(unit), 1)
				}
				return v, true
			}
		}
	}
	return v, judged
}

// partition returns the number of replicas that an update shall leave as they are: a field called partition in the
// update strategy of the spec, which may be a percentage. It returns 0 if there is none.
func partition(fields map[string]any, replicas int64, inStrategy bool) int64 {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		lower := strings.ToLower(name)
		if nested, ok := fields[name].(map[string]any); ok && (strings.Contains(lower, "strategy") || strings.Contains(lower, "rollingupdate")) {
			if n := partition(nested, replicas, true); n > 0 {
				return n
			}
		}
		if lower != "partition" || !inStrategy {
			continue
		}
		if text, _ := fields[name].(string); strings.HasSuffix(text, "%") {
			percent, _ := integer(strings.TrimSuffix(text, "%"))
			return (replicas*min(percent, 100) + 99) / 100
		}
		n, _ := integer(fields[name])
		return n
	}
	return 0
}

var specReplicas = []string{"spec", "replicas"}

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
