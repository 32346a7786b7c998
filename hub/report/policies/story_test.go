package policies

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheStoryOfAPlacement(t *testing.T) {
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	observed := metav1.NewTime(noon)
	is := func(kind string, status metav1.ConditionStatus, reason string) hubv1.PlacementStatus {
		var s hubv1.PlacementStatus
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "1 of 2 objects"})
		return s
	}
	healthy := func(status metav1.ConditionStatus, reason string) hubv1.PlacementStatus {
		return is(hubv1.ConditionHealthy, status, reason)
	}
	good, bad, slow := healthy(yes, hubv1.ReasonHealthyEverywhere), healthy(no, hubv1.ReasonDegradedOnSome), healthy(no, hubv1.ReasonProgressingOnSome)
	away := healthy(unknown, hubv1.ReasonPartiallyUnknown)
	away.OldestObservedTime = &observed
	approval := good
	approval.Rollout = &hubv1.PlacementRollout{Phase: hubv1.RolloutWaitingForApproval, Wave: "china", Revision: 7, Message: "wave china waits"}
	degraded := event{corev1.EventTypeWarning, EventDegraded, "Observe", "DegradedOnSome: 1 of 2 objects"}
	well := event{corev1.EventTypeNormal, EventHealthy, "Observe", "1 of 2 objects"}

	tests := map[string]struct {
		statuses []hubv1.PlacementStatus // one status every 10 s
		want     []event
	}{
		"a fan-out without trouble is no story": {
			statuses: []hubv1.PlacementStatus{{}, healthy(unknown, hubv1.ReasonNotYetReported), slow, good},
		},
		"copies that wait for other objects are no story": {
			statuses: []hubv1.PlacementStatus{is(hubv1.ConditionApplied, no, hubv1.ReasonWaitingOnSome), is(hubv1.ConditionApplied, yes, hubv1.ReasonAppliedEverywhere)},
		},
		"trouble and its end are told": {
			statuses: []hubv1.PlacementStatus{good, bad, good}, want: []event{degraded, well},
		},
		"also if something comes between": {
			statuses: []hubv1.PlacementStatus{good, bad, slow, healthy(unknown, hubv1.ReasonPartiallyUnknown), good}, want: []event{degraded, well},
		},
		"the end is told after a restart, too": {
			statuses: []hubv1.PlacementStatus{bad, good}, want: []event{well},
		},
		"trouble that comes and goes is told once a minute": {
			statuses: []hubv1.PlacementStatus{good, bad, good, bad, good, bad, good, bad}, want: []event{degraded, well, well, well, degraded},
		},
		"clusters that go away and come back are told once for all objects": {
			statuses: []hubv1.PlacementStatus{good, away, away, good},
			want: []event{
				{corev1.EventTypeWarning, EventClustersAway, "Observe", "eu-fra-1: no answer since 2026-03-01T12:00:00Z; their copies are shown as of that time: see kubectl describe membercluster"},
				{corev1.EventTypeNormal, EventClustersBack, "Observe", "all clusters answer again"},
			},
		},
		"a cluster selector that matches no cluster": {
			statuses: []hubv1.PlacementStatus{is(hubv1.ConditionScheduled, yes, hubv1.ReasonScheduled), is(hubv1.ConditionScheduled, no, hubv1.ReasonNoClusterSelected)},
			want:     []event{{corev1.EventTypeWarning, EventNotScheduled, "Schedule", "NoClusterSelected: 1 of 2 objects"}},
		},
		"a wave that waits for a user is told once": {
			statuses: []hubv1.PlacementStatus{good, approval, approval},
			want:     []event{{corev1.EventTypeWarning, hubv1.ReasonWaitingForApproval, "RollOut/china/7", "wave china waits"}},
		},
		"a placement that the hub cannot follow": {
			statuses: []hubv1.PlacementStatus{{}, is(hubv1.ConditionAccepted, no, hubv1.ReasonKindNotServed), is(hubv1.ConditionAccepted, yes, hubv1.ReasonAccepted)},
			want: []event{
				{corev1.EventTypeWarning, EventNotAccepted, "Accept", "KindNotServed: 1 of 2 objects"},
				{corev1.EventTypeNormal, EventAccepted, "Accept", "1 of 2 objects"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &record{events: map[string]lastEvent{}}
			var got []event
			for i := range tc.statuses[1:] {
				got = append(got, m.story(tc.statuses[i], tc.statuses[i+1], []string{"eu-fra-1"}, noon.Add(time.Duration(i)*10*time.Second))...)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(event{})); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
