package view

import (
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// WaveThatWaits returns a text about the current wave of a placement's rollouts, if this wave waits for the cluster
// from now on, because the cluster is cordoned or suspended. The text is empty if no such wave waits. following are
// bindings; a binding of another placement is ignored.
func WaveThatWaits(p hubv1.PlacementObject, following []hubv1.BindingObject, cluster *hubv1.MemberCluster) string {
	policy := p.PlacementSpec().Rollout
	if policy == nil || len(policy.Waves) == 0 {
		return ""
	}
	wave := policy.Waves[decide.WaveOf(policy, cluster)].Name
	for _, b := range following {
		spec := b.BindingSpec()
		if of := spec.Rollout; !rollout.Follows(b, p) || of == nil || of.Wave != wave || of.Failed != 0 || of.Start != "" {
			continue
		}
		if t := spec.Target(cluster.Name); t != nil && t.State == hubv1.TargetPresent {
			return fmt.Sprintf("wave %s waits for %s now: %s", wave, cluster.Name, rollout.NamesOf(p).Leaving(cluster.Name))
		}
	}
	return ""
}
