package decide

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

// Input contains all inputs of the decision on one object. Decide does not change it.
type Input struct {
	Object Object
	// Binding is the binding of the object, or nil if the object has no binding.
	Binding hubv1.BindingObject
	Facts   Facts
	// Objects is the number of objects that the hub sends to each cluster, by the name of the cluster. A cluster that is
	// not in the map gets no objects.
	Objects map[string]int
	// Capacities has the capacities of clusters, by name. If a cluster is not in the map, the decision uses the capacity
	// in the status of the MemberCluster, without waiting until it is stable.
	Capacities map[string]Capacity
	// Limits are the limits of the hub on evictions, drains and waits, as they apply to this object. If Limits is nil,
	// there are no limits.
	Limits *Limits
	// Removals has, by cluster, the verdicts of package guard on removals of this object's copies. If a cluster is not in
	// the map, the guard has not judged the removal yet. A nil map means that no guard runs: a removal that the binding
	// shows as held stays held, and every other removal is permitted.
	Removals map[string]Verdict
	// Referrers are the objects that need this object, for example a Deployment that needs this ConfigMap. If Referrers is
	// nil, these objects are not known. An object that no placement selects then keeps its clusters.
	Referrers []Referrer
	// Staging has the inputs of rollouts. It is nil in a simulation, which continues no rollout: each cluster keeps the
	// revision that the binding records. If the binding has no rollout, each cluster gets the newest state.
	Staging *Staging
	// Set is the part of the decision on the object's bundle that concerns the object. It is nil if the hub has not begun
	// to decide on the bundle as a whole, and for objects outside bundles.
	Set *Set
	// Withdrawn is true if every cluster with an Absent entry has confirmed the withdrawal, even if the rows of the
	// binding's status do not show this yet.
	Withdrawn bool
	// Now is the time of the decision.
	Now time.Time
	// Memo is a cache for the decisions on many objects with the same placements and clusters. It changes no decision. It
	// may be nil.
	Memo *Memo
}

// Spec returns the spec of the binding. It is empty if there is no binding.
func (i Input) Spec() *hubv1.BindingSpec {
	if i.Binding == nil {
		return &hubv1.BindingSpec{}
	}
	return i.Binding.BindingSpec()
}

// Object has the known data of one hub object.
type Object struct {
	ID    hubv1.ObjectIdentity
	State State
	// Problem says why State is Unreadable or Undecided. It is empty for other states.
	Problem string
	// Template is the hub object, at the API version at which the hub reads it. It is set if State is Exists.
	Template *unstructured.Unstructured
	// OtherVersions are the API versions, besides the one of Template, at which clusters may get the object. See
	// hubv1.HubObject.
	OtherVersions []string
	// ScalePath is the path of the replicas in the scale subresource of the kind. It is empty if the path is not known. If
	// a placement divides replicas and names no path, a message suggests this path.
	ScalePath string
	// HubRuns is true if controllers of the hub would act on objects of this kind.
	HubRuns bool
	// CutFrom is the bundle that no longer contains the object, although the bundle itself still exists. Package guard
	// judges the removals of such an object, like the removals that an edit of a placement causes. CutFrom is nil if a
	// user has deleted the object or its bundle. It has no meaning unless State is Deleted.
	CutFrom *hubv1.BundleReference
	// KindRecreated is true if the CustomResourceDefinition of the object was created again after the object of the
	// binding. The object of the binding was then deleted with its kind, and not by a user. It has no meaning unless the
	// template has another UID than the binding records.
	KindRecreated bool
	// DeletionSeen is true if the hub has seen the deletion of the earlier object, whose UID the binding records. Package
	// guard does not judge the removal of its copies then, as after any other deletion that the hub sees.
	DeletionSeen bool
	// Unconfirmed is true if State comes from a cache, and no uncached read has confirmed it. The decision then removes no
	// copy.
	Unconfirmed bool
}

// hub returns the object as hubv1.HubObject, which has the data that determines the object's copies on the clusters.
// State must be Exists.
func (o Object) hub() hubv1.HubObject {
	h := hubv1.HubObjectOf(hubv1.ObjectReference{}, o.Template)
	h.OtherVersions = o.OtherVersions
	return h
}

// State says whether the hub object exists.
type State int

const (
	// Exists: the object can be read and is not being deleted.
	Exists State = iota
	// Deleted: an uncached read has shown that the object was deleted, or is being deleted.
	Deleted
	// Unreadable: the object cannot be read now.
	Unreadable
	// Undecided: the object is missing, and no read can tell whether a user deleted it, for example because its kind was
	// deleted.
	Undecided
)

// Facts has the policies and clusters that determine the decisions on the objects of one namespace. All these decisions
// share one Facts.
type Facts struct {
	// Placements are the placements of the namespace, and all ClusterPlacements.
	Placements []hubv1.PlacementObject
	// Clusters are sorted by name. In another order, the method Cluster takes a time that grows with their number.
	Clusters []*hubv1.MemberCluster
	// Overrides are the override policies of the namespace, and the cluster-scoped ones. If an object has no rollout, only
	// policies that exclude clusters affect the decision.
	Overrides       []hubv1.OverridePolicyObject
	NamespaceLabels map[string]string
	// NamespaceRead is true if the namespace was read, so that its labels are known. It has no meaning for cluster-scoped
	// objects.
	NamespaceRead bool
}

// Cluster returns the MemberCluster of that name, or nil if it does not exist.
func (f Facts) Cluster(name string) *hubv1.MemberCluster {
	if i, found := slices.BinarySearchFunc(f.Clusters, name, func(c *hubv1.MemberCluster, name string) int { return strings.Compare(c.Name, name) }); found {
		return f.Clusters[i]
	}
	for _, c := range f.Clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Placement returns the placement of a reference, or nil if it does not exist. It does not compare the UID.
func (f Facts) Placement(ref *hubv1.PlacementReference) hubv1.PlacementObject {
	if ref == nil {
		return nil
	}
	for _, p := range f.Placements {
		if kindOf(p) == ref.Kind && p.GetNamespace() == ref.Namespace && p.GetName() == ref.Name {
			return p
		}
	}
	return nil
}

// Capacity is the allocatable capacity of a cluster's nodes.
type Capacity struct {
	Allocatable corev1.ResourceList
	// SettlesIn is the time until decisions may use the capacity. It is 0 if the capacity has been stable for long enough.
	SettlesIn time.Duration
}

// Limits are the hub-wide limits on evictions, drains and waits, as they apply to one object now.
type Limits struct {
	// MaxAway is the maximum percentage of clusters that may be unreachable. If more are unreachable, the hub evicts
	// nothing from unreachable clusters. 0 means placement.DefaultMaxAway.
	MaxAway int
	// Settling is the remaining time before a new leader of the hub may evict objects from unreachable clusters.
	Settling time.Duration
	// EvictionIn is the time until the hub's eviction rate permits the eviction of this object. It is 0 if the eviction is
	// permitted now.
	EvictionIn time.Duration
	// Untried are the names of the clusters that the hub has not probed yet. Their status may be outdated.
	Untried map[string]bool
	// FullDrains are the names of the drained clusters from which the maximum number of other objects is already moving.
	FullDrains map[string]bool
	// AnswersAwaited is how long decisions on objects of this kind have already waited for clusters to report whether they
	// serve the kind. It is 0 if no decision waits.
	AnswersAwaited time.Duration
}

// Allocatable returns the allocatable capacity of a cluster's nodes, from the status of the MemberCluster. known is
// false if the hub has never read the cluster's nodes.
func Allocatable(c *hubv1.MemberCluster) (allocatable corev1.ResourceList, known bool) {
	s := c.Status
	return s.Allocatable, s.Allocatable != nil || s.Capacity != nil || s.Nodes.Total != 0
}

func kindOf(p hubv1.PlacementObject) string {
	if _, ok := p.(*hubv1.ClusterPlacement); ok {
		return "ClusterPlacement"
	}
	return "Placement"
}

// input is an Input, together with the state of one call of Decide.
type input struct {
	Input
	// noRoom is true if the method follow runs a second time for one decision. The first run moved the object away from a
	// drained cluster, but the other clusters had no room for all its replicas. The second run does not evict the object
	// from drained clusters.
	noRoom bool
	// replay records each step of the decision. If it is nil, no step is recorded.
	replay *Replayed
}

// selectable returns the object in the form that the selectors of policies are compared with.
func (in input) selectable() hubv1.SelectableObject {
	return hubv1.Selectable(in.Object.ID, in.Object.Template, in.Facts.NamespaceLabels)
}

// hub returns the object as hubv1.HubObject, with the revisions that the binding has stored for a rollout.
func (in input) hub() hubv1.HubObject {
	h := in.Object.hub()
	h.Revisions = in.Spec().Revisions
	return h
}

// snapshot returns the clusters in the form that package placement reads. held are the clusters that hold the object.
// The object is not counted among their objects.
func (in input) snapshot(held map[string]bool) []placement.Cluster {
	out := make([]placement.Cluster, len(in.Facts.Clusters))
	ofOperator := in.selectable().IsOfOperator()
	for i, c := range in.Facts.Clusters {
		out[i] = in.Memo.cluster(c)
		if ofOperator {
			out[i] = withoutOperators(out[i])
		}
		allowed, err := c.Spec.AllowedNamespaces.Allows(in.Object.ID.Namespace, in.Facts.NamespaceLabels)
		out[i].NamespaceAllowed = err == nil && allowed // an invalid selector allows no new copies
		if out[i].Objects = in.Objects[c.Name]; held[c.Name] {
			out[i].Objects--
		}
	}
	return out
}

// withoutOperators returns a cluster without its operators, for decisions on an object that belongs to an operator.
// Such a decision can change which operators a cluster has. If the decision read the operators, it would change its own
// input.
func withoutOperators(c placement.Cluster) placement.Cluster {
	if c.Operators == nil {
		return c
	}
	c.Operators = nil
	if c.Revision != "" {
		c.Revision += " without operators"
	}
	return c
}

// capacity returns the allocatable capacity of a cluster's nodes. known is false if the hub has never read the
// cluster's nodes.
func (in input) capacity(m *hubv1.MemberCluster) (c Capacity, known bool) {
	if c, ok := in.Capacities[m.Name]; ok {
		return c, true
	}
	c.Allocatable, known = Allocatable(m)
	return c, known
}
