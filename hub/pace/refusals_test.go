package pace

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	a, b := schema.GroupKind{Kind: "A"}, schema.GroupKind{Kind: "B"}
	var r Refusals
	for _, refused := range []struct {
		name  string
		kind  schema.GroupKind
		probe bool
	}{{"first", a, true}, {"second", a, false}, {"first", a, true}, {"third", b, true}} {
		if got := r.Refused(key(refused.name), refused.kind); got != refused.probe {
			t.Errorf("%s is a probe: %t, want %t", refused.name, got, refused.probe)
		}
	}
	for _, settled := range []struct {
		says     string
		name     string
		accepted bool
		want     []string
	}{
		{"a write that was never refused tries nothing again", "other", true, nil},
		{"a probe that fails for another reason leaves its place to another write of the kind", "first", false, []string{"second"}},
		{"a write that is gone leaves no probe behind", "third", false, nil},
		{"an accepted write has no others to try", "second", true, nil},
	} {
		var got []string
		for _, again := range r.Settled(key(settled.name), settled.accepted) {
			got = append(got, again.Name)
		}
		if diff := cmp.Diff(settled.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", settled.says, diff)
		}
	}
	for _, name := range []string{"first", "second"} {
		r.Refused(key(name), a)
	}
	r.Refused(key("third"), b)
	var got []string
	for _, again := range r.Settled(key("second"), true) {
		got = append(got, again.Name)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"first", "third"}) {
		t.Errorf("after one right was granted, %v are tried again, want the writes of all kinds", got)
	}
}
