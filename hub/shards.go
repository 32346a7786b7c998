package hub

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/hanse-dev/hanse/hub/membership"
	"github.com/hanse-dev/hanse/hub/shard"
	"github.com/hanse-dev/hanse/member"
)

// shards are the links of the members that this replica works on.
type shards struct {
	member.Links
	coordinator *shard.Coordinator
	changed     func(cluster string)
}

var _ membership.Links = &shards{}

// coordinate makes the coordinator. config is that of the hub without fences: the coordinator's own writes are what
// fences rest on. notes are what others shall know of this replica.
func (s *shards) coordinate(config *rest.Config, mgr manager.Manager, o Options, notes map[string]string) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := shard.New(shard.Options{
		Config: config, Namespace: o.Namespace, Identity: o.Identity, Members: mgr.GetClient(), Informers: mgr.GetCache(),
		HangUp:  func(cluster string) { s.Links.Remove(cluster) },
		Changed: func(cluster string) { s.changed(cluster) }, Annotations: notes,
		Logger: mgr.GetLogger().WithName("shard"),
	})
	if err != nil {
		return fmt.Errorf("sharing members among replicas: %w", err)
	}
	s.coordinator = c
	return nil
}

// Holds implements membership.Links.
func (s *shards) Holds(cluster string) bool { return s.coordinator.Holds(cluster) }

// Ensure implements member.Links: a link is made only while the cluster is held, and removed before it is let go.
func (s *shards) Ensure(cluster string, kubeconfig []byte, expectedID string) {
	s.coordinator.IfHeld(cluster, func() { s.Links.Ensure(cluster, kubeconfig, expectedID) })
}

// confirmed says whether a cluster that this replica works on has been tried. Of the clusters of other replicas it
// knows no more than their status.
func confirmed(s *shards) func(cluster string) bool {
	return func(cluster string) bool {
		if !s.Holds(cluster) {
			return true
		}
		state, ok := s.State(cluster)
		return ok && state.Ready != metav1.ConditionUnknown
	}
}
