package schedule

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// reportDrains updates status.drain of the MemberClusters. It removes the field if a cluster is not drained any more.
func (s *Scheduler) reportDrains(ctx context.Context) error {
	fleet, err := s.opts.Clusters.Current(ctx)
	if err != nil {
		return err
	}
	for _, c := range fleet.Clusters {
		now := s.drained(c)
		if equality.Semantic.DeepEqual(c.Status.Drain, now) {
			continue
		}
		after := c.DeepCopy()
		after.Status.Drain = now
		if err := s.opts.Client.Status().Patch(ctx, after, client.MergeFrom(c)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("writing status.drain of MemberCluster %s: %w", c.Name, err)
		}
	}
	return nil
}

// drained returns the status of a drain. It returns nil if the cluster is not drained.
func (s *Scheduler) drained(c *hubv1.MemberCluster) *hubv1.DrainStatus {
	if c.Spec.Drain == nil {
		s.shared.limits.drains.ended(c.Name)
		return nil
	}
	present := int32(s.inputs.counts.objectsOn(c.Name))
	left, cannot := s.shared.limits.drains.left(c.Name)
	left.Evicted = s.shared.limits.drains.evictedFrom(c.Name, c.Status.Drain)
	leaving := left.Remaining - left.Moving
	left.Remaining += present
	left.Total = max(left.Total, left.Remaining)
	if c.Status.Drain != nil {
		left.Total = max(left.Total, c.Status.Drain.Total)
	}

	var parts []string
	add := func(n int32, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 object "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d objects %s", n, many))
		}
	}
	add(left.Moving, "is moving: its replacement is not Healthy yet", "are moving: their replacements are not Healthy yet")
	add(max(0, present-left.Blocked-left.Staying), "waits for the drain limit", "wait for the drain limit")
	if c.IsAway() {
		add(leaving, "is replaced and is withdrawn when the cluster answers", "are replaced and are withdrawn when the cluster answers")
	} else {
		add(leaving, "is being withdrawn", "are being withdrawn")
	}
	add(left.Blocked, "cannot go to another cluster", "cannot go to another cluster")
	name := func(ids []key) {
		const maxNamed = 3
		var names []string
		for _, id := range ids[:min(maxNamed, len(ids))] {
			names = append(names, id.String())
		}
		if names != nil {
			parts[len(parts)-1] += ", such as " + strings.Join(names, ", ")
		}
	}
	name(cannot.blocked)
	add(left.Staying, "stays: its placement puts the object on every cluster", "stay: their placements put them on every cluster")
	name(cannot.staying)
	if parts == nil {
		parts = []string{"no object is left"}
	}
	left.Message = decide.Short(strings.Join(parts, "; "))
	return ptr.To(left)
}
