package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

const (
	// ObservedWithin is the maximum age of status.lastObservedTime of a MemberCluster while a hub runs and the cluster's
	// watches deliver events. If the time is older, no hub observes the cluster now.
	ObservedWithin = time.Minute
	// OfferAbandonAfter is a limit for messages to users. If a cluster was not observed for this time, the messages
	// suggest to abandon its copies, which means to leave them there. Most outages end sooner, and abandoned copies stay
	// on the cluster for ever.
	OfferAbandonAfter = time.Hour
)

// IsAway reports whether the condition Ready of a cluster is not True. It returns true for a cluster that the hub has
// not processed yet.
func (c *MemberCluster) IsAway() bool {
	return !meta.IsStatusConditionTrue(c.Status.Conditions, ConditionReady)
}

// IsOverdue reports whether the last observation of the cluster is older than ObservedWithin. If it returns true, the
// condition Ready may be out of date.
func (c *MemberCluster) IsOverdue(now time.Time) bool {
	at := c.Status.LastObservedTime
	return at != nil && now.Sub(at.Time) > ObservedWithin
}

// IsObserved reports whether the hub observes the cluster now. If it returns false, the console, hansectl and metrics
// show the states of the cluster and its copies as unknown.
func (c *MemberCluster) IsObserved(now time.Time) bool { return !c.IsAway() && !c.IsOverdue(now) }

// MayBeLost reports whether the hub has not observed the cluster for at least OfferAbandonAfter. For a cluster that was
// never observed, the time counts from the last transition of the condition Ready, or otherwise from the creation.
func (c *MemberCluster) MayBeLost(now time.Time) bool {
	since := c.CreationTimestamp.Time
	if ready := meta.FindStatusCondition(c.Status.Conditions, ConditionReady); ready != nil {
		since = ready.LastTransitionTime.Time
	}
	if at := c.Status.LastObservedTime; at != nil {
		since = at.Time
	}
	return now.Sub(since) >= OfferAbandonAfter
}
