package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ResourceBinding has the hub's decision which clusters get one hub object, and one row for each of these clusters with
// the state of the copy. Only the hub writes it.
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

	// Server-side apply treats spec and status as one value each. Only the hub writes them, and a write is cheaper if the
	// API server need not track the owner of each field.

	// spec is the decision: which clusters shall hold the object.
	// +required
	// +structType=atomic
	Spec BindingSpec `json:"spec"`

	// status has the state of the copy on each cluster.
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

	// Server-side apply treats spec and status as one value each. Only the hub writes them, and a write is cheaper if the
	// API server need not track the owner of each field.

	// spec is the decision: which clusters shall hold the object.
	// +required
	// +structType=atomic
	Spec BindingSpec `json:"spec"`

	// status has the state of the copy on each cluster.
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

// BindingSpec is the hub's decision which clusters shall hold one object.
type BindingSpec struct {
	// objectRef names the hub object. Only apiVersion and uid in it may change.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.name == oldSelf.name",message="kind and name of objectRef are immutable"
	ObjectRef ObjectReference `json:"objectRef"`

	// placementRef names the placement that the decision follows. It stays set if this placement is deleted.
	// +optional
	PlacementRef *PlacementReference `json:"placementRef,omitempty"`

	// referenced is true if no placement selects the object, but other objects need it. The object goes to the clusters of
	// the objects that need it, and placementRef names the placement of one of them.
	// +optional
	Referenced bool `json:"referenced,omitempty"`

	// references are the objects that this object needs on its clusters.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	References []BindingReference `json:"references,omitempty"`

	// division describes the number that is divided among the clusters, such as the replicas. Unset: no number is divided,
	// and every cluster gets the number in the object.
	// +optional
	Division *Division `json:"division,omitempty"`

	// revisions has the revisions that clusters shall hold or may return to, sorted by number. A revision is one state of
	// the object and its override rules. It is set if the placement has a rollout.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MaxItems=32
	Revisions []ObjectRevision `json:"revisions,omitempty"`

	// rollout is the state of the object's rollout. It is set if the placement has a rollout.
	// +optional
	Rollout *BindingRollout `json:"rollout,omitempty"`

	// One CEL rule on the whole list checks all entries. A rule on each entry would cost the API server far more, even at
	// a write of the status.

	// clusters has one entry for each cluster that shall hold the object, or that must lose its copy. The state Evicting
	// means that other clusters replace the cluster: the cluster keeps its copy until the copies on the replacing clusters
	// are Healthy. The state Absent means that the cluster must lose its copy. A cluster without an entry does not lose a
	// copy.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2200
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.state == 'Present' ? !has(t.absent) && !has(t.evicting) : !has(t.removal) && (t.state == 'Absent' ? has(t.absent) && !has(t.evicting) && !has(t.replicas) : has(t.evicting) && !has(t.absent)))",message="set absent if and only if state is Absent, evicting if and only if it is Evicting, removal only if it is Present, and no replicas if it is Absent"
	Clusters []BindingTarget `json:"clusters,omitempty"`
}

// ObjectReference names a hub object. The namespace is that of the binding.
type ObjectReference struct {
	// apiVersion of the object at the time when the decision last changed. A copy may have another version of the same
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

	// uid of the hub object. If the object is deleted and created again, it has another uid. For an object of a bundle, it
	// is the uid of the bundle.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	UID types.UID `json:"uid"`

	// bundle that contains the object. Unset: no bundle contains the object.
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

// PlacementReference names the placement that an object follows.
type PlacementReference struct {
	// kind is Placement or ClusterPlacement.
	// +required
	// +kubebuilder:validation:Enum=Placement;ClusterPlacement
	Kind string `json:"kind"`

	// namespace of a Placement. Unset for a ClusterPlacement.
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

// Related returns the placement in the form that an event needs for its related object. It returns nil if there is no
// placement.
func (r *PlacementReference) Related() runtime.Object {
	if r == nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: GroupVersion.String(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
}

// TargetState says what the hub's decision wants for a cluster: the cluster holds a copy, other clusters replace it, or
// it loses its copy.
// +kubebuilder:validation:Enum=Present;Evicting;Absent
type TargetState string

const (
	// TargetPresent means that the cluster shall hold a copy.
	TargetPresent TargetState = "Present"
	// TargetEvicting means that other clusters replace this cluster. The hub keeps its copy up to date, but does not count
	// it as a wanted copy. The copy is withdrawn when this cluster answers and the copies on the replacing clusters are
	// Healthy.
	TargetEvicting TargetState = "Evicting"
	// TargetAbsent means that the cluster must lose its copy.
	TargetAbsent TargetState = "Absent"
)

// BindingTarget is the entry of one cluster in the decision which clusters shall hold an object.
type BindingTarget struct {
	// name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// state is Present (the cluster shall hold a copy), Evicting (other clusters replace it) or Absent (it must lose its
	// copy).
	// +required
	State TargetState `json:"state"`

	// replicas is the share of this cluster. It is set if the replicas of the object are divided. If the state is
	// Evicting, it is the share that the cluster had before.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// revision is the revision of the object that the cluster shall hold. Unset: the cluster shall hold the newest state
	// of the hub object and its policies.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionTime is the time at which the decision gave this revision to the cluster. Unset: the cluster had no other
	// revision before.
	// +optional
	RevisionTime *metav1.Time `json:"revisionTime,omitempty"`

	// keptHealth is the health of the copy at the time when the cluster was cordoned or suspended during a rollout, or the
	// removal of its copy was held. Degraded includes a refused write. Unset: no such event has occurred since the cluster
	// got the revision, or the event has ended.
	// +optional
	KeptHealth Health `json:"keptHealth,omitempty"`

	// removal is set if the hub would withdraw the copy, but keeps it until a user confirms the removal. state is then
	// Present.
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
	// reason of the removal in CamelCase, such as NotSelected.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// since is the time at which the copy would have been removed.
	// +required
	Since metav1.Time `json:"since"`

	// policy says what happens to the copy when a user confirms the removal: Delete or Orphan.
	// +required
	Policy RemovalPolicy `json:"policy"`
}

// Eviction says why other clusters replace a cluster, and which ones.
type Eviction struct {
	// reason is Evicted (the cluster did not answer) or Drained (a user drains the cluster).
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// replacements are the clusters whose copies must be Healthy before the copy on this cluster is withdrawn. Unset: all
	// clusters with the state Present. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=100
	Replacements []Replacement `json:"replacements,omitempty"`
}

// MaxReplacements bounds Eviction.Replacements.
const MaxReplacements = 100

// Replacement is a cluster that takes over the object, or a part of its replicas, from another cluster.
type Replacement struct {
	// cluster is the name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`

	// digest of the manifest that this cluster held before it took over the object or the replicas. Only a copy with
	// another digest counts as Healthy. Unset: the cluster held no copy.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`
}

// Absence says why a cluster must lose its copy, and how.
type Absence struct {
	// reason of the removal in CamelCase, such as NotSelected, Evicted or ObjectDeleted.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// uid of the hub object whose copy is withdrawn. A copy of an object with another UID stays.
	// +required
	UID types.UID `json:"uid"`

	// policy says what happens to the copy: Delete or Orphan.
	// +required
	Policy RemovalPolicy `json:"policy"`
}

// BindingStatus has the state of the copies of one object, and the reasons of the decision.
type BindingStatus struct {
	// observedGeneration is the generation of the spec that the rows and conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// decision has the reasons why clusters were chosen or not chosen.
	// +optional
	Decision *DecisionStatus `json:"decision,omitempty"`

	// otherPlacements are other placements that select the object, too. The object does not follow them. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	OtherPlacements []string `json:"otherPlacements,omitempty"`

	// summary has the numbers of clusters by the state of their copies.
	// +optional
	Summary BindingSummary `json:"summary,omitempty"`

	// clusters has one row for each entry in spec.clusters, sorted by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2200
	Clusters []ClusterRow `json:"clusters,omitempty"`

	// orphaned are copies that the hub left on clusters when it withdrew the object, the oldest first. If such a cluster
	// shall hold the object again, the hub adopts this copy, even if apply.adoption forbids it, and removes the copy from
	// this list. At most 64. If there are more, the oldest ones are removed from the list.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Orphaned []OrphanedCopy `json:"orphaned,omitempty"`

	// conditions are of the types Scheduled, Applied, Healthy, Contested, StatusWritten and RowsTruncated.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaxOrphaned bounds BindingStatus.Orphaned.
const MaxOrphaned = 64

// OrphanedCopy is a copy that the hub left on a cluster when it withdrew the object. The hub recognises the copy by its
// UID, which only the API server of the cluster can set. Labels and annotations are no proof, because users of the
// cluster can set them.
type OrphanedCopy struct {
	// clusterID is status.clusterID of the MemberCluster. If a cluster leaves and joins again, even under another name, it
	// has the same ID.
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

	// digest of the manifest that the hub last applied to the copy. It shows whether the hub's manifest has changed since
	// then. Unset: it is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`

	// adopted is true if the copy existed on the cluster before the hub first adopted it. Unset: the hub created the copy.
	// +optional
	Adopted bool `json:"adopted,omitempty"`
}

// DecisionStatus has the reasons why clusters were chosen or not chosen.
type DecisionStatus struct {
	// reasons has the reasons why clusters were chosen. They are listed if the placement has spread, or if a reason is not
	// Scheduled. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=100
	Reasons []ChosenCluster `json:"reasons,omitempty"`

	// rejected counts the clusters that were not chosen, by reason. For each reason, it has up to 20 names.
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

	// reason is Scheduled, or the reason why this cluster would not get a new object. With such a reason, the cluster was
	// chosen only because it already holds the object.
	// +required
	Reason string `json:"reason"`

	// score of the cluster. It is the sum of the points from preferences and scores of the placement's spread, minus 100
	// for each PreferNoSchedule taint that the placement does not tolerate.
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

	// examples are up to 20 of the clusters that were not chosen for this reason, each with a message, such as "eu-fra-1:
	// region eu-central-1 is not in [cn-shanghai]".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Examples []string `json:"examples,omitempty"`
}

// BindingSummary has the numbers of clusters by the state of their copies.
type BindingSummary struct {
	// desired is the number of clusters that shall hold a copy.
	// +optional
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`
	// applied is the number of clusters whose copy has the wanted content.
	// +optional
	// +kubebuilder:default=0
	Applied int32 `json:"applied"`
	// updated is the number of clusters whose copy has the newest revision of the object. Unset: the placement has no
	// rollout.
	// +optional
	Updated *int32 `json:"updated,omitempty"`
	// healthy is the number of clusters whose copy is healthy.
	// +optional
	// +kubebuilder:default=0
	Healthy int32 `json:"healthy"`
	// unknown is the number of clusters that do not answer, or have not reported the state of their copy yet.
	// +optional
	// +kubebuilder:default=0
	Unknown int32 `json:"unknown"`
}

// Health is the health of one copy.
// +kubebuilder:validation:Enum=Healthy;Progressing;Degraded;Unknown
type Health string

const (
	// HealthHealthy means that the copy's status shows the state that its spec asks for.
	HealthHealthy Health = "Healthy"
	// HealthProgressing means that the copy's status does not show the state that its spec asks for yet.
	HealthProgressing Health = "Progressing"
	// HealthDegraded means that the copy's status reports a failure.
	HealthDegraded Health = "Degraded"
	// HealthUnknown means that the hub does not know the health.
	HealthUnknown Health = "Unknown"
)

// These are the maximum lengths, in bytes, of texts that the hub receives from a member.
const (
	// MaxNameLength limits the names of objects and namespaces.
	MaxNameLength = 253
	// MaxUIDLength limits UIDs.
	MaxUIDLength = 128
	// MaxVersionLength limits resourceVersions.
	MaxVersionLength = 128
)

// ClusterRow describes the copy of an object on one cluster.
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

	// generation of the hub object from which the copy was written.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// digest of the manifest from which the copy was written. At most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`

	// hash of the fields of the copy that the hub sets, as they were when the hub last wrote or checked the copy. At most
	// 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`

	// adopted is true if the copy existed on the cluster before the hub adopted it. Unset: the hub created the copy.
	// +optional
	Adopted bool `json:"adopted,omitempty"`

	// revision of the object from which the copy was written. Unset: the placement had no rollout.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// version of the operator, if the object is a workload of a FederatedOperator. It is the label
	// app.kubernetes.io/version of the manifest from which the copy was written, or the tag of its first image. At most
	// 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// passingSince is the time since which the copy has the content of its revision and is Healthy. Unset: the copy has
	// another content or is not Healthy, the cluster has changed its values, or the placement has no rollout.
	// +optional
	PassingSince *metav1.Time `json:"passingSince,omitempty"`

	// applied is True if the copy has the wanted content, False if it has not, and Unknown if the hub cannot tell.
	// +optional
	Applied metav1.ConditionStatus `json:"applied,omitempty"`

	// health of the copy: Healthy, Progressing, Degraded or Unknown.
	// +optional
	Health Health `json:"health,omitempty"`

	// reason in CamelCase why applied is not True or health is not Healthy. Unset if both are good.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message explains the reason, and says what a user can do. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// changedByCluster names up to three fields that the cluster has stored with other values than the hub sent, such as
	// `.spec.replicas 2 instead of 4`. Of a Secret it has no values. Unset: the cluster has stored all values. At most 256
	// characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ChangedByCluster string `json:"changedByCluster,omitempty"`

	// observed is the part of the copy's status that can be merged: numbers, booleans, short texts and conditions. At most
	// 512 bytes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Observed *runtime.RawExtension `json:"observed,omitempty"`

	// lastTransitionTime is the time at which applied, health or reason last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// lastObservedTime is the time at which the hub last observed the copy. It is set only while the hub cannot observe
	// the copy: the cluster does not answer, or the hub cannot watch the kind there.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}
