package health

import (
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ObservedGeneration returns status.observedGeneration, which may be a number or the text of one. If the field is
// missing, it returns the lowest generation of the conditions, or -1 if no condition has one.
func ObservedGeneration(obj *unstructured.Unstructured) int64 {
	if obj == nil {
		return -1
	}
	if g := ownObservedGeneration(obj); g >= 0 {
		return g
	}
	lowest := int64(-1)
	for _, c := range conditionsOf(obj) {
		if c.observed >= 0 && (lowest < 0 || c.observed < lowest) {
			lowest = c.observed
		}
	}
	return lowest
}

// ownObservedGeneration returns status.observedGeneration, or the field that vocabulary.yaml names for the kind. If the
// path leads to several numbers, such as one for each pod of the operator, it returns the lowest. The result is -1 if
// there is none.
func ownObservedGeneration(obj *unstructured.Unstructured) int64 {
	if path := words.generationPath(obj.GroupVersionKind().GroupKind()); path != nil {
		lowest := int64(-1)
		for _, value := range allAt(statusOf(obj), path) {
			if g, ok := integer(value); ok && (lowest < 0 || g < lowest) {
				lowest = g
			}
		}
		return lowest
	}
	if g, ok := integer(statusOf(obj)["observedGeneration"]); ok {
		return g
	}
	return -1
}

// allAt returns the values at a path. A * in the path stands for each item of a list or field of an object.
func allAt(value any, path []string) []any {
	if len(path) == 0 {
		return []any{value}
	}
	var out []any
	switch v := value.(type) {
	case map[string]any:
		if path[0] != "*" {
			return allAt(v[path[0]], path[1:])
		}
		for _, field := range v {
			out = append(out, allAt(field, path[1:])...)
		}
	case []any:
		if path[0] != "*" {
			return nil
		}
		for _, item := range v {
			out = append(out, allAt(item, path[1:])...)
		}
	}
	return out
}

// neverObserved reports whether status.observedGeneration is a default value, which means that no controller has
// processed the object. Flux's default is -1.
func neverObserved(obj *unstructured.Unstructured) bool {
	switch g := statusOf(obj)["observedGeneration"].(type) {
	case int64:
		return g < 0
	case float64:
		return g < 0
	}
	return false
}

// integer returns a non-negative whole number, which may be given as text.
func integer(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, v >= 0
	case int:
		return int64(v), v >= 0
	case float64:
		return int64(v), v >= 0 && v < math.MaxInt64/2 && v == math.Trunc(v)
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil && n >= 0
	}
	return 0, false
}
