package schedule

import (
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/rollout"
)

func TestRolloutsOfAPlacementWaitForEachOther(t *testing.T) {
	owner := decide.Owner{Kind: "Placement", Namespace: "ns", Name: "web"}
	a, b := key{Kind: "Widget", Name: "a"}, key{Kind: "Widget", Name: "b"}
	moving := func(id key) *rollout.Progress { return &rollout.Progress{Object: id.String(), Moving: true} }
	var r rollouts
	read := r.current()
	if !r.claim(a, owner, moving(a), false, read) {
		t.Fatal("the first object may not move")
	}
	if r.claim(b, owner, moving(b), false, read) {
		t.Error("a second object moves by an older reading")
	}
	waiting := &rollout.Progress{Object: b.String()}
	if !r.claim(b, owner, waiting, true, read) {
		t.Fatal("an object may not wait")
	}
	r.released()
	if got := r.released(); len(got) != 0 {
		t.Errorf("%v are woken, and nothing has changed", got)
	}
	r.claim(a, owner, &rollout.Progress{Object: a.String(), Passed: 1}, false, r.current())
	if got := r.released(); len(got) != 1 || got[0] != b {
		t.Errorf("%v are woken, want %v", got, b)
	}
	if n := r.peers(owner).Without(b.String()).Moving(); n != 0 {
		t.Errorf("%d objects move", n)
	}
	r.claim(a, owner, nil, false, r.current())
	r.claim(b, owner, nil, false, r.current())
	if len(r.of) != 0 || len(r.owners) != 0 {
		t.Errorf("left are %v and %v", r.of, r.owners)
	}
}

func TestOnlyRowsOfARolloutInProgressMatter(t *testing.T) {
	b := &hubv1.ResourceBinding{}
	b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Revision: 2, Message: "words"}}
	for phase, want := range map[hubv1.RolloutPhase]int{
		hubv1.RolloutProgressing: 1, hubv1.RolloutFailed: 1, hubv1.RolloutComplete: 0, hubv1.RolloutRolledBack: 0,
	} {
		b.Spec.Rollout = &hubv1.BindingRollout{Phase: phase, Revision: 2, Passed: 2}
		if want > 0 {
			b.Spec.Rollout.Wave = "asia"
		}
		if got := rowsOfRollout(b); len(got) != want {
			t.Errorf("%s: %d rows matter, want %d", phase, len(got), want)
		}
	}
	if b.Spec.Rollout = (&hubv1.BindingRollout{Phase: hubv1.RolloutComplete, Revision: 2, Passed: 1}); len(rowsOfRollout(b)) != 1 {
		t.Error("rows of a complete rollout whose revision has not passed do not matter")
	}
	if b.Spec.Rollout = nil; rowsOfRollout(b) != nil {
		t.Error("rows of an object without a rollout matter")
	}
}
