package policies

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// placementReady returns the condition Ready of a placement, for tools that read only this condition. It has the status
// and reason of the first other condition that is not good, such as Accepted or Applied. If the placement decides about
// no object, Ready is True as soon as Accepted is True, unless the hub cannot read the objects of a selected kind.
func placementReady(s *hubv1.PlacementStatus, generation int64) metav1.Condition {
	c := reported(s.Conditions, hubv1.ConditionAccepted, generation)
	if scheduled := reported(s.Conditions, hubv1.ConditionScheduled, generation); c.Status == metav1.ConditionUnknown && scheduled.Reason == hubv1.ReasonKindUnreadable {
		return ready(scheduled) // until the hub has listed all selected kinds, it does not report Accepted
	}
	if c.Status != metav1.ConditionTrue {
		return ready(c)
	}
	if held := meta.FindStatusCondition(s.Conditions, hubv1.ConditionRemovalHeld); held != nil && held.Status == metav1.ConditionTrue {
		return ready(metav1.Condition{Status: metav1.ConditionFalse, Reason: held.Reason, Message: held.Message})
	}
	kinds := []string{hubv1.ConditionScheduled, hubv1.ConditionApplied, hubv1.ConditionHealthy}
	if meta.FindStatusCondition(s.Conditions, hubv1.ConditionRolledOut) != nil {
		kinds = append(kinds, hubv1.ConditionRolledOut)
	}
	for _, kind := range kinds {
		c = reported(s.Conditions, kind, generation)
		if s.Objects == 0 && c.Reason != hubv1.ReasonKindUnreadable {
			c.Status = metav1.ConditionTrue
			break
		}
		if c.Status != metav1.ConditionTrue {
			break
		}
	}
	return ready(c)
}

// reported returns the condition of the given type. If the hub has not set this condition for the given generation, the
// result is Unknown.
func reported(conditions []metav1.Condition, kind string, generation int64) metav1.Condition {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.ObservedGeneration != generation {
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: hubv1.ReasonPending, Message: "the hub has not reported " + kind + " yet"}
	}
	return *c
}

// overridesReady returns the condition Ready of an override policy. Ready is False if the policy is not accepted, or if
// it conflicts with another policy.
func overridesReady(accepted, conflict metav1.Condition) metav1.Condition {
	if accepted.Status == metav1.ConditionTrue && conflict.Status == metav1.ConditionTrue {
		return ready(metav1.Condition{Status: metav1.ConditionFalse, Reason: conflict.Reason, Message: conflict.Message})
	}
	return ready(accepted)
}

// ready returns the condition Ready with the status, reason and message of the given condition.
func ready(c metav1.Condition) metav1.Condition {
	return metav1.Condition{Type: hubv1.ConditionReady, Status: c.Status, Reason: c.Reason, Message: c.Message}
}
