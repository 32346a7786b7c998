package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ResourceBinding is the hub's decision for one federated object and what its clusters report. Only the hub writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rb,categories=hanse
// +kubebuilder:selectablefield:JSONPath=`.spec.objectRef.kind`
// +kubebuilder:selectablefield:JSONPath=`.spec.objectRef.name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.objectRef.kind`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.objectRef.name`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementRef.name`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.summary.desired`
// +kubebuilder:printcolumn:name="Applied",type=integer,JSONPath=`.status.summary.applied`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.summary.healthy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec and status are atomic: the hub alone writes them, and each write costs its API server less if it need not keep
	// a list of the fields.

	// spec is the decision.
	// +required
	// +structType=atomic
	Spec BindingSpec `json:"spec"`

	// status is what the clusters report.
	// +optional
	// +structType=atomic
	Status BindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBindings.
//
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// ClusterResourceBinding is a ResourceBinding for a cluster-scoped object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crb,categories=hanse
// +kubebuilder:selectablefield:JSONPath=`.spec.objectRef.kind`
// +kubebuilder:selectablefield:JSONPath=`.spec.objectRef.name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.objectRef.kind`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.objectRef.name`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementRef.name`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.summary.desired`
// +kubebuilder:printcolumn:name="Applied",type=integer,JSONPath=`.status.summary.applied`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.summary.healthy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec and status are atomic: the hub alone writes them, and each write costs its API server less if it need not keep
	// a list of the fields.

	// spec is the decision.
	// +required
	// +structType=atomic
	Spec BindingSpec `json:"spec"`

	// status is what the clusters report.
	// +optional
	// +structType=atomic
	Status BindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBindings.
//
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}

// BindingSpec is the decision for one object.
type BindingSpec struct {
	// objectRef is the hub object. Only its apiVersion and uid may change.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.name == oldSelf.name",message="kind and name of objectRef are immutable"
	ObjectRef ObjectReference `json:"objectRef"`

	// placementRef is the placement that the decision follows.
	// +optional
	PlacementRef *PlacementReference `json:"placementRef,omitempty"`

	// division says what the replicas of the clusters are shares of. Unset: every cluster gets the object's own number.
	// +optional
	Division *Division `json:"division,omitempty"`

	// The rules of targets are one of their list: evaluated for each of them they cost an API server far more, at every
	// write of the status, too.

	// clusters are the decision's targets. A cluster whose place others take is Evicting until they are Healthy; one that
	// is to lose the object is Absent; a missing entry deletes nothing.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2000
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.state == 'Present' ? !has(t.absent) && !has(t.evicting) : !has(t.removal) && (t.state == 'Absent' ? has(t.absent) && !has(t.evicting) && !has(t.replicas) : has(t.evicting) && !has(t.absent)))",message="set absent if and only if state is Absent, evicting if and only if it is Evicting, removal only if it is Present, and no replicas if it is Absent"
	Clusters []BindingTarget `json:"clusters,omitempty"`
}

// ObjectReference names a hub object.
type ObjectReference struct {
	// apiVersion of the object when the decision last changed. A cluster may hold the object at another version of its
	// kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the hub object. It changes if the object was deleted and made again.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	UID types.UID `json:"uid"`
}

// PlacementReference names the placement that a decision follows.
type PlacementReference struct {
	// kind is Placement or ClusterPlacement.
	// +required
	// +kubebuilder:validation:Enum=Placement;ClusterPlacement
	Kind string `json:"kind"`

	// namespace of a Placement.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the placement.
	// +required
	Name string `json:"name"`

	// uid of the placement.
	// +required
	UID types.UID `json:"uid"`

	// generation of the placement at which the decision was last changed.
	// +required
	Generation int64 `json:"generation"`
}

// TargetState says whether a cluster shall hold the object.
// +kubebuilder:validation:Enum=Present;Evicting;Absent
type TargetState string

const (
	// TargetPresent means that the cluster shall hold the object.
	TargetPresent TargetState = "Present"
	// TargetEvicting means that others take the place of the cluster. The copy that it may hold is kept up to date and no
	// longer counted, and is withdrawn when the cluster answers and its replacements are Healthy.
	TargetEvicting TargetState = "Evicting"
	// TargetAbsent means that the object is to be withdrawn from the cluster.
	TargetAbsent TargetState = "Absent"
)

// BindingTarget is one cluster of a decision.
type BindingTarget struct {
	// name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// state is Present, Evicting or Absent.
	// +required
	State TargetState `json:"state"`

	// replicas is the share of this cluster if the object's replicas are divided; of one that is Evicting, what it had.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// removal is set if state is Present only because the removal of the copy is held until a user confirms the removal.
	// +optional
	Removal *HeldRemoval `json:"removal,omitempty"`

	// absent is set if state is Absent.
	// +optional
	Absent *Absence `json:"absent,omitempty"`

	// evicting is set if state is Evicting.
	// +optional
	Evicting *Eviction `json:"evicting,omitempty"`
}

// HeldRemoval says why a copy is to go that stays for now.
type HeldRemoval struct {
	// reason in CamelCase, such as NotSelected.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// since is when the removal was held.
	// +required
	Since metav1.Time `json:"since"`

	// policy is what becomes of the copy once the removal is confirmed.
	// +required
	Policy RemovalPolicy `json:"policy"`
}

// Eviction says why a cluster's place is taken, and by whom.
type Eviction struct {
	// reason is Evicted (the cluster did not answer) or Drained.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// replacements are the clusters that must be Healthy before the copy is withdrawn. Unset: all with state Present. At
	// most 100.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=100
	Replacements []Replacement `json:"replacements,omitempty"`
}

// MostReplacements bounds Eviction.Replacements.
const MostReplacements = 100

// Replacement is a cluster that takes the place of another one, or a part of its replicas.
type Replacement struct {
	// cluster is the name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`

	// digest of the manifest that it held before; another one must be Healthy. Unset: it held none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`
}

// Absence says why and how an object is withdrawn from a cluster.
type Absence struct {
	// reason in CamelCase, such as NotSelected, Evicted or ObjectDeleted.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// uid of the hub object whose copy is to go; a copy of an object with another UID is left alone.
	// +required
	UID types.UID `json:"uid"`

	// policy is Delete or Orphan.
	// +required
	Policy RemovalPolicy `json:"policy"`
}

// BindingStatus is what the clusters report of one object.
type BindingStatus struct {
	// observedGeneration is the generation of the spec that rows and conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// decision says why clusters were chosen or not.
	// +optional
	Decision *DecisionStatus `json:"decision,omitempty"`

	// otherPlacements match the object as well and are not followed. At most 10 named.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	OtherPlacements []string `json:"otherPlacements,omitempty"`

	// summary counts the rows.
	// +optional
	Summary BindingSummary `json:"summary,omitempty"`

	// clusters has one row per target, sorted by name. It is written as a whole.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	Clusters []ClusterRow `json:"clusters,omitempty"`

	// orphaned are copies that the hub left on clusters when it withdrew the object, the oldest first. If such a cluster
	// is to hold the object again and still has that copy, the hub takes it back, whatever apply.adoption says, and drops
	// the entry. At most 64; one more drops the oldest.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Orphaned []OrphanedCopy `json:"orphaned,omitempty"`

	// conditions: Scheduled, Applied, Healthy, StatusWritten, RowsTruncated.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MostOrphaned bounds BindingStatus.Orphaned.
const MostOrphaned = 64

// OrphanedCopy is a copy that the hub left on a cluster. Only the cluster's server gives out UIDs, so no mark on an
// object of the cluster stands for one.
type OrphanedCopy struct {
	// clusterID is status.clusterID of the MemberCluster. A cluster that joins again keeps it, under any name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ClusterID string `json:"clusterID"`

	// uid of the member object.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`

	// digest of the manifest that the copy was last confirmed to hold. It tells an edit since then from a change of the
	// hub object. Unset: not known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`

	// adopted is true if the copy was on the cluster before the hub first took it over. Unset: the hub made it.
	// +optional
	Adopted bool `json:"adopted,omitempty"`
}

// DecisionStatus says why clusters were chosen or not.
type DecisionStatus struct {
	// reasons of the clusters that were chosen, if the placement spreads or the reason is another one than Scheduled. At
	// most 100.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=100
	Reasons []ChosenCluster `json:"reasons,omitempty"`

	// rejected counts the clusters that were left out, by reason, with up to 20 named for each.
	// +optional
	// +listType=map
	// +listMapKey=reason
	Rejected []RejectedClusters `json:"rejected,omitempty"`
}

// ChosenCluster says why a cluster was chosen.
type ChosenCluster struct {
	// cluster is the name of the MemberCluster.
	// +required
	Cluster string `json:"cluster"`

	// reason is Scheduled, or what would keep the object away if it were not there already.
	// +required
	Reason string `json:"reason"`

	// score of the cluster, the sum of what preferences, scores and taints add.
	// +optional
	Score int64 `json:"score,omitempty"`
}

// RejectedClusters counts the clusters that were left out for one reason.
type RejectedClusters struct {
	// reason in CamelCase.
	// +required
	Reason string `json:"reason"`

	// count of clusters.
	// +required
	Count int32 `json:"count"`

	// examples name up to 20 of them, with a message each: "eu-fra-1: region eu-central-1 is not in [cn-shanghai]".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Examples []string `json:"examples,omitempty"`
}

// BindingSummary counts the rows of a binding.
type BindingSummary struct {
	// desired is the number of clusters that shall hold the object.
	// +optional
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`
	// applied is the number of those that hold what is desired now.
	// +optional
	// +kubebuilder:default=0
	Applied int32 `json:"applied"`
	// healthy is the number of those whose object is healthy.
	// +optional
	// +kubebuilder:default=0
	Healthy int32 `json:"healthy"`
	// unknown is the number of those that are away or not yet reported.
	// +optional
	// +kubebuilder:default=0
	Unknown int32 `json:"unknown"`
}

// Health is the verdict on one member object.
// +kubebuilder:validation:Enum=Healthy;Progressing;Degraded;Unknown
type Health string

const (
	// HealthHealthy means that the object does what its spec asks for.
	HealthHealthy Health = "Healthy"
	// HealthProgressing means that it is on its way there.
	HealthProgressing Health = "Progressing"
	// HealthDegraded means that it says it cannot get there.
	HealthDegraded Health = "Degraded"
	// HealthUnknown means that nothing can be said.
	HealthUnknown Health = "Unknown"
)

// Bounds of texts that a member sends, in bytes.
const (
	// MaxNameLength is that of an object or a namespace.
	MaxNameLength = 253
	// MaxUIDLength is that of a uid.
	MaxUIDLength = 128
	// MaxVersionLength is that of a resourceVersion.
	MaxVersionLength = 128
)

// ClusterRow is what one cluster reports of an object.
//
// +structType=atomic
type ClusterRow struct {
	// name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the member object. At most 128 characters: a longer one is refused.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid,omitempty"`

	// generation of the hub object that the cluster holds.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// digest of the manifest that the cluster holds. At most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`

	// hash of the live content at the hub's paths when the manifest was last confirmed. At most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`

	// adopted is true if the object was on the cluster before the hub took it over. Unset: the hub made it.
	// +optional
	Adopted bool `json:"adopted,omitempty"`

	// applied says whether the cluster holds what is desired now.
	// +optional
	Applied metav1.ConditionStatus `json:"applied,omitempty"`

	// health is the verdict on the member object.
	// +optional
	Health Health `json:"health,omitempty"`

	// reason in CamelCase for an applied or health that is not good.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message says what to do about it. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// observed is a projection of the member object's status: numbers, scalars and conditions, at most 512 bytes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Observed *runtime.RawExtension `json:"observed,omitempty"`

	// lastTransitionTime is when applied, health or reason last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// lastObservedTime is when the cluster was last heard, set while it is away.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// BindingObject is a ResourceBinding or a ClusterResourceBinding.
//
// +kubebuilder:object:generate=false
type BindingObject interface {
	metav1.Object
	runtime.Object
	// BindingSpec is the decision.
	BindingSpec() *BindingSpec
	// BindingStatus is what the clusters report.
	BindingStatus() *BindingStatus
}

var (
	_ BindingObject = &ResourceBinding{}
	_ BindingObject = &ClusterResourceBinding{}
)

// BindingSpec implements BindingObject.
func (b *ResourceBinding) BindingSpec() *BindingSpec { return &b.Spec }

// BindingStatus implements BindingObject.
func (b *ResourceBinding) BindingStatus() *BindingStatus { return &b.Status }

// BindingSpec implements BindingObject.
func (b *ClusterResourceBinding) BindingSpec() *BindingSpec { return &b.Spec }

// BindingStatus implements BindingObject.
func (b *ClusterResourceBinding) BindingStatus() *BindingStatus { return &b.Status }

// NewBinding returns an empty binding of the scope that the namespace says: ClusterResourceBinding if it is empty.
func NewBinding(key types.NamespacedName) BindingObject {
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	if key.Namespace == "" {
		return &ClusterResourceBinding{ObjectMeta: meta}
	}
	return &ResourceBinding{ObjectMeta: meta}
}

// ObjectOf returns the identity of the object that a binding is for.
func ObjectOf(b BindingObject) ObjectIdentity {
	ref := b.BindingSpec().ObjectRef
	gvk := ref.GroupVersionKind()
	return ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: b.GetNamespace(), Name: ref.Name}
}

// GroupVersionKind of the object.
func (r ObjectReference) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// Left returns the copy that the hub left on the cluster with this ID, or nil.
func (s *BindingStatus) Left(clusterID string) *OrphanedCopy {
	for i := range s.Orphaned {
		if s.Orphaned[i].ClusterID == clusterID {
			return &s.Orphaned[i]
		}
	}
	return nil
}

// Target returns the entry of a cluster, or nil.
func (s *BindingSpec) Target(cluster string) *BindingTarget {
	for i := range s.Clusters {
		if s.Clusters[i].Name == cluster {
			return &s.Clusters[i]
		}
	}
	return nil
}

// Row returns the row of a cluster, or nil.
func (s *BindingStatus) Row(cluster string) *ClusterRow {
	for i := range s.Clusters {
		if s.Clusters[i].Name == cluster {
			return &s.Clusters[i]
		}
	}
	return nil
}
