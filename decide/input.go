package decide

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

// Input contains all inputs of the decision on one object. Decide does not change it.
type Input struct {
	Object Object
	// Binding of the object; nil if it has none.
	Binding hubv1.BindingObject
	Facts   Facts
	// Objects is the number of objects that the hub sends to each cluster, by name. A missing cluster gets none.
	Objects map[string]int
	// Capacities of clusters, by name. For a missing cluster, its status counts as settled.
	Capacities map[string]Capacity
	// Limits for this object. Nil: evictions, drains and waits have no limits.
	Limits *Limits
	// Removals has the guard's verdicts on the copies of this object, by cluster. A missing verdict means that the
	// removal was not judged yet. A nil map means that there is no guard: removals need no verdict, unless the binding
	// shows them as held.
	Removals map[string]Verdict
	// Referrers are the objects that need this one. If nil, they are not known; then a decision that follows them stays.
	Referrers []Referrer
	// Staging has the inputs of rollouts. If nil, every target gets the newest state, as in a simulation.
	Staging *Staging
	// Withdrawn is true if every cluster has confirmed its Absent entry, even if the rows do not show it yet.
	Withdrawn bool
	// Unconfirmed is true if the other fields come from a cache. Then every cluster keeps its copy.
	Unconfirmed bool
	// Now is the time of the decision.
	Now time.Time
	// Memo saves repeated work when many objects have the same placements and clusters. It changes no decision. Nil:
	// nothing is saved.
	Memo *Memo
}

// Spec of the binding, empty if there is none.
func (i Input) Spec() *hubv1.BindingSpec {
	if i.Binding == nil {
		return &hubv1.BindingSpec{}
	}
	return i.Binding.BindingSpec()
}

// Object contains the known facts of one hub object.
type Object struct {
	ID    hubv1.ObjectIdentity
	State State
	// Problem says why the object is Unreadable or Undecided.
	Problem string
	// Template is the object at the version at which the hub reads it. It is set if the State is Exists.
	Template *unstructured.Unstructured
	// OtherVersions are further versions at which clusters may get the object, see hubv1.HubObject.
	OtherVersions []string
	// ScalePath is the path of the replicas in the scale subresource, from the kind's definition. A message suggests it
	// to placements that divide without a path. It is empty if not known.
	ScalePath string
	// HubRuns is true if the hub itself would act on objects of this kind.
	HubRuns bool
}

// hub returns the fields of the object that determine the clusters' copies. The State must be Exists.
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
	// Deleted: an uncached read has shown that the object is gone or is being deleted.
	Deleted
	// Unreadable: the object cannot be read now.
	Unreadable
	// Undecided: the object is missing, and no read can tell whether a user deleted it. Its kind may be gone, for
	// example.
	Undecided
)

// Facts are the policies and clusters for decisions on the objects of one namespace. Decisions share them.
type Facts struct {
	// Placements of the namespace, and the cluster-scoped ones.
	Placements []hubv1.PlacementObject
	Clusters   []*hubv1.MemberCluster
	// Overrides are the override policies of the namespace, and the cluster-scoped ones. Without a rollout, policies that
	// exclude no cluster have no effect.
	Overrides       []hubv1.OverridePolicyObject
	NamespaceLabels map[string]string
	// NamespaceRead is false if the namespace and its labels are not known. Cluster-scoped objects have no namespace.
	NamespaceRead bool
}

// Cluster returns the MemberCluster of that name, or nil.
func (f Facts) Cluster(name string) *hubv1.MemberCluster {
	for _, c := range f.Clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Placement returns the placement of a reference, ignoring its UID, or nil.
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

// Capacity is the allocatable amount of a cluster's nodes.
type Capacity struct {
	Allocatable corev1.ResourceList
	// SettlesIn is the time until a changed amount may count; 0 if the amount is settled.
	SettlesIn time.Duration
}

// Limits are the limits of the whole hub, applied to one object.
type Limits struct {
	// MostAway is the maximum percentage of unreachable clusters. Above it, nothing is evicted from them. 0 means
	// placement.DefaultMostAway.
	MostAway int
	// Settling is the remaining time for which a new leader does not trust that clusters are unreachable.
	Settling time.Duration
	// EvictionIn is the time until the eviction rate has a place for this object; 0 if it has one now.
	EvictionIn time.Duration
	// Untried are the clusters that the hub has not probed yet, by name. Their status is not trusted.
	Untried map[string]bool
	// FullDrains are the drained clusters, by name, that the maximum number of other objects is already leaving.
	FullDrains map[string]bool
	// AnswersAwaited is how long decisions have waited for clusters to report whether they serve the kind.
	AnswersAwaited time.Duration
}

// Allocatable returns the allocatable amount of a cluster's nodes from its status. known is false if its nodes have
// never been read.
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

// input is an Input with the state of one run of Decide.
type input struct {
	Input
	// noRoom is true if a first run left replicas without room because the object leaves a drained cluster.
	noRoom bool
	// replay records each step; nil records nothing.
	replay *Replayed
}

// selectable returns the object in the form that policies select.
func (in input) selectable() hubv1.SelectableObject {
	return hubv1.Selectable(in.Object.ID, in.Object.Template, in.Facts.NamespaceLabels)
}

// hub returns the object's fields and revisions that determine the clusters' copies.
func (in input) hub() hubv1.HubObject {
	h := in.Object.hub()
	h.Revisions = in.Spec().Revisions
	return h
}

// snapshot returns the clusters for package placement. held are the clusters that hold the object.
func (in input) snapshot(held map[string]bool) []placement.Cluster {
	out := make([]placement.Cluster, len(in.Facts.Clusters))
	ofOperator := in.selectable().IsOfOperator()
	for i, c := range in.Facts.Clusters {
		out[i] = in.Memo.cluster(c)
		if ofOperator {
			out[i] = withoutOperators(out[i])
		}
		allowed, err := c.Spec.AllowedNamespaces.Allows(in.Object.ID.Namespace, in.Facts.NamespaceLabels)
		out[i].NamespaceAllowed = err == nil && allowed // an invalid selector prevents new copies but removes none
		if out[i].Objects = in.Objects[c.Name]; held[c.Name] {
			out[i].Objects--
		}
	}
	return out
}

// withoutOperators returns a cluster as an object of an operator sees it. Such an object depends on no operator:
// otherwise a decision on it could change the facts that the decision read.
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

// capacity returns the capacity of a cluster. known is false if its nodes have never been read.
func (in input) capacity(m *hubv1.MemberCluster) (c Capacity, known bool) {
	if c, ok := in.Capacities[m.Name]; ok {
		return c, true
	}
	c.Allocatable, known = Allocatable(m)
	return c, known
}
