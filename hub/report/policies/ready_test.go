package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAPlacementIsReady(t *testing.T) {
	const generation = 4
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "as " + kind + " says", ObservedGeneration: generation}
	}
	accepted, scheduled := condition(hubv1.ConditionAccepted, yes, hubv1.ReasonAccepted), condition(hubv1.ConditionScheduled, yes, hubv1.ReasonScheduled)
	applied, healthy := condition(hubv1.ConditionApplied, yes, hubv1.ReasonAppliedEverywhere), condition(hubv1.ConditionHealthy, yes, hubv1.ReasonHealthyEverywhere)
	older := applied
	older.ObservedGeneration = generation - 1
	tests := map[string]struct {
		objects    int32
		conditions []metav1.Condition
		want       metav1.Condition
	}{
		"when everything is healthy": {
			objects: 1, conditions: []metav1.Condition{accepted, scheduled, applied, healthy},
			want: metav1.Condition{Status: yes, Reason: hubv1.ReasonHealthyEverywhere, Message: "as Healthy says"},
		},
		"not while it is not applied": {
			objects: 1, conditions: []metav1.Condition{accepted, scheduled, condition(hubv1.ConditionApplied, no, hubv1.ReasonFailedOnSome), healthy},
			want: metav1.Condition{Status: no, Reason: hubv1.ReasonFailedOnSome, Message: "as Applied says"},
		},
		"not while its health is unknown": {
			objects: 1, conditions: []metav1.Condition{accepted, scheduled, applied, condition(hubv1.ConditionHealthy, unknown, hubv1.ReasonPartiallyUnknown)},
			want: metav1.Condition{Status: unknown, Reason: hubv1.ReasonPartiallyUnknown, Message: "as Healthy says"},
		},
		"not if it is refused, though its objects are healthy": {
			objects: 1, conditions: []metav1.Condition{condition(hubv1.ConditionAccepted, no, hubv1.ReasonInvalid), scheduled, applied, healthy},
			want: metav1.Condition{Status: no, Reason: hubv1.ReasonInvalid, Message: "as Accepted says"},
		},
		"not before its kinds are listed": {
			objects: 1, conditions: []metav1.Condition{scheduled, applied, healthy},
			want: metav1.Condition{Status: unknown, Reason: hubv1.ReasonPending, Message: "the hub has not reported Accepted yet"},
		},
		"not by a condition of an older generation": {
			objects: 1, conditions: []metav1.Condition{accepted, scheduled, older, healthy},
			want: metav1.Condition{Status: unknown, Reason: hubv1.ReasonPending, Message: "the hub has not reported Applied yet"},
		},
		"when it is accepted and no object follows it": {
			conditions: []metav1.Condition{accepted, condition(hubv1.ConditionScheduled, unknown, hubv1.ReasonNothingSelected)},
			want:       metav1.Condition{Status: yes, Reason: hubv1.ReasonNothingSelected, Message: "as Scheduled says"},
		},
		"not while removals wait for a confirmation": {
			objects: 1, conditions: []metav1.Condition{accepted, scheduled, applied, healthy, condition(hubv1.ConditionRemovalHeld, yes, hubv1.ReasonLastCopy)},
			want: metav1.Condition{Status: no, Reason: hubv1.ReasonLastCopy, Message: "as RemovalHeld says"},
		},
		"not while a rollout goes on": {
			objects: 1, conditions: []metav1.Condition{accepted, scheduled, applied, healthy, condition(hubv1.ConditionRolledOut, no, hubv1.ReasonRolloutMoving)},
			want: metav1.Condition{Status: no, Reason: hubv1.ReasonRolloutMoving, Message: "as RolledOut says"},
		},
		"when a rollout is complete": {
			objects: 1, conditions: []metav1.Condition{accepted, scheduled, applied, healthy, condition(hubv1.ConditionRolledOut, yes, hubv1.ReasonRolloutComplete)},
			want: metav1.Condition{Status: yes, Reason: hubv1.ReasonRolloutComplete, Message: "as RolledOut says"},
		},
		"though no object follows its rollout": {
			conditions: []metav1.Condition{
				accepted, condition(hubv1.ConditionScheduled, unknown, hubv1.ReasonNothingSelected), condition(hubv1.ConditionRolledOut, yes, hubv1.ReasonRolloutComplete),
			},
			want: metav1.Condition{Status: yes, Reason: hubv1.ReasonNothingSelected, Message: "as Scheduled says"},
		},
		"when removals are confirmed": {
			objects: 1, conditions: []metav1.Condition{accepted, scheduled, applied, healthy, condition(hubv1.ConditionRemovalHeld, no, hubv1.ReasonRemovalConfirmed)},
			want: metav1.Condition{Status: yes, Reason: hubv1.ReasonHealthyEverywhere, Message: "as Healthy says"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Type = hubv1.ConditionReady
			got := placementReady(&hubv1.PlacementStatus{Objects: tc.objects, Conditions: tc.conditions}, generation)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnOverridePolicyIsReady(t *testing.T) {
	accepted := metav1.Condition{Type: hubv1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}
	refused := metav1.Condition{Type: hubv1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: hubv1.ReasonInvalid, Message: "wrong"}
	alone := metav1.Condition{Type: hubv1.ConditionConflicted, Status: metav1.ConditionFalse, Reason: hubv1.ReasonNoConflict}
	clash := metav1.Condition{Type: hubv1.ConditionConflicted, Status: metav1.ConditionTrue, Reason: hubv1.ReasonOverrideClash, Message: "two"}
	tests := map[string]struct {
		accepted, conflicted metav1.Condition
		want                 metav1.Condition
	}{
		"when it is accepted without a conflict": {accepted, alone, metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}},
		"not in a conflict":                      {accepted, clash, metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonOverrideClash, Message: "two"}},
		"not if it is refused":                   {refused, clash, metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonInvalid, Message: "wrong"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Type = hubv1.ConditionReady
			if diff := cmp.Diff(tc.want, overridesReady(tc.accepted, tc.conflicted)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
