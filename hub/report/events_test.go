package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestPhases(t *testing.T) {
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	row := func(name string, generation int64, applied metav1.ConditionStatus, health hubv1.Health, reason string) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: name, Generation: generation, Applied: applied, Health: health, Reason: reason}
	}
	status := func(applied, healthy string, rows ...hubv1.ClusterRow) hubv1.BindingStatus {
		return hubv1.BindingStatus{
			Summary: hubv1.BindingSummary{Desired: 2}, Clusters: rows,
			Conditions: []metav1.Condition{{Type: hubv1.ConditionApplied, Reason: applied}, {Type: hubv1.ConditionHealthy, Reason: healthy}},
		}
	}
	good := status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonHealthyEverywhere,
		row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 1, yes, hubv1.HealthHealthy, ""))
	spoken := *good.DeepCopy()
	spoken.Conditions = append(spoken.Conditions, metav1.Condition{Type: hubv1.ConditionStatusWritten, Status: yes, Reason: hubv1.ReasonWritten})
	normal := func(reason, action, note string) event { return event{corev1.EventTypeNormal, reason, action, note} }
	warning := func(reason, action, note string) event { return event{corev1.EventTypeWarning, reason, action, note} }
	appliedTo2 := normal(EventApplied, "Apply", "applied to 2 clusters")

	tests := map[string]struct {
		before, after hubv1.BindingStatus
		reported      troubles
		targets       []hubv1.BindingTarget
		want          []event
	}{
		"a fan-out without trouble gives one event": {
			after: good, want: []event{appliedTo2},
		},
		"none if the status of the object says so": {
			after: spoken,
		},
		"after a failure that was told success is told, too": {
			before: status(hubv1.ReasonFailedOnSome, hubv1.ReasonUnknownOnSome,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 1, no, hubv1.HealthUnknown, hubv1.ReasonForbidden)),
			after: spoken, want: []event{appliedTo2},
		},
		"nothing happened": {
			before: good, after: good,
		},
		"a new generation that is everywhere is no news": {
			before: good,
			after: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonHealthyEverywhere,
				row("a", 2, yes, hubv1.HealthHealthy, ""), row("b", 2, yes, hubv1.HealthHealthy, "")),
		},
		"a cluster that holds the object for the first time is told": {
			before: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonHealthyEverywhere, row("a", 1, yes, hubv1.HealthHealthy, "")),
			after:  good,
			want:   []event{appliedTo2},
		},
		"and not while it is on the way": {
			before: good,
			after: status(hubv1.ReasonNotYetReported, hubv1.ReasonProgressingOnSome,
				row("a", 2, yes, hubv1.HealthProgressing, ""), row("b", 1, unknown, hubv1.HealthHealthy, hubv1.ReasonPending)),
		},
		"a link that comes back is no news": {
			before: status(hubv1.ReasonUnknownOnSome, hubv1.ReasonUnknownOnSome,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 1, unknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable)),
			after: good,
		},
		"a failure names cluster and reason": {
			after: status(hubv1.ReasonFailedOnSome, hubv1.ReasonUnknownOnSome,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 0, no, hubv1.HealthUnknown, hubv1.ReasonForbidden)),
			want: []event{warning(EventApplyFailed, "Apply", "failed on 1 cluster: b (Forbidden)")},
		},
		"a copy that is newer than the hub is told with the way out": {
			before: good,
			after: status(hubv1.ReasonHubIsOlder, hubv1.ReasonUnknownOnSome,
				row("a", 1, no, hubv1.HealthHealthy, hubv1.ReasonForbidden), row("b", 1, no, hubv1.HealthUnknown, hubv1.ReasonHubIsOlder)),
			want: []event{warning(EventHubIsOlder, "Apply", "held on 1 cluster: b (HubIsOlder)")},
		},
		"and once": {
			before: status(hubv1.ReasonHubIsOlder, hubv1.ReasonUnknownOnSome,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 1, no, hubv1.HealthUnknown, hubv1.ReasonHubIsOlder)),
			after: status(hubv1.ReasonHubIsOlder, hubv1.ReasonUnknownOnSome,
				row("a", 1, no, hubv1.HealthHealthy, hubv1.ReasonHubIsOlder), row("b", 1, no, hubv1.HealthUnknown, hubv1.ReasonHubIsOlder)),
		},
		"success is told after it was accepted": {
			before: status(hubv1.ReasonHubIsOlder, hubv1.ReasonUnknownOnSome,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 1, no, hubv1.HealthUnknown, hubv1.ReasonHubIsOlder)),
			after: good, want: []event{appliedTo2},
		},
		"a suspended cluster is no failure": {
			after: status(hubv1.ReasonFailedOnSome, hubv1.ReasonUnknownOnSome,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 0, no, hubv1.HealthUnknown, hubv1.ReasonSuspended)),
		},
		"after a failure success is told": {
			before: status(hubv1.ReasonFailedOnSome, hubv1.ReasonUnknownOnSome,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 1, no, hubv1.HealthUnknown, hubv1.ReasonForbidden)),
			after: good, want: []event{appliedTo2},
		},
		"an object that cannot get healthy": {
			before: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonProgressingOnSome,
				row("a", 1, yes, hubv1.HealthProgressing, ""), row("b", 1, yes, hubv1.HealthHealthy, "")),
			after: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonDegradedOnSome,
				row("a", 1, yes, hubv1.HealthDegraded, "CrashLoop"), row("b", 1, yes, hubv1.HealthHealthy, "")),
			want: []event{warning(EventDegraded, "Observe", "degraded on 1 cluster: a (CrashLoop)")},
		},
		"one that is healthy again": {
			before: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonDegradedOnSome,
				row("a", 1, yes, hubv1.HealthDegraded, "CrashLoop"), row("b", 1, yes, hubv1.HealthHealthy, "")),
			after: good, want: []event{normal(EventHealthy, "Observe", "healthy again on 2 clusters")},
		},
		"also if it got there slowly": {
			reported: troubles{health: true},
			before: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonProgressingOnSome,
				row("a", 1, yes, hubv1.HealthProgressing, ""), row("b", 1, yes, hubv1.HealthHealthy, "")),
			after: good, want: []event{normal(EventHealthy, "Observe", "healthy again on 2 clusters")},
		},
		"one that does not get healthy is told once": {
			reported: troubles{health: true},
			before: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonProgressingOnSome,
				row("a", 1, yes, hubv1.HealthProgressing, ""), row("b", 1, yes, hubv1.HealthHealthy, "")),
			after: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonDegradedOnSome,
				row("a", 1, yes, hubv1.HealthDegraded, "CrashLoop"), row("b", 1, yes, hubv1.HealthHealthy, "")),
		},
		"success is told also if it came slowly after a failure": {
			reported: troubles{applying: true},
			before: status(hubv1.ReasonNotYetReported, hubv1.ReasonProgressingOnSome,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 1, unknown, hubv1.HealthUnknown, hubv1.ReasonPending)),
			after: spoken, want: []event{appliedTo2},
		},
		"a withdrawal names its cluster": {
			targets: []hubv1.BindingTarget{present("a"), absent("b")},
			before: status(hubv1.ReasonNotYetReported, hubv1.ReasonHealthyEverywhere,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 1, no, hubv1.HealthProgressing, hubv1.ReasonDeleting)),
			after: status(hubv1.ReasonAppliedEverywhere, hubv1.ReasonHealthyEverywhere,
				row("a", 1, yes, hubv1.HealthHealthy, ""), row("b", 0, no, hubv1.HealthUnknown, hubv1.ReasonWithdrawn)),
			want: []event{normal(EventWithdrawn, "Withdraw", "withdrawn from 1 cluster: b")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.BindingSpec{Clusters: []hubv1.BindingTarget{present("a"), present("b")}}
			if tc.targets != nil {
				spec.Clusters = tc.targets
			}
			if diff := cmp.Diff(tc.want, tc.reported.phases(&tc.before, &tc.after, spec), cmp.AllowUnexported(event{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDriftEventCountsWhatItDoesNotName(t *testing.T) {
	d := drifts{count: 3, cluster: "a", field: member.FieldDrift{Path: ".spec.replicas", Manager: "kubectl-edit"}}
	want := "restored .spec.replicas on a after a change by kubectl-edit; 3 corrections in all"
	if got := driftEvent(d).note; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
