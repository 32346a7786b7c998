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
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/placement/decide"
)

// copyCounts counts, over all bindings, the objects that each cluster shall have, and the copies of each placement and
// each bundle.
type copyCounts struct {
	await    func(context.Context) bool // waits until every binding was counted; see CountWhen
	complete atomic.Bool                // whether every binding was counted

	mu      sync.Mutex
	sent    map[types.NamespacedName]sent // counted state, by binding
	objects map[string]int                // number of objects, by cluster
	copies  map[decide.Owner]int          // number of copies, by placement and by bundle
}

// sent has the clusters to which the object of a binding is sent, and the placement and the bundle of the object.
type sent struct {
	groups   []decide.Owner
	clusters []string
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

// placed returns the number of objects that are sent to a cluster.
func (c *copyCounts) placed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sent)
}

// count replaces the numbers of one binding in the counts. b is nil if the binding was deleted.
func (c *copyCounts) count(key types.NamespacedName, b hubv1.BindingObject) {
	var now sent
	if b != nil {
		now.groups = groupsOf(b.BindingSpec())
		for _, e := range b.BindingSpec().Clusters {
			if e.State == hubv1.TargetPresent {
				now.clusters = append(now.clusters, e.Name)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.sent[key]
	if slices.Equal(before.groups, now.groups) && slices.Equal(before.clusters, now.clusters) {
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
	for _, g := range before.groups {
		if c.copies[g] -= len(before.clusters); c.copies[g] <= 0 {
			delete(c.copies, g)
		}
	}
	for _, name := range now.clusters {
		c.objects[name]++
	}
	if now.clusters == nil {
		delete(c.sent, key)
		return
	}
	for _, g := range now.groups {
		c.copies[g] += len(now.clusters)
	}
	c.sent[key] = now
}

// groupsOf returns the placement that the object of a binding follows, and the bundle of the object if it has one.
func groupsOf(spec *hubv1.BindingSpec) []decide.Owner {
	groups := []decide.Owner{decide.OwnerOf(spec.PlacementRef)}
	if bundle := spec.ObjectRef.Bundle; bundle != nil {
		groups = append(groups, decide.OwnerOfBundle(*bundle))
	}
	return groups
}

// copiesOf returns the number of copies of the objects that follow a placement, or that a bundle contains.
func (c *copyCounts) copiesOf(group decide.Owner) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copies[group]
}

// CountWhen sets a function that waits until BindingChanged has been called for every binding of the first list. Call
// CountWhen before the manager starts.
func (s *Scheduler) CountWhen(delivered func(context.Context) bool) {
	s.inputs.counts.await = delivered
}

// count is called after a change of a binding. It updates the number of objects of each cluster, the numbers
// of copies of each placement and bundle, and the objects that are moving away from drained clusters.
func (s *Scheduler) count(c changes.Binding) {
	key := client.ObjectKeyFromObject(cmp.Or(c.After, c.Before))
	s.inputs.counts.count(key, c.After)
	s.shared.limits.drains.see(key, c.After)
}
