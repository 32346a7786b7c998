package schedule

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// capacityHolds is how long a cluster must have said the same of its nodes before replicas are moved for it.
const capacityHolds = 5 * time.Minute

// capacities are what clusters can allocate, as far as that is believed. A node that comes and goes shall move no replicas: what a cluster
// says is believed once it has differed from what was believed before, by more than a tenth, for capacityHolds. What it says first, after a
// start of the hub, is taken for the time being, and counts as unsettled for as long. A nil value believes everything at once.
type capacities struct {
	mu    sync.Mutex
	known map[types.UID]*capacity
}

type capacity struct {
	believed corev1.ResourceList
	settled  bool
	since    time.Time // when it was first seen, or has begun to differ; zero if neither counts
}

// of returns what a cluster can allocate; known is false if its nodes have never been read. A wait is how long another answer may be
// under way.
func (c *capacities) of(m *hubv1.MemberCluster, now time.Time) (allocatable corev1.ResourceList, known bool, wait time.Duration) {
	says := m.Status.Allocatable
	if says == nil && m.Status.Capacity == nil && m.Status.Nodes.Total == 0 {
		return nil, false, 0
	}
	if c == nil {
		return says, true, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[m.UID]
	if k == nil {
		if c.known == nil || len(c.known) >= remembered {
			c.known = map[types.UID]*capacity{}
		}
		k = &capacity{since: now}
		c.known[m.UID] = k
	}
	wait = k.hear(says, now)
	return k.believed, true, wait
}

// hear takes in what a cluster says, and returns how long something is to be waited for.
func (k *capacity) hear(says corev1.ResourceList, now time.Time) time.Duration {
	same := alike(k.believed, says)
	switch {
	case !k.settled && !same:
		k.believed, k.since = says, now
	case same && k.settled:
		k.since = time.Time{}
		return 0
	case k.since.IsZero():
		k.since = now
	}
	wait := capacityHolds - now.Sub(k.since)
	if wait <= 0 {
		k.believed, k.settled, k.since = says, true, time.Time{}
		return 0
	}
	return wait
}

// alike says whether no resource differs by more than a tenth.
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
