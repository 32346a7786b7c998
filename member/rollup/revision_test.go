package rollup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestTheRowOfATargetThatNamesARevision(t *testing.T) {
	third := hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent, Revision: 3}
	of := func(revision int64, since *metav1.Time) func(*hubv1.ClusterRow) {
		return func(r *hubv1.ClusterRow) { r.Revision, r.PassingSince = revision, since }
	}
	outcome := func(revision int64) *member.Outcome {
		return confirmed(func(o *member.Outcome) { o.HubRevision = revision })
	}
	tests := map[string]struct {
		previous *hubv1.ClusterRow
		fact     *Fact
		applied  metav1.ConditionStatus
		revision int64
		passing  bool
		since    *metav1.Time
	}{
		"a copy of the revision passes from now on": {
			held(of(2, &earlier)), &Fact{Connected: true, Synced: true, Outcome: outcome(3), Observation: seen()}, metav1.ConditionTrue, 3, true, nil,
		},
		"a copy that passes keeps its time": {
			held(of(3, &earlier)), &Fact{Connected: true, Synced: true, Outcome: outcome(3), Observation: seen()}, metav1.ConditionTrue, 3, true, &earlier,
		},
		"a copy of another revision is pending": {
			held(of(2, &earlier)), &Fact{Connected: true, Synced: true, Outcome: outcome(2), Observation: seen()}, metav1.ConditionFalse, 2, false, nil,
		},
		"after a restart, a copy of another revision is pending": {
			held(of(2, &earlier)), nil, metav1.ConditionUnknown, 2, false, nil,
		},
		"after a restart, a copy of the revision keeps its time": {
			held(of(3, &earlier)), nil, metav1.ConditionTrue, 3, true, &earlier,
		},
		"a copy that is degraded passes no more": {
			held(of(3, &earlier)), &Fact{Connected: true, Synced: true, Outcome: outcome(3), Observation: seen(func(o *member.Observation) {
				o.Health, o.HealthReason = hubv1.HealthDegraded, "Failed"
			})}, metav1.ConditionTrue, 3, false, nil,
		},
		"a copy on a cluster that does not answer passes no more": {
			held(of(3, &earlier)), &Fact{LinkReason: hubv1.ReasonUnreachable}, metav1.ConditionUnknown, 3, false, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(third, tc.fact)
			in.Revisions = []hubv1.ObjectRevision{{Number: 2, Generation: in.HubGeneration}, {Number: 3, Generation: in.HubGeneration}}
			got := newRow(tc.previous, 2, third, in)
			if got.Applied != tc.applied || got.Revision != tc.revision || (got.PassingSince != nil) != tc.passing {
				t.Errorf("the row is %+v, want applied %s, revision %d, passing %t", got, tc.applied, tc.revision, tc.passing)
			}
			if tc.since != nil && !tc.since.Equal(got.PassingSince) {
				t.Errorf("it passes since %v, want %v", got.PassingSince, tc.since)
			}
			if tc.passing && tc.since == nil && !got.PassingSince.Time.Equal(in.Now.Time.Truncate(time.Second)) && !got.PassingSince.Equal(&in.Now) {
				t.Errorf("it passes since %v, want now, %v", got.PassingSince, in.Now)
			}
		})
	}
}

func TestAHeldBackClusterIsAppliedAndNotUpdated(t *testing.T) {
	second := hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent, Revision: 2}
	in := input(second, &Fact{
		Connected: true, Synced: true, Observation: seen(),
		Outcome: confirmed(func(o *member.Outcome) { o.HubRevision, o.HubGeneration = 2, o.HubGeneration-1 }),
	})
	in.Revisions, in.Newest = []hubv1.ObjectRevision{{Number: 2, Generation: in.HubGeneration - 1}, {Number: 3, Generation: in.HubGeneration}}, 3
	status, _ := Status(hubv1.BindingStatus{ObservedGeneration: 1}, in)
	none := int32(0)
	if diff := cmp.Diff(hubv1.BindingSummary{Desired: 1, Applied: 1, Healthy: 1, Updated: &none}, status.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}
