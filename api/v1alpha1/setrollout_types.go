package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetRollout is the state of the rollout of one bundle: which revision of the bundle each cluster holds. A revision of
// a bundle is the list of its objects, each with its content. The SetRollout is in the hub's namespace. Only the hub
// writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=hanse
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.bundle.kind`
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.spec.bundle.name`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementRef.name`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.spec.rollout.revision`
// +kubebuilder:printcolumn:name="Wave",type=string,JSONPath=`.spec.rollout.wave`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.spec.rollout.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SetRollout struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the decision: which revision of the bundle each cluster shall hold.
	// +required
	// +structType=atomic
	Spec SetRolloutSpec `json:"spec"`
}

// SetRolloutList is a list of SetRollouts.
//
// +kubebuilder:object:root=true
type SetRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SetRollout `json:"items"`
}

// SetRolloutSpec is the hub's decision which revision of a bundle each cluster shall hold.
type SetRolloutSpec struct {
	// bundle whose objects change together.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="bundle is immutable"
	Bundle BundleReference `json:"bundle"`

	// bundleUID is the uid of the bundle. If the bundle is deleted and created again, it has another uid.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	BundleUID types.UID `json:"bundleUID"`

	// newest is the list of the objects that the bundle has now. It becomes a revision when the hub decides on it.
	// +required
	Newest SetList `json:"newest"`

	// placementRef names the placement whose rollout the bundle follows. Unset: no placement selects the bundle.
	// +optional
	PlacementRef *PlacementReference `json:"placementRef,omitempty"`

	// revisions has the revisions that clusters shall hold or may return to, sorted by number. A revision is a list of
	// objects with their override rules.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MaxItems=32
	Revisions []SetRevision `json:"revisions,omitempty"`

	// rollout is the state of the rollout of the bundle. Unset: the hub has not begun to decide on the bundle as a whole,
	// so each object of the bundle follows its own binding.
	// +optional
	Rollout *BindingRollout `json:"rollout,omitempty"`

	// clusters has one entry for each cluster that shall hold objects of the bundle.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2200
	Clusters []SetCluster `json:"clusters,omitempty"`
}

// SetList names a list of objects of a bundle, each with its content. The list and the objects are stored in Secrets
// in the hub's namespace before a SetRollout names the list.
type SetList struct {
	// list is a digest of the list. The list has the digest of each object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	List string `json:"list"`

	// generation of the bundle that has this list.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// time at which the hub first saw this list.
	// +required
	Time metav1.Time `json:"time"`
}

// SetRevision is one revision of a bundle: a list of its objects, and the override rules that select them.
type SetRevision struct {
	// number of the revision. A later change has a higher number.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`

	// generation of the bundle in this revision.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// list is a digest of the list of objects, see newest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	List string `json:"list"`

	// policies is a digest of the override rules that select the objects, and of the placement's settings that change
	// their copies.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Policies string `json:"policies,omitempty"`

	// time at which the hub first saw this revision.
	// +required
	Time metav1.Time `json:"time"`

	// passed is true if this revision was healthy on a cluster of each wave, and on all clusters for which the waves
	// waited.
	// +optional
	Passed bool `json:"passed,omitempty"`

	// supersededBy is the number of a later revision. The change to that revision began when this revision had neither
	// failed nor passed on all clusters. Unset: there is no such revision.
	// +optional
	SupersededBy int64 `json:"supersededBy,omitempty"`

	// listOf is the number of the earlier revision from which this one has the list. It is set if only override rules
	// have changed since a rollback or an undo. Unset: the list is that of the bundle at the time of this revision.
	// +optional
	ListOf int64 `json:"listOf,omitempty"`
}

// SetCluster is the entry of one cluster in the decision which revision of a bundle each cluster shall hold.
type SetCluster struct {
	// name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// revision of the bundle that the cluster shall hold.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision"`

	// definitions is the revision whose CustomResourceDefinitions the cluster shall hold, if it is another one than
	// revision. A cluster that returns to an earlier revision keeps its CustomResourceDefinitions. Unset: those of
	// revision.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Definitions int64 `json:"definitions,omitempty"`

	// since is the time at which the decision gave this revision to the cluster. Unset: the cluster had no other revision
	// before.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// keptHealth is the health of the bundle on the cluster at the time when the cluster was cordoned or suspended during
	// a rollout, or a removal on it was held. Degraded includes a refused write. Unset: no such event has occurred since
	// the cluster got the revision, or the event has ended.
	// +optional
	KeptHealth Health `json:"keptHealth,omitempty"`

	// adopted is true if the cluster had objects of the bundle before the hub began to decide on the bundle as a whole.
	// +optional
	Adopted bool `json:"adopted,omitempty"`
}

// SetRolloutKey returns the namespace and name of the SetRollout of this bundle. The name is made as that of a binding.
// hub is the hub's namespace.
func (r BundleReference) SetRolloutKey(hub string) types.NamespacedName {
	return types.NamespacedName{Namespace: hub, Name: r.Identity().BindingName()}
}

// Revision returns the revision with this number. It returns nil if the SetRollout does not list the revision.
func (s *SetRolloutSpec) Revision(number int64) *SetRevision {
	for i := range s.Revisions {
		if s.Revisions[i].Number == number {
			return &s.Revisions[i]
		}
	}
	return nil
}

// Cluster returns the entry of a cluster. It returns nil if the SetRollout has no entry for the cluster.
func (s *SetRolloutSpec) Cluster(name string) *SetCluster {
	if i := indexByName(s.Clusters, name, func(c *SetCluster) string { return c.Name }); i >= 0 {
		return &s.Clusters[i]
	}
	return nil
}
