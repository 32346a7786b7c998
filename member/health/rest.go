package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pauses are boolean fields of a spec with which a user stops the operator from acting on the object. suspends are
// those with which the workload stops, too.
var (
	pauses   = []string{"paused", "pause"}
	suspends = []string{"suspend", "suspended"}
)

// stops are boolean fields of a spec with which a user stops the workload, while the operator goes on. runs are the
// opposite: the workload stops if one of them is false.
var (
	stops = []string{"stopped", "stop", "hibernate", "hibernated", "shutdown"}
	runs  = []string{"running"}
)

// modes are fields of a spec whose word says whether the workload runs.
var modes = []string{"runStrategy", "powerState", "desiredState", "state"}

// paused reports whether the spec stops the operator from acting on the object. No controller processes a newer
// generation of such an object.
func paused(obj *unstructured.Unstructured) bool {
	return hasTrue(specOf(obj), pauses) || hasTrue(specOf(obj), suspends)
}

func hasTrue(spec map[string]any, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return spec[name] == true })
}

// restWanted reports whether the spec says that the operator or the workload of the object shall rest.
func restWanted(obj *unstructured.Unstructured) bool { return paused(obj) || stopWanted(obj) }

// stopWanted reports whether the spec says that the workload of the object shall not run.
func stopWanted(obj *unstructured.Unstructured) bool {
	spec := specOf(obj)
	return hasTrue(spec, suspends) ||
		slices.ContainsFunc(stops, func(name string) bool { return spec[name] == true || spec[name] == "yes" }) ||
		slices.ContainsFunc(runs, func(name string) bool { return spec[name] == false }) ||
		slices.ContainsFunc(modes, func(name string) bool {
			word, _ := spec[name].(string)
			return healthOfWord(letters(word)) == stopped
		})
}

// scaledToZero reports whether the spec asks for no replicas, and the status counts none.
func scaledToZero(obj *unstructured.Unstructured, scale Scale) bool {
	want, have := specReplicas, []string{"status", "replicas"}
	if scale.Spec != nil {
		want, have = scale.Spec, scale.Status
	}
	wanted, ok := integer(at(obj.Object, want))
	if !ok || wanted != 0 {
		return false
	}
	for _, path := range [][]string{have, {"status", "readyReplicas"}, {"status", "availableReplicas"}} {
		if n, counted := integer(at(obj.Object, path)); counted && n > 0 {
			return false
		}
	}
	return true
}

func specOf(obj *unstructured.Unstructured) map[string]any {
	spec, _ := obj.Object["spec"].(map[string]any)
	return spec
}
