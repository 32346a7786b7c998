package rollup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestTheRowOfAClusterWhosePlaceIsTaken(t *testing.T) {
	evictingTarget := hubv1.BindingTarget{Name: "a", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{
		Reason: hubv1.ReasonEvicted, Replacements: []hubv1.Replacement{{Cluster: "b"}, {Cluster: "c"}, {Cluster: "d"}, {Cluster: "e"}},
	}}
	evicting := func(r *hubv1.ClusterRow) {
		r.Reason = hubv1.ReasonEvicting
		r.Message = "Evicted: the copy is kept up to date. It is not counted, and is withdrawn when the cluster answers and its replacements are healthy: b, c, d and 1 more"
	}
	away := func(r *hubv1.ClusterRow) {
		r.Applied, r.Health, r.Reason, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonEvicting, &earlier
		r.Message = "Evicted: the cluster does not answer. Its copy is not counted, and is withdrawn when the cluster answers and its replacements are healthy: b, c, d and 1 more"
	}
	unreachable := &Fact{LinkReason: hubv1.ReasonUnreachable, LinkMessage: "no answer", LastObserved: earlier.Time}
	valid := &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen()}
	tests := map[string]struct {
		previous *hubv1.ClusterRow
		target   hubv1.BindingTarget
		fact     *Fact
		want     *hubv1.ClusterRow
	}{
		"while it is away":                   {held(), evictingTarget, unreachable, held(away)},
		"while it is away, words stay":       {held(away), evictingTarget, unreachable, held(away)},
		"after a restart":                    {held(away), evictingTarget, nil, held(away)},
		"when it is back and up to date":     {held(away), evictingTarget, valid, held(evicting)},
		"when it is back and not up to date": {held(away), evictingTarget, &Fact{Connected: true, Synced: true}, held(away)},
		"when it refuses the newest spec": {held(away), evictingTarget, &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonManifestRefused)}, held(func(r *hubv1.ClusterRow) {
			r.Applied, r.Health, r.Reason, r.Message, r.Observed = metav1.ConditionFalse, hubv1.HealthUnknown, hubv1.ReasonManifestRefused, "do something", nil
		})},
		"when it is a target again":             {held(evicting), shallHold, valid, held()},
		"when it is, and its watch starts anew": {held(evicting), shallHold, &Fact{Connected: true, Outcome: confirmed()}, held()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := newRow(tc.previous, 2, tc.target, input(tc.target, tc.fact))
			got.LastTransitionTime, tc.want.LastTransitionTime = nil, nil
			if diff := cmp.Diff(*tc.want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClusterWhosePlaceIsTakenIsNotCounted(t *testing.T) {
	gone := hubv1.BindingTarget{Name: "a", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{Reason: hubv1.ReasonEvicted}}
	in := input(gone, &Fact{LinkReason: hubv1.ReasonUnreachable, LinkMessage: "no answer"})
	in.Targets = append(in.Targets, hubv1.BindingTarget{Name: "b", State: hubv1.TargetPresent})
	in.Facts["b"] = Fact{Connected: true, Synced: true, Outcome: confirmed(func(o *member.Outcome) { o.UID = "b" }), Observation: seen(func(o *member.Observation) { o.UID = "b" })}
	status, rows := Status(hubv1.BindingStatus{Clusters: []hubv1.ClusterRow{*held()}, ObservedGeneration: 1}, in)
	if want := (hubv1.BindingSummary{Desired: 1, Applied: 1, Healthy: 1}); !cmp.Equal(status.Summary, want) {
		t.Errorf("summary %+v, want %+v", status.Summary, want)
	}
	for _, kind := range []string{hubv1.ConditionApplied, hubv1.ConditionHealthy} {
		if c := meta.FindStatusCondition(status.Conditions, kind); c.Status != metav1.ConditionTrue || c.Message != "on 1 of 1 clusters" {
			t.Errorf("%s is %s: %s", kind, c.Status, c.Message)
		}
	}
	if len(rows) != 2 || rows[0].Reason != hubv1.ReasonEvicting {
		t.Errorf("rows %+v", rows)
	}
}
