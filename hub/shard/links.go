package shard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanse-dev/hanse/member"
)

// Links are the links of the members in this replica's shard.
type Links struct {
	member.Links
	coordinator *Coordinator
}

// Share returns links that exist only for members in the shard of this replica. The link of a member ends before the
// member is released.
func (c *Coordinator) Share(links member.Links) *Links {
	return &Links{Links: links, coordinator: c}
}

// Holds reports whether the cluster is in this replica's shard.
func (l *Links) Holds(cluster string) bool { return l.coordinator.Holds(cluster) }

// Ensure implements member.Links. A link exists only while the cluster is in the shard, and ends before the cluster is
// released.
func (l *Links) Ensure(cluster string, kubeconfig []byte, expectedID string) {
	l.coordinator.IfHeld(cluster, func() { l.Links.Ensure(cluster, kubeconfig, expectedID) })
}

// Confirmed reports whether this replica has probed a cluster in its shard. For a cluster of another replica it returns
// true, because this replica knows only the status.
func (l *Links) Confirmed(cluster string) bool {
	if !l.Holds(cluster) {
		return true
	}
	state, ok := l.State(cluster)
	return ok && state.Ready != metav1.ConditionUnknown
}
