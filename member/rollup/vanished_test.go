package rollup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// TestTheRowOfACopyThatVanishedTellsAsMuchAfterARestart checks the row of a copy that has finished, such as a Job, and
// was then deleted. After a restart, hub/dispatch reads the digest and the result from this row, so that it does not
// create the copy again.
func TestTheRowOfACopyThatVanishedTellsAsMuchAfterARestart(t *testing.T) {
	target := hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent}
	ended := []byte(`{"conditions":[{"status":"True","type":"Failed"}]}`)
	completed := confirmed(func(o *member.Outcome) {
		o.Reason, o.ResourceVersion = hubv1.ReasonCompleted, ""
		o.Last = &member.Observation{Assessment: member.Assessment{Health: hubv1.HealthDegraded}, Observed: ended}
	})
	stays := confirmed(func(o *member.Outcome) {
		o.Applied, o.Reason, o.ResourceVersion = metav1.ConditionFalse, hubv1.ReasonNotRecreated, ""
	})
	tests := map[string]struct {
		previous *hubv1.ClusterRow
		outcome  *member.Outcome
		want     *hubv1.ClusterRow
	}{
		"what ran to completion keeps its status": {
			previous: held(func(r *hubv1.ClusterRow) { r.Observed, r.Health = nil, hubv1.HealthProgressing }), outcome: completed,
			want: held(func(r *hubv1.ClusterRow) {
				r.Reason, r.Health, r.Observed, r.LastTransitionTime = hubv1.ReasonCompleted, hubv1.HealthDegraded, raw(ended), &noon
			}),
		},
		"what ran to completion before there was a row": {
			outcome: completed,
			want: held(func(r *hubv1.ClusterRow) {
				r.Reason, r.Health, r.Observed, r.LastTransitionTime = hubv1.ReasonCompleted, hubv1.HealthDegraded, raw(ended), &noon
			}),
		},
		"what stays away keeps its digest": {
			previous: held(), outcome: stays,
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Reason, r.Health, r.Observed, r.LastTransitionTime = metav1.ConditionFalse, hubv1.ReasonNotRecreated, hubv1.HealthUnknown, nil, &noon
			}),
		},
		"what stays away has a digest also if there was no row": {
			outcome: stays,
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Reason, r.Health, r.Observed, r.LastTransitionTime = metav1.ConditionFalse, hubv1.ReasonNotRecreated, hubv1.HealthUnknown, nil, &noon
			}),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := Input{
				BindingGeneration: 1, ObjectUID: hubObject, HubGeneration: 7, Now: noon,
				Facts: map[string]Fact{"a": {Connected: true, Synced: true, Outcome: tc.outcome}},
			}
			row := newRow(tc.previous, 1, target, in)
			if diff := cmp.Diff(*tc.want, row); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			again := newRow(&row, 1, target, in)
			if diff := cmp.Diff(row, again); diff != "" {
				t.Errorf("said again, the row is another one (-first +second):\n%s", diff)
			}
		})
	}
}
