package schedule

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// capacityHolds is how long a cluster must report another capacity before decisions use the new capacity and move
// replicas.
const capacityHolds = 5 * time.Minute

// maxCapacities is the maximum number of clusters whose capacity is recorded.
const maxCapacities = 10_000

// capacities has the capacity of each cluster that decisions use. A node that disappears for a short time must move no
// replicas. A new capacity is therefore used only after it has differed from the used one by more than a tenth for
// capacityHolds. The first capacity after the hub's start is used at once. For the time capacityHolds, it counts as not
// settled: it may soon change again, and alone moves no replicas.
type capacities struct {
	mu    sync.Mutex
	known map[types.UID]*capacity
}

type capacity struct {
	accepted corev1.ResourceList
	settled  bool
	since    time.Time // when the capacity was first seen, or began to differ; zero if settled
}

// capacitiesFor returns the capacities of all clusters if a placement may divide replicas of the kind by capacity.
// Otherwise it returns nil.
func (s *Scheduler) capacitiesFor(kind schema.GroupKind, f decide.Facts, now time.Time) map[string]decide.Capacity {
	if !slices.ContainsFunc(f.Placements, func(p hubv1.PlacementObject) bool {
		return decide.DividesByCapacity(p.PlacementSpec()) && mentions(p, kind)
	}) {
		return nil
	}
	out := map[string]decide.Capacity{}
	for _, c := range f.Clusters {
		if b, known := s.inputs.capacities.of(c, now); known {
			out[c.Name] = b
		}
	}
	return out
}

// of returns the capacity that decisions use for a cluster. known is false if the hub has never read the nodes of the
// cluster.
func (c *capacities) of(m *hubv1.MemberCluster, now time.Time) (b decide.Capacity, known bool) {
	reported, known := decide.Allocatable(m)
	if !known {
		return decide.Capacity{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[m.UID]
	if k == nil {
		if c.known == nil || len(c.known) >= maxCapacities {
			c.known = map[types.UID]*capacity{}
		}
		k = &capacity{since: now}
		c.known[m.UID] = k
	}
	wait := k.report(reported, now)
	return decide.Capacity{Allocatable: k.accepted, SettlesIn: wait}, true
}

// held is called when the reported capacity of a cluster has changed. It reports whether decisions keep the capacity
// that they use. wait is the time after which they use the new one, or 0 if the two are alike.
func (c *capacities) held(m *hubv1.MemberCluster, now time.Time) (wait time.Duration, held bool) {
	reported, known := decide.Allocatable(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[m.UID]
	if k == nil || !known {
		return 0, false // no decision has used it
	}
	used := k.accepted
	wait = k.report(reported, now)
	return wait, k.settled && alike(used, k.accepted)
}

// report records the capacity that a cluster reports at time now. It returns how long the capacity must still stay the
// same until decisions rely on it (it is then settled). The result is 0 if it is settled.
func (k *capacity) report(reported corev1.ResourceList, now time.Time) time.Duration {
	same := alike(k.accepted, reported)
	switch {
	case !k.settled && !same:
		k.accepted, k.since = reported, now
	case same && k.settled:
		k.since = time.Time{}
		return 0
	case k.since.IsZero():
		k.since = now
	}
	wait := capacityHolds - now.Sub(k.since)
	if wait <= 0 {
		k.accepted, k.settled, k.since = reported, true, time.Time{}
		return 0
	}
	return wait
}

// alike reports whether the amount of each resource in the two lists differs by at most a tenth.
func alike(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		y, ok := b[name]
		if !ok {
			return false
		}
		p, q := x.AsApproximateFloat64(), y.AsApproximateFloat64()
		if d := p - q; max(d, -d) > max(p, q)/10 {
			return false
		}
	}
	return true
}
