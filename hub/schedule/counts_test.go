package schedule

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestTheObjectsOfAClusterAreCounted(t *testing.T) {
	t.Parallel()
	scheduler := New(Options{})
	m := &scheduler.inputs.counts
	feed := changes.NewFeed()
	feed.Bindings.On(changes.All, scheduler.BindingChanged)
	handler := feed.Bindings.Handler(t.Context())
	a, b := bound(present("eu"), present("sg")), bound(present("eu"), absent("sg", hubv1.ReasonNotSelected, hubv1.RemovalDelete))
	a.Name, b.Name = "a", "b"
	counts := func() [2]int { return [2]int{m.objectsOn("eu"), m.objectsOn("sg")} }
	handler.OnAdd(a, true)
	handler.OnAdd(b, false)
	if got := counts(); got != [2]int{2, 1} {
		t.Fatalf("eu and sg have %v objects", got)
	}
	moved := bound(present("sg"))
	moved.Name = "b"
	handler.OnUpdate(b, moved)
	handler.OnUpdate(moved, moved)
	if got := counts(); got != [2]int{1, 2} {
		t.Fatalf("after a move eu and sg have %v objects", got)
	}
	handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: a})
	handler.OnDelete(moved)
	handler.OnDelete(moved)
	if got := counts(); got != [2]int{} || len(m.sent) > 0 || len(m.objects) > 0 {
		t.Fatalf("after the end eu and sg have %v objects, remembered are %v and %v", got, m.sent, m.objects)
	}
	m.count(types.NamespacedName{Name: "never heard of"}, nil)
}

func TestTheCopiesOfABundleAreCountedBesideThoseOfThePlacement(t *testing.T) {
	t.Parallel()
	var m copyCounts
	of := hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "all"}
	bundle := decide.OwnerOfBundle(of)
	a, b := bound(present("eu"), present("sg")), bound(present("eu"))
	a.Spec.ObjectRef.Bundle = &of
	placement := decide.OwnerOf(a.Spec.PlacementRef)
	m.count(types.NamespacedName{Name: "a"}, a)
	m.count(types.NamespacedName{Name: "b"}, b)
	if got := [2]int{m.copiesOf(bundle), m.copiesOf(placement)}; got != [2]int{2, 3} {
		t.Errorf("the bundle and the placement have %v copies", got)
	}
	left := a.DeepCopy()
	left.Spec.ObjectRef.Bundle = nil
	m.count(types.NamespacedName{Name: "a"}, left)
	if got := [2]int{m.copiesOf(bundle), m.copiesOf(placement)}; got != [2]int{0, 3} {
		t.Errorf("after the object left the bundle, both have %v copies", got)
	}
	m.count(types.NamespacedName{Name: "a"}, nil)
	m.count(types.NamespacedName{Name: "b"}, nil)
	if len(m.copies) > 0 {
		t.Errorf("counted are %v", m.copies)
	}
}
