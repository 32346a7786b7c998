package report

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAHoldEndsTheTimeFromAChangeToTheStatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row     hubv1.ClusterRow
		rollout *hubv1.BindingRollout
		ends    bool
	}{
		"a refused copy goes on":              {row: hubv1.ClusterRow{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden}},
		"a suspended copy is held":            {row: hubv1.ClusterRow{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonSuspended}, ends: true},
		"a paused copy is held":               {row: hubv1.ClusterRow{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonPaused}, ends: true},
		"a copy waits for its operator":       {row: hubv1.ClusterRow{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonOperatorNotReady}, ends: true},
		"an object with a rollout goes later": {rollout: &hubv1.BindingRollout{Phase: hubv1.RolloutComplete}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := testclock.NewFakePassiveClock(time.Now())
			b := placedOn("Widget", []hubv1.BindingTarget{present("a")})
			b.Spec.Rollout = tc.rollout
			r := &run{reporter: &Reporter{opts: Options{Clock: clock}}}
			r.part.leads, r.binding = true, b
			r.out.after.Clusters = []hubv1.ClusterRow{tc.row}
			e := &entry{unshown: unshown{content: 1, since: clock.Now()}}
			r.shown(e)
			if e.unshown.since.IsZero() != tc.ends {
				t.Errorf("the change has ended: %t", e.unshown.since.IsZero())
			}
		})
	}
}
