package informer

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnObjectThatIsReadOnceMoreReplacesThatVeryVersionAlone(t *testing.T) {
	shelf := func(uid, version, mark string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": shelfKind.Kind, "metadata": map[string]any{"name": "a", "uid": uid, "resourceVersion": version, "annotations": map[string]any{"mark": mark}},
		}}
	}
	for name, test := range map[string]struct {
		known    *unstructured.Unstructured
		want     string // the mark of the stored object afterwards
		reported int
	}{
		"the version that is known":                {shelf("u", "5", "old"), "new", 1},
		"a version that the watch has passed":      {shelf("u", "6", "old"), "old", 0},
		"a version to which the watch has to come": {shelf("u", "4", "old"), "old", 0},
		"another object of the name":               {shelf("v", "5", "old"), "old", 0},
	} {
		t.Run(name, func(t *testing.T) {
			reported := 0
			set := New(Options{Handler: func(schema.GroupVersionKind, metav1.Object, metav1.Object) { reported++ }})
			k := newKind(t.Context(), shelfKind, set)
			k.objects = map[string]metav1.Object{"a": test.known}
			k.takeReread(shelf("u", "5", "new"))
			if got := k.objects["a"].GetAnnotations()["mark"]; got != test.want || reported != test.reported {
				t.Errorf("the %s one is known, and %d changes were told", got, reported)
			}
		})
	}
	t.Run("an object that has gone stays away", func(t *testing.T) {
		set := New(Options{})
		k := newKind(t.Context(), shelfKind, set)
		k.takeReread(shelf("u", "5", "new"))
		if len(k.objects) > 0 {
			t.Errorf("there is %v", k.objects)
		}
	})
}
