package informer

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAnObjectIsInTheGroupOfItsStoredPart(t *testing.T) {
	t.Parallel()
	of := func(name, version, group string) metav1.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": shelfKind.Kind, "metadata": map[string]any{"name": name, "uid": name, "resourceVersion": version, "labels": map[string]any{"group": group}},
		}}
	}
	set := New(Options{Group: func(o metav1.Object) string { return o.GetLabels()["group"] }})
	k := newKind(t.Context(), shelfKind, set)
	set.kinds[shelfKind] = []*kind{k}
	check := func(step string, want map[string][]string) {
		t.Helper()
		for _, group := range []string{"red", "blue", ""} {
			var got []string
			for _, o := range set.Grouped(shelfKind, group) {
				got = append(got, o.GetName()+o.GetResourceVersion())
			}
			if slices.Sort(got); !slices.Equal(got, want[group]) {
				t.Errorf("%s: group %q has %v, want %v", step, group, got, want[group])
			}
		}
		if len(k.groups) != len(want) {
			t.Errorf("%s: there are the groups %v", step, slices.Collect(maps.Keys(k.groups)))
		}
	}
	put := func(o metav1.Object) {
		t.Helper()
		if err := k.put(o.GetName(), o); err != nil {
			t.Fatal(err)
		}
	}
	check("before the first list", nil)
	k.replace(map[string]metav1.Object{"a": of("a", "1", "red"), "b": of("b", "1", "red"), "c": of("c", "1", ""), "d": nil}, 0)
	check("after the first list", map[string][]string{"red": {"a1", "b1"}})
	put(of("b", "2", "blue"))
	put(of("a", "2", "red"))
	check("after changes", map[string][]string{"red": {"a2"}, "blue": {"b2"}})
	k.takeReread(of("c", "1", "blue").(*unstructured.Unstructured))
	check("after an object was read again", map[string][]string{"red": {"a2"}, "blue": {"b2", "c1"}})
	k.drop("a")
	check("after a deletion", map[string][]string{"blue": {"b2", "c1"}})
	k.replace(map[string]metav1.Object{"b": nil, "e": of("e", "3", "red")}, 0)
	check("after another list, in which b was refused", map[string][]string{"red": {"e3"}, "blue": {"b2"}})
}
