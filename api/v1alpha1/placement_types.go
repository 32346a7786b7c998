package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Placement selects objects in its namespace, and sends them to clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=pl,categories=hanse
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.selectedClusters`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.phase`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Applied",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Placement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects and their clusters.
	// +required
	Spec PlacementSpec `json:"spec"`

	// status summarizes the objects that follow this placement. An object follows one placement: the one that decides
	// which clusters get the object.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementList is a list of Placements.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}

// ClusterPlacement selects cluster-scoped objects, and sends them to clusters. With a namespaceSelector, it also
// selects namespaced objects.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cpl,categories=hanse
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.selectedClusters`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.phase`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Applied",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects and their clusters.
	// +required
	Spec ClusterPlacementSpec `json:"spec"`

	// status summarizes the objects that follow this placement. An object follows one placement: the one that decides
	// which clusters get the object.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status PlacementStatus `json:"status,omitempty"`
}

// ClusterPlacementList is a list of ClusterPlacements.
//
// +kubebuilder:object:root=true
type ClusterPlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPlacement `json:"items"`
}

// ClusterPlacementSpec is a PlacementSpec with two more fields: a selector of namespaces, and enforced.
type ClusterPlacementSpec struct {
	PlacementSpec `json:",inline"`

	// namespaceSelector selects namespaces by their labels. resourceSelectors then also select objects in these
	// namespaces. Unset: only cluster-scoped objects are selected. {}: all namespaces are selected except kube-* and
	// hanse-system.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// enforced true gives this placement precedence over every placement that is not enforced, whatever their priorities.
	// Objects that follow a placement that is not enforced change over to this placement, even if preemption is Never.
	// Between two enforced placements, priority and preemption decide. Default false.
	// +optional
	Enforced bool `json:"enforced,omitempty"`
}

// PlacementSpec selects objects and clusters. It also sets how the objects are applied, deleted and reported.
type PlacementSpec struct {
	// resourceSelectors select hub objects. An object is selected if at least one of them matches. 1 to 64.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// priority decides if several Placements, or several ClusterPlacements, select the same object: the object follows the
	// one with the higher number. -1000 to 1000, default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// preemption Always takes over objects that already follow another placement, if this placement has precedence over
	// the other one. Precedence is decided by enforced, then Placement before ClusterPlacement, then priority, then the
	// narrower selector, then the name. Default Never: such objects stay with the other placement.
	// +optional
	// +kubebuilder:default=Never
	Preemption Preemption `json:"preemption,omitempty"`

	// hubExecution Allowed also places kinds that take effect on the hub itself: RBAC, quotas, admission configurations,
	// and workloads if the hub runs workloads. Default Refused: such kinds are not placed.
	// +optional
	// +kubebuilder:default=Refused
	HubExecution HubExecution `json:"hubExecution,omitempty"`

	// clusters selects the clusters to which the objects may be sent.
	// +required
	Clusters ClusterSelection `json:"clusters"`

	// spread sets how many of the selected clusters hold an object, and which ones. Unset: every selected cluster that can
	// take the object holds it.
	// +optional
	Spread *SpreadPolicy `json:"spread,omitempty"`

	// references are rules that find the objects that the selected objects need, such as the Secret that a Certificate
	// names. If no placement selects a needed object, it goes to the same clusters as the object that needs it. The needed
	// object is created before the object that needs it, and removed after it. At most 16 rules, and 64 needed objects for
	// each object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	References []ReferenceRule `json:"references,omitempty"`

	// replicas sets whether each cluster gets all replicas or a share of the replicas.
	// +optional
	// +kubebuilder:default={}
	Replicas ReplicasPolicy `json:"replicas,omitempty"`

	// apply sets how objects are written to members.
	// +optional
	// +kubebuilder:default={}
	Apply ApplyPolicy `json:"apply,omitempty"`

	// deletion sets what happens to a copy that is withdrawn from a member: the hub deletes it, or orphans it. An orphaned
	// copy stays on the member without the hub's labels and annotations.
	// +optional
	// +kubebuilder:default={}
	Deletion DeletionPolicy `json:"deletion,omitempty"`

	// removalLimit is the number of copies that may be deleted at once because clusters are no longer selected. If more
	// copies would be deleted, all of them stay until a user confirms the removal. Unset: the limit that the chart
	// hanse-hub sets, by default 5 copies or 20 percent, whichever is larger.
	// +optional
	RemovalLimit *RemovalLimit `json:"removalLimit,omitempty"`

	// allowEmpty true lets objects lose their last copy without a confirmation. Default false: the last copy of an
	// object stays until a user confirms the removal.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`

	// failover sets whether an object moves to another cluster if its cluster does not answer. Unset: the object does not
	// move.
	// +optional
	Failover FailoverPolicy `json:"failover,omitempty"`

	// rollout sends changes to the clusters in waves. Unset: a change is sent to all clusters at once.
	// +optional
	Rollout *RolloutPolicy `json:"rollout,omitempty"`

	// suspend stops decisions about clusters, or writes to members. Copies on members stay as they are.
	// +optional
	// +kubebuilder:default={}
	Suspend SuspendPolicy `json:"suspend,omitempty"`

	// statusAggregation sets how the health of copies is judged, and how and where their statuses are merged.
	// +optional
	// +kubebuilder:default={}
	StatusAggregation StatusAggregation `json:"statusAggregation,omitempty"`
}

// Preemption sets whether a placement takes over objects that already follow another placement.
// +kubebuilder:validation:Enum=Never;Always
type Preemption string

const (
	// PreemptionNever leaves an object with the placement that it follows.
	PreemptionNever Preemption = "Never"
	// PreemptionAlways takes an object over from another placement if this placement has precedence over the other one.
	PreemptionAlways Preemption = "Always"
)

// HubExecution sets whether a placement places kinds that take effect on the hub itself, such as RBAC.
// +kubebuilder:validation:Enum=Refused;Allowed
type HubExecution string

const (
	// HubExecutionRefused does not place kinds that take effect on the hub itself.
	HubExecutionRefused HubExecution = "Refused"
	// HubExecutionAllowed also places kinds that take effect on the hub itself. The hub objects then take effect on the
	// hub, too.
	HubExecutionAllowed HubExecution = "Allowed"
)

// ClusterSelection selects clusters. A cluster is selected if it matches all fields that are set, and excludedNames
// does not name it.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.labelSelector) || has(self.expression)",message="set names, labelSelector or expression; 'labelSelector: {}' selects every cluster"
type ClusterSelection struct {
	// names of the MemberClusters to select. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// excludedNames are names of MemberClusters that are never selected. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	ExcludedNames []string `json:"excludedNames,omitempty"`

	// labelSelector selects clusters by the labels of their MemberClusters. The region in status.topology counts as a
	// label, and so does the zone if there is only one. {} selects every cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// expression is a CEL expression that is true for the clusters to select, such as "semver(version, true).major() == 1
	// && nodes.ready >= 3". Its variables are name, labels, annotations, region, zone, version, capacity, allocatable,
	// nodes, servedKinds and operators. The CEL libraries of Kubernetes are available. If the expression becomes false for
	// a cluster, the cluster gets no new objects. The cluster also loses the objects that it holds, if the expression
	// reads no other variables than name, labels, annotations, region and zone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`

	// tolerations are tolerations of the taints of clusters, written as for pods. tolerationSeconds limits how long a
	// NoExecute taint is tolerated after its timeAdded. If several tolerations match, the shortest time is used. During
	// this time, the cluster gets no new objects. For the taint hanse.dev/unreachable, the field failover sets the time,
	// unless one of these tolerations names this key. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Adoption sets what happens if an object that does not belong to the hub already exists on the member. To adopt an
// object means to manage it as the copy of the hub object.
// +kubebuilder:validation:Enum=Never;IfNoDiff;Always
type Adoption string

const (
	// AdoptionNever leaves the object on the member unchanged and reports AlreadyExists.
	AdoptionNever Adoption = "Never"
	// AdoptionIfNoDiff adopts the object if a dry run shows that only Hanse's labels and annotations would change. It
	// adopts no Secret, and no object of another hub.
	AdoptionIfNoDiff Adoption = "IfNoDiff"
	// AdoptionAlways adopts the object, unless another hub owns it.
	AdoptionAlways Adoption = "Always"
)

// FieldConflict sets what happens if another field manager on the member changed a field that the hub had set.
// +kubebuilder:validation:Enum=Take;Report
type FieldConflict string

const (
	// FieldConflictTake sets the field to the hub's value again.
	FieldConflictTake FieldConflict = "Take"
	// FieldConflictReport leaves the copy unchanged and reports FieldConflict.
	FieldConflictReport FieldConflict = "Report"
)

// ApplyMode sets whether the hub writes to members.
// +kubebuilder:validation:Enum=Enforce;ReportOnly
type ApplyMode string

const (
	// ApplyEnforce writes to members.
	ApplyEnforce ApplyMode = "Enforce"
	// ApplyReportOnly writes nothing to members and reports the fields that would change.
	ApplyReportOnly ApplyMode = "ReportOnly"
)

// UnknownFields sets what happens to fields of an object that the member's schema of the kind does not have.
// +kubebuilder:validation:Enum=Reject;Drop
type UnknownFields string

const (
	// UnknownFieldsReject does not write the object to the member, and reports FieldsNotServed.
	UnknownFieldsReject UnknownFields = "Reject"
	// UnknownFieldsDrop sends the object without the unknown fields and reports the fields.
	UnknownFieldsDrop UnknownFields = "Drop"
)

// Recreate sets whether the hub creates a copy again after it was deleted on the member.
// +kubebuilder:validation:Enum=Always;UntilCompleted;Never
type Recreate string

const (
	// RecreateAlways creates the copy again.
	RecreateAlways Recreate = "Always"
	// RecreateUntilCompleted creates the copy again, with one exception. A copy that runs to completion, such as a Job, is
	// not created again after it has completed or failed.
	RecreateUntilCompleted Recreate = "UntilCompleted"
	// RecreateNever creates the copy again only when the hub object changes.
	RecreateNever Recreate = "Never"
)

// ApplyPolicy sets how objects are written to members.
type ApplyPolicy struct {
	// mode sets whether the hub writes to members. Enforce writes. ReportOnly writes nothing, and reports the fields that
	// would change. Default Enforce.
	// +optional
	// +kubebuilder:default=Enforce
	Mode ApplyMode `json:"mode,omitempty"`

	// adoption sets what happens if an object that does not belong to the hub already exists on the member. Never leaves
	// it unchanged. IfNoDiff adopts it if no value would change, and Always adopts it: the hub then manages it as its
	// copy. Default Never.
	// +optional
	// +kubebuilder:default=Never
	Adoption Adoption `json:"adoption,omitempty"`

	// fieldConflict sets what happens if another field manager on the member changed a field that the hub had set. Take
	// sets the field to the hub's value again. Report leaves the copy unchanged and reports the conflict. Default Take.
	// +optional
	// +kubebuilder:default=Take
	FieldConflict FieldConflict `json:"fieldConflict,omitempty"`

	// unknownFields sets what happens if an object has fields that the member's schema does not have. Reject does not
	// write the object to this member. Drop writes the object without these fields. Default Reject.
	// +optional
	// +kubebuilder:default=Reject
	UnknownFields UnknownFields `json:"unknownFields,omitempty"`

	// memberOwnedFields are JSON pointers (RFC 6901) to fields that belong to the member, such as /spec/replicas. The hub
	// sets these fields when it creates the copy, and never changes them afterwards. A pointer names keys of objects, not
	// items of lists: for a field of an item, name the list, such as /webhooks. Keys that are numbers are allowed only
	// below /data, /binaryData and /metadata. At most 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(/([^/~]|~[01])+)+$`
	// +kubebuilder:validation:XValidation:rule="self.all(p, !(p in ['/apiVersion', '/kind', '/metadata', '/status', '/spec']) && !p.startsWith('/status/') && (!p.startsWith('/metadata/') || p.startsWith('/metadata/labels/') || p.startsWith('/metadata/annotations/')))",message="name fields of the object such as /spec/replicas, not apiVersion, kind, status, all of spec, or metadata other than single labels and annotations"
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.startsWith('/data/') || p.startsWith('/binaryData/') || p.startsWith('/metadata/') || !p.matches('/([0-9]+|-)(/|$)'))",message="a pointer must not name an item of a list: name the list, such as /webhooks instead of /webhooks/0/failurePolicy"
	MemberOwnedFields []string `json:"memberOwnedFields,omitempty"`

	// recreate sets whether the hub creates a copy again after it was deleted on the member: Always, UntilCompleted or
	// Never. UntilCompleted creates it again, unless it is a copy such as a Job that has completed or failed. With Never,
	// only a change of the hub object creates the copy again. Default UntilCompleted.
	// +optional
	// +kubebuilder:default=UntilCompleted
	Recreate Recreate `json:"recreate,omitempty"`

	// createNamespace true creates the namespace of the object on the member if it is missing there. Default true.
	// +optional
	// +kubebuilder:default=true
	CreateNamespace *bool `json:"createNamespace,omitempty"`
}

// DeletionPolicy sets what happens to a copy that is withdrawn from a member: the hub deletes it (Delete), or leaves it
// there without the hub's labels and annotations (Orphan).
type DeletionPolicy struct {
	// whenDeleted sets what happens to the copies when the hub object is deleted: Delete or Orphan. Default Delete, but
	// Orphan for CustomResourceDefinitions and Namespaces.
	// +optional
	WhenDeleted RemovalPolicy `json:"whenDeleted,omitempty"`

	// whenUnselected sets what happens to the copy on a cluster that is no longer selected: Delete or Orphan. Default
	// Delete, but Orphan for CustomResourceDefinitions and Namespaces.
	// +optional
	WhenUnselected RemovalPolicy `json:"whenUnselected,omitempty"`

	// adopted sets what happens to an adopted copy, which existed on the member before the hub managed it. Orphan leaves
	// such a copy on the member, even if another field or leave.policy of the MemberCluster says Delete. Default Orphan.
	// +optional
	// +kubebuilder:default=Orphan
	Adopted RemovalPolicy `json:"adopted,omitempty"`

	// propagationPolicy of the delete requests that the hub sends to members: Background or Foreground. Default
	// Background.
	// +optional
	// +kubebuilder:default=Background
	// +kubebuilder:validation:Enum=Background;Foreground
	PropagationPolicy metav1.DeletionPropagation `json:"propagationPolicy,omitempty"`
}

// RemovalLimit is the number of copies that may be deleted at once. copies and percent each give a number, and the
// larger one is used.
type RemovalLimit struct {
	// copies is the number of copies that may be deleted at once, even if percent allows fewer. 0 to 1000000. Unset: the
	// value guard.copies of the chart hanse-hub.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Copies *int32 `json:"copies,omitempty"`

	// percent of all copies that may be deleted at once, even if copies allows fewer. 0 to 100. Unset: the value
	// guard.percent of the chart hanse-hub.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
}

// RemovalHeld describes the copies that stay until a user confirms their removal.
type RemovalHeld struct {
	// id of this removal. To confirm the removal, set the annotation hanse.dev/confirm-removal to this id. An id is valid
	// once. The confirmation covers the clusters and causes that are listed here, even if up to a tenth more copies would
	// be deleted by then.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// since is the time at which the first of the copies whose removal is held would have been removed.
	// +required
	Since metav1.Time `json:"since"`

	// causes are the reasons why the clusters would lose copies, such as "NotSelected: label tier prdo is not in [prod]".
	// At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=512
	Causes []string `json:"causes,omitempty"`

	// clusters that would lose copies, sorted. At most 2000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters,omitempty"`

	// copies is the number of copies that would be deleted.
	// +required
	Copies int32 `json:"copies"`
}

// FailoverPolicy sets whether an object moves if its cluster does not answer.
type FailoverPolicy struct {
	// evictAfterSeconds is how long an object tolerates the taint hanse.dev/unreachable:NoExecute of its cluster. A
	// cluster gets this taint when it has not answered for the grace period that the hub's chart sets. After
	// evictAfterSeconds, other clusters take over the object, or its share of the replicas. The old copy is withdrawn only
	// after its cluster answers again and the replacement is Healthy. 0 to 604800. Unset: the object does not move.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	EvictAfterSeconds *int32 `json:"evictAfterSeconds,omitempty"`
}

// SuspendPolicy stops decisions about clusters, or writes to members.
type SuspendPolicy struct {
	// scheduling true means that the hub does not change its decision which clusters hold an object. Default false.
	// +optional
	Scheduling bool `json:"scheduling,omitempty"`

	// dispatching true means that the hub writes nothing to any member. Default false.
	// +optional
	Dispatching bool `json:"dispatching,omitempty"`

	// clusters are names of MemberClusters to which the hub writes nothing. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters,omitempty"`

	// clusterSelector selects further clusters to which the hub writes nothing, by the labels of their MemberClusters. The
	// region in status.topology counts as a label, and so does the zone if there is only one. {} selects every cluster.
	// Unset: no further cluster is selected.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// PlacementStatus summarizes the objects that follow a placement.
type PlacementStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe. -1: the hub has not processed the
	// object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// objects is the number of objects that follow this placement. An object follows one placement: the one that decides
	// which clusters get the object.
	// +optional
	// +kubebuilder:default=0
	Objects int32 `json:"objects"`

	// selectedClusters is the number of clusters that hold at least one object of this placement.
	// +optional
	// +kubebuilder:default=0
	SelectedClusters int32 `json:"selectedClusters"`

	// oldestObservedTime is the time at which the hub last observed the cluster that has not answered for the longest
	// time. Clusters without objects of this placement are ignored. The counts in this status include the state of that
	// cluster at this time. Unset: all clusters with objects of this placement answer.
	// +optional
	OldestObservedTime *metav1.Time `json:"oldestObservedTime,omitempty"`

	// topology counts the copies of the objects of this placement by region, sorted by the name of the region. At most 100
	// regions.
	// +optional
	// +listType=map
	// +listMapKey=region
	// +kubebuilder:validation:MaxItems=100
	Topology []RegionSummary `json:"topology,omitempty"`

	// removalHeld describes the copies that stay until a user confirms their removal. Unset: there are none.
	// +optional
	RemovalHeld *RemovalHeld `json:"removalHeld,omitempty"`

	// rollout summarizes the rollouts of the objects of this placement. Unset: the placement has no rollout.
	// +optional
	Rollout *PlacementRollout `json:"rollout,omitempty"`

	// conditions are of the types Ready, Accepted, Scheduled, Applied, Healthy, RemovalHeld and RolledOut.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaxRegions bounds PlacementStatus.Topology.
const MaxRegions = 100

// RegionSummary counts the copies in one region.
type RegionSummary struct {
	// region of the clusters. Empty: clusters without a region.
	// +required
	Region string `json:"region"`

	// desired is the number of copies that the clusters of the region shall hold. Each object counts once for each
	// cluster.
	// +optional
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`

	// applied is the number of copies that have the desired content.
	// +optional
	// +kubebuilder:default=0
	Applied int32 `json:"applied"`

	// healthy is the number of healthy copies.
	// +optional
	// +kubebuilder:default=0
	Healthy int32 `json:"healthy"`

	// unknown is the number of copies whose cluster does not answer or has not reported yet.
	// +optional
	// +kubebuilder:default=0
	Unknown int32 `json:"unknown"`

	// replicas is the sum of the last known replicas of all copies. Unset if no copy reports replicas.
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`

	// readyReplicas is the sum of the last known ready replicas of all copies. Unset if no copy reports ready replicas.
	// +optional
	ReadyReplicas *int64 `json:"readyReplicas,omitempty"`
}

// PlacementObject is a Placement or a ClusterPlacement.
//
// +kubebuilder:object:generate=false
type PlacementObject interface {
	metav1.Object
	runtime.Object
	// PlacementSpec returns the part of the spec that both kinds have.
	PlacementSpec() *PlacementSpec
	// PlacementStatus returns the status.
	PlacementStatus() *PlacementStatus
	// SelectedNamespaces returns the namespaceSelector of a ClusterPlacement. It returns nil for a Placement.
	SelectedNamespaces() *metav1.LabelSelector
	// IsEnforced returns the field enforced of a ClusterPlacement. It returns false for a Placement.
	IsEnforced() bool
}

// RemovalHeldOf returns status.removalHeld of a placement, a MemberCluster or a bundle. It returns nil for any other
// object, and if no removal is held.
func RemovalHeldOf(o metav1.Object) *RemovalHeld {
	switch o := o.(type) {
	case PlacementObject:
		return o.PlacementStatus().RemovalHeld
	case *MemberCluster:
		return o.Status.RemovalHeld
	case BundleObject:
		return o.BundleStatus().RemovalHeld
	}
	return nil
}

var (
	_ PlacementObject = &Placement{}
	_ PlacementObject = &ClusterPlacement{}
)

// PlacementSpec implements PlacementObject.
func (p *Placement) PlacementSpec() *PlacementSpec { return &p.Spec }

// PlacementStatus implements PlacementObject.
func (p *Placement) PlacementStatus() *PlacementStatus { return &p.Status }

// SelectedNamespaces implements PlacementObject.
func (p *Placement) SelectedNamespaces() *metav1.LabelSelector { return nil }

// IsEnforced implements PlacementObject.
func (p *Placement) IsEnforced() bool { return false }

// PlacementSpec implements PlacementObject.
func (p *ClusterPlacement) PlacementSpec() *PlacementSpec { return &p.Spec.PlacementSpec }

// PlacementStatus implements PlacementObject.
func (p *ClusterPlacement) PlacementStatus() *PlacementStatus { return &p.Status }

// SelectedNamespaces implements PlacementObject.
func (p *ClusterPlacement) SelectedNamespaces() *metav1.LabelSelector {
	return p.Spec.NamespaceSelector
}

// IsEnforced implements PlacementObject.
func (p *ClusterPlacement) IsEnforced() bool { return p.Spec.Enforced }
