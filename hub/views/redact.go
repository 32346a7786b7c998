package views

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// These texts replace the values of a Secret. In a diff, a value gets redactedBefore in the Secret before the hub's
// write, and redactedAfter in the Secret after it. The texts differ even if the write does not change the value. With
// equal texts, a user who guesses a value would learn that the guess is right.
const (
	redacted       = "***"
	redactedBefore = "*** (before)"
	redactedAfter  = "*** (after)"
)

// secretFields are the fields of a Secret whose values no user may see. Annotations are among these fields, because
// some tools store whole objects in annotations.
var secretFields = [][]string{{"data"}, {"stringData"}, {"metadata", "annotations"}}

func isSecret(obj *unstructured.Unstructured) bool {
	return obj != nil && hubv1.IsSecret(obj.GroupVersionKind().GroupKind())
}

// withoutSecrets returns the same object. If the object is a Secret, its secret values are replaced.
func withoutSecrets(obj *unstructured.Unstructured) *unstructured.Unstructured {
	redactBoth(obj, nil, true)
	return obj
}

// redactBoth replaces the secret values in two states of one object: before and after the hub's write. inSync is true
// if the hub has nothing to write. In this case, both states get the same text for a value.
func redactBoth(before, after *unstructured.Unstructured, inSync bool) {
	if !isSecret(before) && !isSecret(after) {
		return
	}
	for _, path := range secretFields {
		redactMaps(before, after, path, inSync)
	}
}

func redactMaps(before, after *unstructured.Unstructured, path []string, inSync bool) {
	was, is := values(before, path), values(after, path)
	for key := range was {
		_, both := is[key]
		switch {
		case strings.HasPrefix(key, hubv1.Prefix): // the hub's own labels and annotations
		case !both:
			was[key] = redacted
		case inSync:
			was[key], is[key] = redacted, redacted
		default:
			was[key], is[key] = redactedBefore, redactedAfter
		}
	}
	for key := range is {
		if _, both := was[key]; !both && !strings.HasPrefix(key, hubv1.Prefix) {
			is[key] = redacted
		}
	}
}

// values returns the map at a path of the object, such as the map in the field data. If the field is not a map, values
// removes the field and returns nil.
func values(obj *unstructured.Unstructured, path []string) map[string]any {
	if obj == nil {
		return nil
	}
	value, there, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if m, ok := value.(map[string]any); ok {
		return m
	}
	if there {
		unstructured.RemoveNestedField(obj.Object, path...)
	}
	return nil
}

// compared returns the fields of an object that a diff shows. It leaves out the status, the metadata that an API server
// sets, and the hub's labels and annotations.
func compared(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	out := obj.DeepCopy()
	delete(out.Object, "status")
	delete(out.Object, "metadata")
	out.SetName(obj.GetName())
	out.SetNamespace(obj.GetNamespace())
	out.SetLabels(foreign(obj.GetLabels()))
	out.SetAnnotations(foreign(obj.GetAnnotations()))
	return out
}

func foreign(in map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range in {
		if !strings.HasPrefix(k, hubv1.Prefix) {
			out[k] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func content(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	return obj.Object
}
