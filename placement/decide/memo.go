package decide

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

// memoSize is the maximum number of specs, and of clusters, in a Memo. A full cache is emptied before the next entry is
// added.
const memoSize = 10_000

// Memo caches compiled specs of placements, and converted clusters. Both are expensive to compute, and are the same for
// many objects. A nil Memo caches nothing.
type Memo struct {
	mu       sync.Mutex
	specs    map[types.UID]compiledSpec
	clusters map[types.UID]describedCluster
}

type compiledSpec struct {
	generation int64
	compiled   *placement.Compiled
	err        error
}

type describedCluster struct {
	version string
	cluster placement.Cluster
}

// Compile returns the compiled spec of a placement. It compiles each generation of a placement only once.
func (m *Memo) Compile(p hubv1.PlacementObject) (*placement.Compiled, error) {
	if m == nil {
		return placement.Compile(p.PlacementSpec())
	}
	m.mu.Lock()
	known, ok := m.specs[p.GetUID()]
	m.mu.Unlock()
	if ok && known.generation == p.GetGeneration() {
		return known.compiled, known.err
	}
	now := compiledSpec{generation: p.GetGeneration()}
	now.compiled, now.err = placement.Compile(p.PlacementSpec())
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.specs == nil || len(m.specs) >= memoSize {
		m.specs = map[types.UID]compiledSpec{}
	}
	m.specs[p.GetUID()] = now
	return now.compiled, now.err
}

// cluster returns ClusterOf(c), computed once for each resourceVersion. Callers share the maps in the result, and must
// not change them.
func (m *Memo) cluster(c *hubv1.MemberCluster) placement.Cluster {
	if m == nil {
		return ClusterOf(c)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.clusters[c.UID]; ok && known.version == c.ResourceVersion {
		return known.cluster
	}
	if m.clusters == nil || len(m.clusters) >= memoSize {
		m.clusters = map[types.UID]describedCluster{}
	}
	now := describedCluster{version: c.ResourceVersion, cluster: ClusterOf(c)}
	if before := m.clusters[c.UID].cluster; SameCluster(before, now.cluster) {
		now.cluster = before // share equal values: most writes of a MemberCluster only renew a time
	}
	m.clusters[c.UID] = now
	return now.cluster
}

// ClusterOf converts a MemberCluster for package placement. It does not set the fields that depend on an object.
func ClusterOf(c *hubv1.MemberCluster) placement.Cluster {
	return placement.Cluster{
		Name:          c.Name,
		Revision:      revision(c),
		Labels:        c.SelectableLabels(),
		Annotations:   c.Annotations,
		Taints:        slices.Concat(c.Spec.Taints, c.Status.Taints),
		Unschedulable: c.Spec.Unschedulable,
		Ready:         meta.IsStatusConditionTrue(c.Status.Conditions, hubv1.ConditionReady),
		Departure: placement.Departure{
			Draining:    c.Spec.Drain != nil,
			TakesAway:   c.Spec.Drain != nil && c.Spec.Drain.Evict,
			Leaving:     c.DeletionTimestamp != nil,
			LeavePolicy: cmp.Or(c.Spec.Leave.Policy, hubv1.RemovalOrphan),
		},
		Facts: placement.Facts{
			Version:      c.Status.Version.Kubernetes,
			Capacity:     c.Status.Capacity,
			Allocatable:  c.Status.Allocatable,
			Nodes:        c.Status.Nodes,
			Served:       servedBy(c),
			ServedInFull: c.Status.APIResources != nil && len(c.Status.APIResources) < hubv1.MaxAPIResources,
			Operators:    c.Status.Operators,
		},
	}
}

// SameCluster reports whether a and b, two states of one cluster, lead to the same decisions.
func SameCluster(a, b placement.Cluster) bool {
	a.Revision, b.Revision = "", ""
	return equality.Semantic.DeepEqual(a, b)
}

// servedBy returns the versions that a cluster serves, by kind. It is nil if the cluster has not reported any kind yet.
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

// revision returns the cache key of a cluster. It is empty if the cluster was never stored on an API server.
func revision(c *hubv1.MemberCluster) string {
	if c.ResourceVersion == "" {
		return ""
	}
	return string(c.UID) + "/" + c.ResourceVersion
}
