package schedule

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// removedUIDs returns the UIDs of the hub objects whose copies the binding removes, in the order of the clusters.
func (s *scene) removedUIDs() []types.UID {
	var out []types.UID
	for _, e := range s.binding().Spec.Clusters {
		if e.Absent != nil {
			out = append(out, e.Absent.UID)
		}
	}
	return out
}

// The events of a deletion and of the next creation are lost while no hub runs: the scheduler sees only the new object.
func TestCopiesOfARecreatedObjectAreReplaced(t *testing.T) {
	t.Parallel()
	s := newScene(t, "anew", "eu", "sg")
	s.create(s.place("web", "eu", "sg"))
	first := s.object()
	s.becomes("eu", "sg")
	second := s.object()
	s.becomes("-eu MadeAnew Delete", "-sg MadeAnew Delete")
	if diff := cmp.Diff([]types.UID{first, first}, s.removedUIDs()); diff != "" {
		t.Errorf("removed are the copies of (-want +got):\n%s", diff)
	}
	if got := s.binding().Spec.ObjectRef.UID; got != second {
		t.Errorf("the binding records %s, want the second object %s", got, second)
	}
	s.withdraws("eu")
	s.becomes("eu", "-sg MadeAnew Delete") // one cluster does not wait for the other

	third := s.object()
	s.becomes("-eu MadeAnew Delete", "-sg MadeAnew Delete")
	if diff := cmp.Diff([]types.UID{second, first}, s.removedUIDs()); diff != "" {
		t.Errorf("after the object was made anew twice, removed are the copies of (-want +got):\n%s", diff)
	}
	s.withdraws()
	s.becomes("eu", "sg")
	if got := s.binding().Spec.ObjectRef.UID; got != third {
		t.Errorf("the binding records %s, want the third object %s", got, third)
	}
}

func TestAnObjectThatReturnsWithItsUIDKeepsItsCopies(t *testing.T) {
	t.Parallel()
	s := newScene(t, "returns", "eu")
	s.create(s.place("web", "eu"))
	s.object()
	s.becomes("eu")
	restored, _ := objects.Get(s.id)
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Delete")
	objects.set(s.id, restored) // as after a restore of etcd
	s.becomes("eu")
}

func TestAnObjectThatWasLostWithItsKindKeepsItsCopies(t *testing.T) { // not parallel: concerns all objects of the kind
	s := newScene(t, "anewkind", "eu")
	s.create(s.place("web", "eu"))
	s.object()
	s.becomes("eu")
	off := s.neverAbsent()
	objects.change(s.id, func() { objects.undecided, objects.recreated = objects.undecided.Union(sets.New(s.id)), true })
	t.Cleanup(func() { objects.change(s.id, func() { objects.undecided.Delete(s.id); objects.recreated = false }) })
	second := s.object()
	s.eventually("the binding records the present object", func() error {
		if got := s.binding().Spec.ObjectRef.UID; got != second {
			return fmt.Errorf("it records %s", got)
		}
		return nil
	})
	off()
	s.becomes("eu")
}

func TestManyRecreatedObjectsWaitForAConfirmation(t *testing.T) {
	t.Parallel()
	const number = 8
	s := newScene(t, "anewmany", "eu", "sg")
	s.create(s.place("web", "eu", "sg"))
	s.many(0, number)
	s.counting("both clusters have all objects", 2*number, 0, 0)
	off := s.neverAbsent()
	earlier := map[types.UID]bool{}
	for _, b := range s.bindings() {
		earlier[b.Spec.ObjectRef.UID] = true
	}
	s.many(0, number) // each with another UID
	s.counting("all copies are held", 0, 2*number, 0)
	for _, b := range s.bindings() {
		if e := b.Spec.Clusters[0]; e.Removal.Reason != hubv1.ReasonMadeAnew || !earlier[b.Spec.ObjectRef.UID] {
			t.Errorf("a binding reads %+v, want the earlier object and held removals", b.Spec)
		}
	}
	held := s.holds()
	off()
	s.confirmRemoval("web", held.ID)
	s.counting("after the confirmation, all copies go", 0, 0, 2*number)
}
