package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

const (
	// ObservedWithin is the maximum age of status.lastObservedTime of a MemberCluster while a hub runs and the cluster's
	// watches deliver events. If the time is older, the hub does not observe the cluster.
	ObservedWithin = time.Minute
	// OfferAbandonAfter is how long a cluster must be unobserved before messages suggest to abandon its copies. Most
	// outages end sooner, and abandoned copies stay on the cluster for ever.
	OfferAbandonAfter = time.Hour
)

// IsAway reports whether a cluster does not answer. It returns true for a cluster that the hub has not processed yet.
func (c *MemberCluster) IsAway() bool {
	return !meta.IsStatusConditionTrue(c.Status.Conditions, ConditionReady)
}

// IsOverdue reports whether the last observation of the cluster is older than ObservedWithin. The condition Ready may
// then be out of date.
func (c *MemberCluster) IsOverdue(now time.Time) bool {
	at := c.Status.LastObservedTime
	return at != nil && now.Sub(at.Time) > ObservedWithin
}

// IsHeard reports whether the hub observes the cluster now. If it returns false, pages, hansectl and metrics show the
// states of the cluster and its copies as unknown.
func (c *MemberCluster) IsHeard(now time.Time) bool { return !c.IsAway() && !c.IsOverdue(now) }

// MayBeLost reports whether the cluster has been unobserved for OfferAbandonAfter. If it was never observed, the last
// transition of its condition Ready counts.
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
