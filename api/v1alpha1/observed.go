package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

const (
	// ObservedWithin is the greatest age of status.lastObservedTime of a MemberCluster while its watches deliver and a
	// hub runs. An older time means that the cluster is not observed.
	ObservedWithin = time.Minute
	// OfferAbandonAfter is how long a cluster has not been observed before messages offer to give up what it holds. That
	// leaves copies behind for good, and most outages end sooner.
	OfferAbandonAfter = time.Hour
)

// MayBeLost says whether the cluster has not been observed for so long that messages may offer to give it up. For a
// cluster that never was observed, the time begins with the last transition of its condition Ready.
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
