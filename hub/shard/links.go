package shard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanse-dev/hanse/member"
)

// Links are the links of the members that this replica works on.
type Links struct {
	member.Links
	coordinator *Coordinator
}

// Share limits links to the members that the replica of the Coordinator works on. A member that it lets go loses its
// link first.
func (c *Coordinator) Share(links member.Links) *Links {
	return &Links{Links: links, coordinator: c}
}

// Holds says whether this replica works on the cluster.
func (l *Links) Holds(cluster string) bool { return l.coordinator.Holds(cluster) }

// Ensure implements member.Links: a link is made only while the cluster is held, and removed before it is let go.
func (l *Links) Ensure(cluster string, kubeconfig []byte, expectedID string) {
	l.coordinator.IfHeld(cluster, func() { l.Links.Ensure(cluster, kubeconfig, expectedID) })
}

// Confirmed says whether a cluster that this replica works on has been tried. Of the clusters of other replicas it
// knows no more than their status.
func (l *Links) Confirmed(cluster string) bool {
	if !l.Holds(cluster) {
		return true
	}
	state, ok := l.State(cluster)
	return ok && state.Ready != metav1.ConditionUnknown
}
