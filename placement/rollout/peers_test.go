package rollout

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Peers gives the same answers as a loop over all objects except one.
func TestPeers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(label string) time.Time {
			return noon.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, label)) * time.Second)
		}
		var all []Progress
		for i := range rapid.IntRange(0, 6).Draw(t, "objects") {
			all = append(all, Progress{
				Object: fmt.Sprint("o", i), Began: at("began"), Passed: rapid.IntRange(0, 4).Draw(t, "passed"), Moving: rapid.Bool().Draw(t, "moving"),
				Done: rapid.Bool().Draw(t, "done"), Failed: rapid.Bool().Draw(t, "failed"), Since: at("since"),
			})
		}
		self, until := fmt.Sprint("o", rapid.IntRange(0, 6).Draw(t, "self")), at("until")
		least, moving := 3, 0
		var first *Progress
		for i, p := range all {
			if p.Object == self {
				continue
			}
			if !p.Done && !p.Began.After(until) {
				least = min(least, p.Passed)
			}
			if p.Moving {
				moving++
			}
			if p.Failed && (first == nil || p.Since.Before(first.Since)) {
				first = &all[i]
			}
		}
		peers := NewPeers(all).Without(self)
		if got := peers.LeastPassed(until, 3); got != least {
			t.Errorf("least passed: %d, want %d", got, least)
		}
		if got := peers.Moving(); got != moving {
			t.Errorf("moving: %d, want %d", got, moving)
		}
		if got, failed := peers.Failed(); failed != (first != nil) || failed && got != *first {
			t.Errorf("failed: %+v, want %+v", got, first)
		}
	})
}

func TestPeersWithoutObjects(t *testing.T) {
	var none Peers
	if _, failed := none.Without("o").Failed(); failed || none.Moving() != 0 || none.LeastPassed(noon, 2) != 2 {
		t.Error("objects that are not there hold another one up")
	}
}

func TestProgressOf(t *testing.T) {
	policy := &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "canary"}, {Name: "rest"}}}
	stored := hubv1.BindingRollout{Revision: 2, Newest: 2, Wave: "rest", Began: metav1.NewTime(noon), Since: metav1.NewTime(noon.Add(time.Minute))}
	for name, tc := range map[string]struct {
		set  func(*hubv1.BindingRollout)
		want Progress
	}{
		"an object whose clusters change is moving": {
			func(r *hubv1.BindingRollout) { r.Phase = hubv1.RolloutProgressing }, Progress{Passed: 1, Moving: true, Revision: 2},
		},
		"an object that waits is not moving": {
			func(r *hubv1.BindingRollout) { r.Phase = hubv1.RolloutWaitingForApproval }, Progress{Passed: 1, Revision: 2},
		},
		"an object that was rolled back has failed": {
			func(r *hubv1.BindingRollout) {
				r.Phase, r.Wave, r.Revision, r.Failed = hubv1.RolloutRolledBack, "", 1, 2
			}, Progress{Passed: 2, Done: true, Failed: true, Revision: 2},
		},
		"an object that is complete is done": {
			func(r *hubv1.BindingRollout) { r.Phase, r.Wave = hubv1.RolloutComplete, "" }, Progress{Passed: 2, Done: true, Revision: 2},
		},
	} {
		r := stored
		tc.set(&r)
		tc.want.Began, tc.want.Since = r.Began.Time, r.Since.Time
		if got := ProgressOf(policy, &r); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
