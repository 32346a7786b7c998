package schedule

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

// remembered bounds how many specs and clusters are remembered; beyond it they are read anew.
const remembered = 10_000

// memory keeps what is dear to make and the same for many objects: specs and clusters as package placement sees them, and how many
// objects each cluster gets. A nil memory remembers nothing.
type memory struct {
	mu       sync.Mutex
	specs    map[types.UID]readSpec
	clusters map[types.UID]seenCluster
	sent     map[types.NamespacedName]sent // by binding
	objects  map[string]int                // objects by cluster
	copies   map[owner]int                 // by placement
}

// sent is where the object of a binding is sent, and for which placement.
type sent struct {
	placement owner
	clusters  []string
}

type readSpec struct {
	generation int64
	compiled   *placement.Compiled
	err        error
}

type seenCluster struct {
	version string
	seen    placement.Cluster
}

// compile reads the spec of a placement, once for each generation.
func (m *memory) compile(p hubv1.PlacementObject) (*placement.Compiled, error) {
	if m == nil {
		return placement.Compile(p.PlacementSpec())
	}
	m.mu.Lock()
	known, ok := m.specs[p.GetUID()]
	m.mu.Unlock()
	if ok && known.generation == p.GetGeneration() {
		return known.compiled, known.err
	}
	now := readSpec{generation: p.GetGeneration()}
	now.compiled, now.err = placement.Compile(p.PlacementSpec())
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.specs == nil || len(m.specs) >= remembered {
		m.specs = map[types.UID]readSpec{}
	}
	m.specs[p.GetUID()] = now
	return now.compiled, now.err
}

// see returns a cluster as package placement sees it, but for what depends on the object. Its maps are shared.
func (m *memory) see(c *hubv1.MemberCluster) placement.Cluster {
	if m == nil {
		return clusterOf(c)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.clusters[c.UID]; ok && known.version == c.ResourceVersion {
		return known.seen
	}
	if m.clusters == nil || len(m.clusters) >= remembered {
		m.clusters = map[types.UID]seenCluster{}
	}
	now := seenCluster{version: c.ResourceVersion, seen: clusterOf(c)}
	if before := m.clusters[c.UID].seen; sameCluster(before, now.seen) {
		now.seen = before // most writes of a MemberCluster say that it is observed, and no more
	}
	m.clusters[c.UID] = now
	return now.seen
}

// clusterOf is what decisions about every object see of a cluster.
func clusterOf(c *hubv1.MemberCluster) placement.Cluster {
	return placement.Cluster{
		Name:          c.Name,
		Revision:      revision(c),
		Labels:        c.SelectableLabels(),
		Annotations:   c.Annotations,
		Taints:        slices.Concat(c.Spec.Taints, c.Status.Taints),
		Unschedulable: c.Spec.Unschedulable,
		Draining:      c.Spec.Drain != nil,
		Ready:         meta.IsStatusConditionTrue(c.Status.Conditions, hubv1.ConditionReady),
		Leaving:       c.DeletionTimestamp != nil,
		LeavePolicy:   cmp.Or(c.Spec.Leave.Policy, hubv1.RemovalOrphan),
		Version:       c.Status.Version.Kubernetes,
		Capacity:      c.Status.Capacity,
		Allocatable:   c.Status.Allocatable,
		Nodes:         c.Status.Nodes,
		Served:        servedBy(c),
		ServedInFull:  c.Status.APIResources != nil && len(c.Status.APIResources) < hubv1.MostAPIResources,
	}
}

// sameCluster says whether two revisions of a cluster are the same to decisions.
func sameCluster(a, b placement.Cluster) bool {
	a.Revision, b.Revision = "", ""
	return equality.Semantic.DeepEqual(a, b)
}

// servedBy is nil for a cluster that has not been asked.
func servedBy(c *hubv1.MemberCluster) map[schema.GroupKind][]string {
	if c.Status.APIResources == nil {
		return nil
	}
	out := make(map[schema.GroupKind][]string, len(c.Status.APIResources))
	for _, r := range c.Status.APIResources {
		out[schema.GroupKind{Group: r.Group, Kind: r.Kind}] = r.Versions
	}
	return out
}

// revision is empty for a cluster that no API server has seen.
func revision(c *hubv1.MemberCluster) string {
	if c.ResourceVersion == "" {
		return ""
	}
	return string(c.UID) + "/" + c.ResourceVersion
}

// objectsOn counts the objects that are sent to a cluster.
func (m *memory) objectsOn(cluster string) int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[cluster]
}

// count takes note of where the object of a binding is sent; b is nil if the binding is gone.
func (m *memory) count(key types.NamespacedName, b hubv1.BindingObject) {
	var now sent
	if b != nil {
		now.placement = ownerOf(b.BindingSpec().PlacementRef)
		for _, e := range b.BindingSpec().Clusters {
			if e.State == hubv1.TargetPresent {
				now.clusters = append(now.clusters, e.Name)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.sent[key]
	if before.placement == now.placement && slices.Equal(before.clusters, now.clusters) {
		return
	}
	if m.sent == nil {
		m.sent, m.copies = map[types.NamespacedName]sent{}, map[owner]int{}
	}
	if m.objects == nil {
		m.objects = map[string]int{}
	}
	for _, c := range before.clusters {
		if m.objects[c]--; m.objects[c] == 0 {
			delete(m.objects, c)
		}
	}
	if m.copies[before.placement] -= len(before.clusters); m.copies[before.placement] <= 0 {
		delete(m.copies, before.placement)
	}
	for _, c := range now.clusters {
		m.objects[c]++
	}
	if now.clusters == nil {
		delete(m.sent, key)
		return
	}
	m.copies[now.placement] += len(now.clusters)
	m.sent[key] = now
}

// copiesOf counts the copies of the objects that follow a placement.
func (m *memory) copiesOf(placement owner) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copies[placement]
}

// bindings is the handler that keeps the counts, and what is moving.
func (m *memory) bindings(d *drains) toolscache.ResourceEventHandler {
	take := func(o any) {
		if b, ok := o.(hubv1.BindingObject); ok {
			key := types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}
			m.count(key, b)
			d.see(key, b)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    take,
		UpdateFunc: func(_, o any) { take(o) },
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if b, ok := o.(hubv1.BindingObject); ok {
				key := types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}
				m.count(key, nil)
				d.see(key, nil)
			}
		},
	}
}
