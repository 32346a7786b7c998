package rollup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestRowOfACopyThatIsOnlyCompared(t *testing.T) {
	inSync := func() *member.Outcome {
		return &member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonInSync, Message: "no value", CopyState: member.CopyState{UID: "member-1", ResourceVersion: "100"}, HubState: member.HubState{HubGeneration: 7, HubContent: 77}}
	}
	want := func(edit func(*hubv1.ClusterRow)) *hubv1.ClusterRow {
		row := held()
		row.Reason, row.Message = hubv1.ReasonInSync, "no value"
		edit(row)
		return row
	}
	older := seen(func(o *member.Observation) { o.Digest, o.ResourceVersion = "old", "101" })
	tests := map[string]struct {
		previous *hubv1.ClusterRow
		fact     Fact
		want     *hubv1.ClusterRow
	}{
		"an object that is not watched": {
			fact: Fact{Connected: true, Synced: true, Outcome: inSync()},
			want: want(func(row *hubv1.ClusterRow) {
				row.UID, row.Digest, row.Hash, row.Observed, row.Health = "", "", "", nil, hubv1.HealthUnknown
			}),
		},
		"a copy keeps what was last confirmed, whatever digest it carries": {
			previous: held(func(row *hubv1.ClusterRow) { row.Generation = 6 }),
			fact:     Fact{Connected: true, Synced: true, Outcome: inSync(), Observation: older},
			want:     want(func(*hubv1.ClusterRow) {}),
		},
		"what would be changed": {
			previous: held(),
			fact:     Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonDiffers), Observation: seen()},
			want: held(func(row *hubv1.ClusterRow) {
				row.Applied, row.Reason, row.Message = metav1.ConditionFalse, hubv1.ReasonDiffers, "do something"
			}),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := newRow(tc.previous, 2, shallHold, input(shallHold, &tc.fact))
			got.LastTransitionTime, tc.want.LastTransitionTime = nil, nil
			if diff := cmp.Diff(*tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABindingIsContestedWhileACopyIs(t *testing.T) {
	fought := confirmed(func(o *member.Outcome) {
		o.Reason, o.Message = hubv1.ReasonContested, "tuner keeps changing .spec.replicas"
	})
	first, _ := Status(hubv1.BindingStatus{}, input(shallHold, &Fact{Connected: true, Synced: true, Outcome: fought, Observation: seen()}))
	c := meta.FindStatusCondition(first.Conditions, hubv1.ConditionContested)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != hubv1.ReasonContested ||
		c.Message != "on 1 of 1 clusters: a: tuner keeps changing .spec.replicas" {
		t.Fatalf("%+v", c)
	}
	// The condition stays while the hub waits longer between two restores of the copy, and while the copy is not healthy.
	// It is removed once the copy is applied without a conflict.
	refused := refusedBy(hubv1.ReasonContested)
	refused.Message = fought.Message
	second, _ := Status(first, input(shallHold, &Fact{Connected: true, Synced: true, Outcome: refused, Observation: seen()}))
	if diff := cmp.Diff(c, meta.FindStatusCondition(second.Conditions, hubv1.ConditionContested)); diff != "" {
		t.Error(diff)
	}
	unhealthy := seen(func(o *member.Observation) { o.Health, o.HealthReason = hubv1.HealthDegraded, "Sick" })
	third, _ := Status(second, input(shallHold, &Fact{Connected: true, Synced: true, Outcome: fought, Observation: unhealthy}))
	if meta.FindStatusCondition(third.Conditions, hubv1.ConditionContested) == nil {
		t.Error("it is not contested while it is degraded")
	}
	last, _ := Status(third, input(shallHold, &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen()}))
	if c := meta.FindStatusCondition(last.Conditions, hubv1.ConditionContested); c != nil {
		t.Errorf("%+v", c)
	}
}
