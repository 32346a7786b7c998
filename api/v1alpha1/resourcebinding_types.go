package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ResourceBinding has the hub's decision for one federated object and the reports of its clusters. Only the hub writes
// it.
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
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.summary.updated`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.summary.healthy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec and status are atomic for server-side apply. Only the hub writes them, and a write is cheaper if the API server
	// tracks no fields.

	// spec is the decision.
	// +required
	// +structType=atomic
	Spec BindingSpec `json:"spec"`

	// status has the reports of the clusters.
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
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.summary.updated`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.summary.healthy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec and status are atomic for server-side apply. Only the hub writes them, and a write is cheaper if the API server
	// tracks no fields.

	// spec is the decision.
	// +required
	// +structType=atomic
	Spec BindingSpec `json:"spec"`

	// status has the reports of the clusters.
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

	// referenced is true if no placement selects the object, and the decision follows the objects that need it.
	// placementRef is then the placement of one of these objects.
	// +optional
	Referenced bool `json:"referenced,omitempty"`

	// references are the objects that this object needs on its clusters, by kind and name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	References []BindingReference `json:"references,omitempty"`

	// division describes the number that is divided between the clusters. Unset: every cluster gets the number of the
	// object.
	// +optional
	Division *Division `json:"division,omitempty"`

	// revisions are the revisions that targets name, or to which they may return, by number. They are set if the placement
	// has a rollout.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MaxItems=32
	Revisions []ObjectRevision `json:"revisions,omitempty"`

	// rollout is the state of the object's rollout. It is set if the placement has a rollout.
	// +optional
	Rollout *BindingRollout `json:"rollout,omitempty"`

	// One rule on the whole list checks all targets. A rule on each target would cost an API server far more, even at a
	// write of the status.

	// clusters are the targets of the decision. A cluster is Evicting until its replacements are Healthy, and Absent if it
	// must lose its copy. A cluster without an entry does not lose a copy.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2000
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.state == 'Present' ? !has(t.absent) && !has(t.evicting) : !has(t.removal) && (t.state == 'Absent' ? has(t.absent) && !has(t.evicting) && !has(t.replicas) : has(t.evicting) && !has(t.absent)))",message="set absent if and only if state is Absent, evicting if and only if it is Evicting, removal only if it is Present, and no replicas if it is Absent"
	Clusters []BindingTarget `json:"clusters,omitempty"`
}

// ObjectReference names a hub object.
type ObjectReference struct {
	// apiVersion of the object at the time when the decision last changed. A cluster may hold the object at another
	// version of its kind.
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

	// uid of the hub object. It changes if the object is deleted and created again. An object of a bundle has the uid of
	// the bundle.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	UID types.UID `json:"uid"`

	// bundle that contains the object. Unset: the object is an object of the hub.
	// +optional
	Bundle *BundleReference `json:"bundle,omitempty"`
}

// BundleReference names a bundle.
type BundleReference struct {
	// kind is Bundle, ClusterBundle or FederatedOperator.
	// +required
	// +kubebuilder:validation:Enum=Bundle;ClusterBundle;FederatedOperator
	Kind string `json:"kind"`

	// namespace of a Bundle. Unset for the other kinds.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the bundle.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
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

	// generation of the placement at the time when the decision last changed.
	// +required
	Generation int64 `json:"generation"`
}

// Related returns the placement as the related object of an event. It is nil if there is no placement.
func (r *PlacementReference) Related() runtime.Object {
	if r == nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: GroupVersion.String(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
}

// TargetState is the state that the decision wants on a cluster.
// +kubebuilder:validation:Enum=Present;Evicting;Absent
type TargetState string

const (
	// TargetPresent means that the cluster shall hold the object.
	TargetPresent TargetState = "Present"
	// TargetEvicting means that other clusters replace this cluster. Its copy is kept up to date, but does not count as a
	// wanted copy. It is withdrawn when the cluster answers and its replacements are Healthy.
	TargetEvicting TargetState = "Evicting"
	// TargetAbsent means that the object is withdrawn from the cluster.
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

	// replicas is the share of this cluster if the object's replicas are divided. If the state is Evicting, it is the
	// share that the cluster had.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// revision that the cluster shall hold. Unset: the newest state of the hub object and its policies.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionTime is the time at which the decision set the revision of the cluster. Unset: the cluster had no other
	// revision before.
	// +optional
	RevisionTime *metav1.Time `json:"revisionTime,omitempty"`

	// removal is set if the cluster keeps its copy only until a user confirms the removal. state is then Present.
	// +optional
	Removal *HeldRemoval `json:"removal,omitempty"`

	// absent is set if state is Absent.
	// +optional
	Absent *Absence `json:"absent,omitempty"`

	// evicting is set if state is Evicting.
	// +optional
	Evicting *Eviction `json:"evicting,omitempty"`
}

// HeldRemoval describes the removal of a copy that stays until a user confirms the removal.
type HeldRemoval struct {
	// reason in CamelCase, such as NotSelected.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// since is the time at which the removal was held.
	// +required
	Since metav1.Time `json:"since"`

	// policy for the copy when the removal is confirmed: Delete or Orphan.
	// +required
	Policy RemovalPolicy `json:"policy"`
}

// Eviction says why a cluster is replaced, and by which clusters.
type Eviction struct {
	// reason is Evicted (the cluster did not answer) or Drained.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// replacements are the clusters that must be Healthy before the copy is withdrawn. Unset: all clusters with state
	// Present. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=100
	Replacements []Replacement `json:"replacements,omitempty"`
}

// MostReplacements bounds Eviction.Replacements.
const MostReplacements = 100

// Replacement is a cluster that replaces another cluster, or takes a part of its replicas.
type Replacement struct {
	// cluster is the name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`

	// digest of the manifest that the replacing cluster held before. Only a copy with another digest counts as Healthy.
	// Unset: the cluster held no copy.
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

	// uid of the hub object whose copy is withdrawn. A copy of an object with another UID stays.
	// +required
	UID types.UID `json:"uid"`

	// policy is Delete or Orphan.
	// +required
	Policy RemovalPolicy `json:"policy"`
}

// BindingStatus has the reports of the clusters on one object.
type BindingStatus struct {
	// observedGeneration is the generation of the spec that the rows and conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// decision has the reasons why clusters were chosen or not.
	// +optional
	Decision *DecisionStatus `json:"decision,omitempty"`

	// otherPlacements are placements that select the object as well, but are not followed. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	OtherPlacements []string `json:"otherPlacements,omitempty"`

	// summary counts the rows.
	// +optional
	Summary BindingSummary `json:"summary,omitempty"`

	// clusters has one row for each target, sorted by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	Clusters []ClusterRow `json:"clusters,omitempty"`

	// orphaned are the copies that the hub has left on clusters when it withdrew the object, the oldest first. If such a
	// cluster shall hold the object again, the hub adopts the copy, even if apply.adoption forbids it, and removes the
	// entry. At most 64. A new entry replaces the oldest one.
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

// OrphanedCopy is a copy that the hub left on a cluster. The hub recognises it by its UID, which only the API server of
// the cluster can set. Users of the cluster can set every label and annotation.
type OrphanedCopy struct {
	// clusterID is status.clusterID of the MemberCluster. A cluster that joins again keeps its ID, under any name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ClusterID string `json:"clusterID"`

	// uid of the copy.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`

	// digest of the last manifest of the copy. It shows whether the copy or the hub object has changed since then. Unset:
	// it is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`

	// adopted is true if the copy was on the cluster before the hub first adopted it. Unset: the hub created the copy.
	// +optional
	Adopted bool `json:"adopted,omitempty"`
}

// DecisionStatus has the reasons why clusters were chosen or not.
type DecisionStatus struct {
	// reasons why clusters were chosen. They are set if the placement has spread, or if a reason is not Scheduled. At most
	// 100.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=100
	Reasons []ChosenCluster `json:"reasons,omitempty"`

	// rejected counts the clusters that were not chosen, by reason, with up to 20 names for each reason.
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

	// reason is Scheduled, or the reason why the cluster would not get a new object. Such a cluster is chosen because it
	// already holds the object.
	// +required
	Reason string `json:"reason"`

	// score of the cluster: the sum over preferences, scores and taints.
	// +optional
	Score int64 `json:"score,omitempty"`
}

// RejectedClusters counts the clusters that were not chosen for one reason.
type RejectedClusters struct {
	// reason in CamelCase.
	// +required
	Reason string `json:"reason"`

	// count of clusters.
	// +required
	Count int32 `json:"count"`

	// examples are up to 20 of these clusters with their messages: "eu-fra-1: region eu-central-1 is not in
	// [cn-shanghai]".
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
	// applied is the number of clusters whose copy has the wanted content.
	// +optional
	// +kubebuilder:default=0
	Applied int32 `json:"applied"`
	// updated is the number of clusters whose copy has the newest revision. Unset if the placement has no rollout.
	// +optional
	Updated *int32 `json:"updated,omitempty"`
	// healthy is the number of clusters whose copy is healthy.
	// +optional
	// +kubebuilder:default=0
	Healthy int32 `json:"healthy"`
	// unknown is the number of clusters that do not answer or have not reported yet.
	// +optional
	// +kubebuilder:default=0
	Unknown int32 `json:"unknown"`
}

// Health of one copy.
// +kubebuilder:validation:Enum=Healthy;Progressing;Degraded;Unknown
type Health string

const (
	// HealthHealthy means that the copy has reached the state in its spec.
	HealthHealthy Health = "Healthy"
	// HealthProgressing means that the copy has not reached the state in its spec yet.
	HealthProgressing Health = "Progressing"
	// HealthDegraded means that the copy reports a failure.
	HealthDegraded Health = "Degraded"
	// HealthUnknown means that the health is not known.
	HealthUnknown Health = "Unknown"
)

// Limits of texts that a member sends, in bytes.
const (
	// MaxNameLength limits names of objects and namespaces.
	MaxNameLength = 253
	// MaxUIDLength limits UIDs.
	MaxUIDLength = 128
	// MaxVersionLength limits resourceVersions.
	MaxVersionLength = 128
)

// ClusterRow is the report of one cluster on an object.
//
// +structType=atomic
type ClusterRow struct {
	// name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the copy. At most 128 characters: a longer uid is refused.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid,omitempty"`

	// generation of the hub object with which the copy was written.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// digest of the manifest that the copy was written from. At most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`

	// hash of the copy's fields that the hub owns, at the time of the hub's last write or check. At most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`

	// adopted is true if the copy was on the cluster before the hub adopted it. Unset: the hub created the copy.
	// +optional
	Adopted bool `json:"adopted,omitempty"`

	// revision with which the copy was written. Unset: the placement had no rollout.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// version of the operator with which the copy was written, if the object is a workload of a FederatedOperator: its
	// label app.kubernetes.io/version, or the tag of its first image. At most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// passingSince is the time since which the copy is applied and Healthy with its revision. It is unset if the copy is
	// not, or if the placement has no rollout.
	// +optional
	PassingSince *metav1.Time `json:"passingSince,omitempty"`

	// applied is True if the copy has the wanted content.
	// +optional
	Applied metav1.ConditionStatus `json:"applied,omitempty"`

	// health of the copy.
	// +optional
	Health Health `json:"health,omitempty"`

	// reason in CamelCase if applied is not True or health is not Healthy.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message explains the reason and says what to do. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// observed is a part of the copy's status: numbers, booleans, short texts and conditions, at most 512 bytes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Observed *runtime.RawExtension `json:"observed,omitempty"`

	// lastTransitionTime is the time at which applied, health or reason last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// lastObservedTime is the time at which the copy was last observed. It is set while the cluster does not answer, and
	// while the hub cannot watch the kind on the cluster.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}
