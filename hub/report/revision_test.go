package report

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// stagedOn returns a binding with a rollout: the clusters a and b shall have the given revisions.
func stagedOn(generation, a, b int64) *hubv1.ResourceBinding {
	binding := bindingOf(generation, present("a"), present("b"))
	binding.Spec.Clusters[0].Revision, binding.Spec.Clusters[1].Revision = a, b
	binding.Spec.Rollout = &hubv1.BindingRollout{Revision: 2, Newest: 2, Phase: hubv1.RolloutProgressing}
	return binding
}

// TestAPhaseOfARolloutSharesTheWriteOfTheNextBatch: a decision that only changes the rollout's phase is written
// together with the next batch. The last result of that batch ends the time in which the reporter collects results.
func TestAPhaseOfARolloutSharesTheWriteOfTheNextBatch(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	r := &Reporter{opts: Options{Clock: clock, Shard: Shard{Holds: func(string) bool { return true }}}, entries: map[types.NamespacedName]*entry{}}
	revision := func(n int64) member.Outcome {
		o := appliedAt(1)
		o.HubRevision = n
		return o
	}
	b := stagedOn(1, 2, 1)
	key := client.ObjectKeyFromObject(b)
	due := func() time.Duration { return r.entries[key].window.due.Sub(clock.Now()) }
	r.bindingChanged(b, pace.FirstResult)
	r.Record(b, "b", revision(1))
	r.Record(b, "a", revision(2))
	if got := due(); got != 0 {
		t.Errorf("after the last result of a batch, the window ends in %s", got)
	}
	r.shut(key)
	r.bindingChanged(stagedOn(2, 2, 1), pace.FirstResult)
	if got := due(); got != firstWindow {
		t.Errorf("after a phase alone, the window ends in %s", got)
	}
	next := stagedOn(3, 2, 2)
	r.bindingChanged(next, pace.FirstResult)
	r.Record(next, "b", revision(2))
	if got := due(); got != 0 {
		t.Errorf("after the result of the next batch, the window ends in %s", got)
	}
}

func TestAClusterThatChangesItsRevisionIsAwaited(t *testing.T) {
	outcome := func(applied metav1.ConditionStatus, revision int64) *member.Outcome {
		return &member.Outcome{Applied: applied, HubState: member.HubState{HubRevision: revision}}
	}
	tests := map[string]struct {
		revision int64 // the revision of the target
		fact     rollup.Fact
		want     bool
	}{
		"its last outcome is of an earlier revision":   {2, rollup.Fact{Outcome: outcome(metav1.ConditionTrue, 1)}, true},
		"it has reported the revision":                 {2, rollup.Fact{Outcome: outcome(metav1.ConditionTrue, 2)}, false},
		"a failure is written at once":                 {2, rollup.Fact{Outcome: outcome(metav1.ConditionFalse, 1)}, false},
		"a row from before the restart is kept anyway": {2, rollup.Fact{}, false},
		"the hub itself gets no copy":                  {2, rollup.Fact{IsHub: true, Outcome: outcome(metav1.ConditionTrue, 1)}, false},
		"without a rollout":                            {0, rollup.Fact{Outcome: outcome(metav1.ConditionTrue, 0)}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			target := present("a")
			target.Revision = tc.revision
			if got := changesRevision(target, tc.fact); got != tc.want {
				t.Errorf("awaited: %t, want %t", got, tc.want)
			}
		})
	}
}
