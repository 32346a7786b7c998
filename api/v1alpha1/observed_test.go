package v1alpha1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAClusterIsObservedWhileItIsReadyAndRecentlySeen(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tc := range map[string]struct {
		ready               metav1.ConditionStatus // status of the condition Ready; empty: no condition
		observed            time.Duration          // how long ago the cluster was observed; 0: never
		away, overdue, want bool
	}{
		"ready and observed":             {ready: metav1.ConditionTrue, observed: ObservedWithin, want: true},
		"ready, and not yet observed":    {ready: metav1.ConditionTrue, want: true},
		"ready, but no replica observes": {ready: metav1.ConditionTrue, observed: ObservedWithin + time.Second, overdue: true},
		"not ready":                      {ready: metav1.ConditionFalse, observed: time.Second, away: true},
		"of an unknown readiness":        {ready: metav1.ConditionUnknown, observed: time.Hour, away: true, overdue: true},
		"new":                            {away: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &MemberCluster{}
			if tc.ready != "" {
				c.Status.Conditions = []metav1.Condition{{Type: ConditionReady, Status: tc.ready}}
			}
			if tc.observed > 0 {
				at := metav1.NewTime(now.Add(-tc.observed))
				c.Status.LastObservedTime = &at
			}
			if c.IsAway() != tc.away || c.IsOverdue(now) != tc.overdue || c.IsObserved(now) != tc.want {
				t.Errorf("away %t, overdue %t, heard %t", c.IsAway(), c.IsOverdue(now), c.IsObserved(now))
			}
		})
	}
}
