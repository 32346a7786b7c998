package schedule

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/changes"
)

// copyCounts counts, over all bindings, the objects that each cluster shall have and the copies of each placement.
type copyCounts struct {
	await    func(context.Context) bool // waits until every binding was counted; see CountWhen
	complete atomic.Bool                // whether every binding was counted

	mu      sync.Mutex
	sent    map[types.NamespacedName]sent // counted state, by binding
	objects map[string]int                // number of objects, by cluster
	copies  map[decide.Owner]int          // number of copies, by placement
}

// sent has the clusters to which the object of a binding is sent, and the placement of the object.
type sent struct {
	placement decide.Owner
	clusters  []string
}

// objectsOn returns the number of objects that are sent to a cluster.
func (c *copyCounts) objectsOn(cluster string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[cluster]
}

// objectsByCluster returns the number of objects that are sent to each cluster.
func (c *copyCounts) objectsByCluster() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.objects)
}

// count replaces the numbers of one binding in the counts. b is nil if the binding was deleted.
func (c *copyCounts) count(key types.NamespacedName, b hubv1.BindingObject) {
	var now sent
	if b != nil {
		now.placement = decide.OwnerOf(b.BindingSpec().PlacementRef)
		for _, e := range b.BindingSpec().Clusters {
			if e.State == hubv1.TargetPresent {
				now.clusters = append(now.clusters, e.Name)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.sent[key]
	if before.placement == now.placement && slices.Equal(before.clusters, now.clusters) {
		return
	}
	if c.sent == nil {
		c.sent, c.copies = map[types.NamespacedName]sent{}, map[decide.Owner]int{}
	}
	if c.objects == nil {
		c.objects = map[string]int{}
	}
	for _, name := range before.clusters {
		if c.objects[name]--; c.objects[name] == 0 {
			delete(c.objects, name)
		}
	}
	if c.copies[before.placement] -= len(before.clusters); c.copies[before.placement] <= 0 {
		delete(c.copies, before.placement)
	}
	for _, name := range now.clusters {
		c.objects[name]++
	}
	if now.clusters == nil {
		delete(c.sent, key)
		return
	}
	c.copies[now.placement] += len(now.clusters)
	c.sent[key] = now
}

// copiesOf returns the number of copies of the objects that follow a placement.
func (c *copyCounts) copiesOf(placement decide.Owner) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copies[placement]
}

// CountWhen sets a function that waits until BindingChanged has been called for every binding of the first list. Call
// CountWhen before the manager starts.
func (s *Scheduler) CountWhen(told func(context.Context) bool) { s.counts.await = told }

// count is called after a change of a binding. It updates the number of objects of each cluster, the number of copies
// of each placement, and the objects that are moving away from drained clusters.
func (s *Scheduler) count(c changes.Binding) {
	key := client.ObjectKeyFromObject(cmp.Or(c.After, c.Before))
	s.counts.count(key, c.After)
	s.limits.drains.see(key, c.After)
}
