package decide

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

// Input is everything that the decision on one object depends on. Decide changes nothing in it.
type Input struct {
	Object Object
	// Binding of the object. Nil: the object has none.
	Binding hubv1.BindingObject
	Facts   Facts
	// Objects is the number of objects that the hub sends to each cluster, by name. A missing cluster gets none.
	Objects map[string]int
	// Capacities of clusters, by name. For a missing cluster, its status counts as settled.
	Capacities map[string]Capacity
	// Limits for this object. Nil: evictions, drains and waits have no limits.
	Limits *Limits
	// Removals are the verdicts of the guard on the copies of this object, by cluster. A missing verdict means: not
	// judged yet. A nil map means that there is no guard: a copy goes at once, unless the binding shows its removal as
	// held.
	Removals map[string]Verdict
	// Staging is what rollouts depend on. Nil: every target holds the newest state, as in a simulation.
	Staging *Staging
	// Withdrawn is true if every cluster has confirmed its Absent entry, although the rows may not say so.
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

// Object is one hub object, as far as it is known.
type Object struct {
	ID    hubv1.ObjectIdentity
	State State
	// Problem says why the object is Unreadable or Undecided.
	Problem string
	// Template is the object at the version at which the hub reads it. It is set if the State is Exists.
	Template *unstructured.Unstructured
	// OtherVersions are those at which clusters may get the object, see hubv1.HubObject.
	OtherVersions []string
	// ScalePath is the path of the replicas in the scale subresource, by the definition of the kind. A message suggests
	// it to placements that divide without a path. Empty: it is not known.
	ScalePath string
	// HubRuns is true if the hub itself would act on objects of this kind.
	HubRuns bool
}

// hub is the object as it decides what clusters shall hold of it. The State must be Exists.
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

// Facts are the policies and clusters that decide on the objects of one namespace. They are shared between decisions.
type Facts struct {
	// Placements of the namespace, and the cluster-scoped ones.
	Placements []hubv1.PlacementObject
	Clusters   []*hubv1.MemberCluster
	// Overrides are the override policies of the namespace, and the cluster-scoped ones. Without a rollout, policies that
	// exclude no cluster have no effect.
	Overrides       []hubv1.OverridePolicyObject
	NamespaceLabels map[string]string
	// NamespaceRead is false if the namespace, and so its labels, are not known. Cluster-scoped objects have no
	// namespace.
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

// Placement returns the placement that a reference names, whatever its UID, or nil.
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

// Capacity is how much the nodes of a cluster can allocate.
type Capacity struct {
	Allocatable corev1.ResourceList
	// SettlesIn is the time until another amount may count. 0: the amount is settled.
	SettlesIn time.Duration
}

// Limits are the limits of the whole hub, as they stand for one object.
type Limits struct {
	// MostAway is the percentage of clusters that may be away. Above it, nothing is evicted from them. 0:
	// placement.DefaultMostAway.
	MostAway int
	// Settling is how long a new leader still waits before it trusts that clusters are away.
	Settling time.Duration
	// EvictionIn is the time until the rate of evictions has a place for this object. 0: it has one now.
	EvictionIn time.Duration
	// Untried are the clusters that the hub has not probed yet, by name. Their status is not trusted.
	Untried map[string]bool
	// FullDrains are the drained clusters, by name, from which as many other objects are moving as may.
	FullDrains map[string]bool
	// AnswersAwaited is how long decisions have waited for clusters to report whether they serve the kind.
	AnswersAwaited time.Duration
}

// IsAway reports whether a cluster does not answer. A cluster that is being taken down in an orderly way answers.
func IsAway(c *hubv1.MemberCluster) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady)
	return ready == nil || (ready.Status != metav1.ConditionTrue && ready.Reason != hubv1.ReasonLeaving)
}

// Allocatable is how much the nodes of a cluster can allocate, by its status. known is false if its nodes have never
// been read.
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
	// replay records each step. Nil: nothing is recorded.
	replay *Replayed
}

// selectable is the object as policies see it.
func (in input) selectable() hubv1.SelectableObject {
	return hubv1.SelectableObject{
		ObjectIdentity: in.Object.ID, Labels: in.Object.Template.GetLabels(), NamespaceLabels: in.Facts.NamespaceLabels,
	}
}

// hub is the object with its revisions, as it decides what clusters shall hold of it.
func (in input) hub() hubv1.HubObject {
	h := in.Object.hub()
	h.Revisions = in.Spec().Revisions
	return h
}

// snapshot is the clusters as package placement sees them, for an object that the held clusters have.
func (in input) snapshot(held map[string]bool) []placement.Cluster {
	out := make([]placement.Cluster, len(in.Facts.Clusters))
	for i, c := range in.Facts.Clusters {
		out[i] = in.Memo.cluster(c)
		allowed, err := c.Spec.AllowedNamespaces.Allows(in.Object.ID.Namespace, in.Facts.NamespaceLabels)
		out[i].NamespaceAllowed = err == nil && allowed // an invalid selector admits nothing new and takes nothing away
		if out[i].Objects = in.Objects[c.Name]; held[c.Name] {
			out[i].Objects--
		}
	}
	return out
}

// capacity of a cluster. known is false if its nodes have never been read.
func (in input) capacity(m *hubv1.MemberCluster) (c Capacity, known bool) {
	if c, ok := in.Capacities[m.Name]; ok {
		return c, true
	}
	c.Allocatable, known = Allocatable(m)
	return c, known
}
