package shard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanse-dev/hanse/member"
)

// Links are the connections to the members in this replica's shard. A shard is the set of members on which one replica
// works.
type Links struct {
	member.Links
	coordinator *Coordinator
}

// Share returns Links that connect only to members in the shard of this replica. The connection to a member ends before
// the member is released.
func (c *Coordinator) Share(links member.Links) *Links {
	return &Links{Links: links, coordinator: c}
}

// Holds reports whether the cluster is in this replica's shard.
func (l *Links) Holds(cluster string) bool { return l.coordinator.Holds(cluster) }

// Ensure implements member.Links. It connects only to a cluster in this replica's shard. The connection ends before the
// cluster is released.
func (l *Links) Ensure(cluster string, route member.Route, expectedID string) {
	l.coordinator.IfHeld(cluster, func() { l.Links.Ensure(cluster, route, expectedID) })
}

// Confirmed reports whether this replica has probed a cluster in its shard (the clusters that it serves). For a cluster
// in the shard of another replica it returns true, because this replica can only read the cluster's status.
func (l *Links) Confirmed(cluster string) bool {
	if !l.Holds(cluster) {
		return true
	}
	state, ok := l.State(cluster)
	return ok && state.Ready != metav1.ConditionUnknown
}
