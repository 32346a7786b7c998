package rollup

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

const twoForFour = ".spec.replicas 2 instead of 4"

func changedOutcome(edits ...func(*member.Outcome)) *member.Outcome {
	return confirmed(append([]func(*member.Outcome){func(o *member.Outcome) {
		o.Reason, o.Message, o.Changed = hubv1.ReasonChangedByCluster, member.ChangedMessage(twoForFour), twoForFour
	}}, edits...)...)
}

func TestTheRowOfACopyThatTheClusterHasChanged(t *testing.T) {
	changed := held(func(r *hubv1.ClusterRow) { r.ChangedByCluster = twoForFour })
	tests := map[string]struct {
		previous *hubv1.ClusterRow
		fact     *Fact
		applied  metav1.ConditionStatus
		reason   string
		changed  string
	}{
		"a healthy copy is applied, and says so": {
			held(), &Fact{Connected: true, Synced: true, Outcome: changedOutcome(), Observation: seen()}, metav1.ConditionTrue, hubv1.ReasonChangedByCluster, twoForFour,
		},
		"a copy that is not healthy has the reason of its health": {
			held(), &Fact{Connected: true, Synced: true, Outcome: changedOutcome(), Observation: seen(func(o *member.Observation) {
				o.Health, o.HealthReason = hubv1.HealthDegraded, "Failed"
			})}, metav1.ConditionTrue, "Failed", twoForFour,
		},
		"after a restart, the row still has the fields": {changed, nil, metav1.ConditionTrue, "", twoForFour},
		"on a cluster that does not answer, too":        {changed, &Fact{LinkReason: hubv1.ReasonUnreachable}, metav1.ConditionUnknown, hubv1.ReasonUnreachable, twoForFour},
		"a copy whose write fails keeps the fields":     {changed, &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonForbidden), Observation: seen()}, metav1.ConditionFalse, hubv1.ReasonForbidden, twoForFour},
		"a write that the cluster keeps ends it":        {changed, &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen()}, metav1.ConditionTrue, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := newRow(tc.previous, 2, shallHold, input(shallHold, tc.fact))
			if got.Applied != tc.applied || got.Reason != tc.reason || got.ChangedByCluster != tc.changed {
				t.Errorf("the row is %+v", got)
			}
		})
	}
}

func TestAWaveDoesNotPassOnACopyThatTheClusterHasChanged(t *testing.T) {
	third := hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent, Revision: 3}
	of := func(o *member.Outcome) { o.HubRevision = 3 }
	for name, tc := range map[string]struct {
		outcome *member.Outcome
		passes  bool
	}{
		"changed": {changedOutcome(of), false}, "kept": {confirmed(of), true},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(third, &Fact{Connected: true, Synced: true, Outcome: tc.outcome, Observation: seen()})
			in.Revisions = []hubv1.ObjectRevision{{Number: 3, Generation: in.HubGeneration}}
			previous := held(func(r *hubv1.ClusterRow) { r.Revision, r.PassingSince = 3, &earlier })
			if got := newRow(previous, 2, third, in); (got.PassingSince != nil) != tc.passes {
				t.Errorf("it passes since %v", got.PassingSince)
			}
		})
	}
}

func TestAppliedCountsChangedCopiesApart(t *testing.T) {
	status, _ := Status(hubv1.BindingStatus{}, input(shallHold, &Fact{Connected: true, Synced: true, Outcome: changedOutcome(), Observation: seen()}))
	c := meta.FindStatusCondition(status.Conditions, hubv1.ConditionApplied)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != hubv1.ReasonAppliedEverywhere ||
		c.Message != "on 1 of 1 clusters; values changed by the cluster on 1 of 1 clusters: a" {
		t.Errorf("%+v", c)
	}
}

func TestShortenedRowsStillSayThatTheClusterChangedThem(t *testing.T) {
	status := hubv1.BindingStatus{}
	var rows []hubv1.ClusterRow
	for range 2000 {
		row := *held(func(r *hubv1.ClusterRow) {
			r.Reason, r.ChangedByCluster = hubv1.ReasonChangedByCluster, strings.Repeat("x", maxMessage)
			r.Message = strings.Repeat("y", maxMessage)
		})
		rows = append(rows, row)
	}
	for _, row := range fit(&status, rows, input(shallHold, nil)) {
		if n := len([]rune(row.ChangedByCluster)); n == 0 || n > minChanged {
			t.Fatalf("%d characters", n)
		}
	}
}
