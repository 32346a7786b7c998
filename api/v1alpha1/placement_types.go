package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Placement sends the selected objects of its namespace to clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=pl,categories=hanse
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.selectedClusters`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Placement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects and their clusters.
	// +required
	Spec PlacementSpec `json:"spec"`

	// status counts the objects that follow this placement.
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

// ClusterPlacement sends the selected cluster-scoped objects to clusters. With a namespaceSelector, it also sends
// namespaced objects.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cpl,categories=hanse
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.selectedClusters`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects and their clusters.
	// +required
	Spec ClusterPlacementSpec `json:"spec"`

	// status counts the objects that follow this placement.
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

// ClusterPlacementSpec is a PlacementSpec for all namespaces.
type ClusterPlacementSpec struct {
	PlacementSpec `json:",inline"`

	// namespaceSelector selects namespaces. Objects in these namespaces may then be selected, too. Unset: only
	// cluster-scoped objects. {}: every namespace except kube-* and hanse-system.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// enforced true makes this placement precede every placement that is not enforced, whatever their priorities. It also
	// takes over objects that follow such a placement, even if its preemption is Never. Between two enforced placements,
	// priority and preemption decide. Default false.
	// +optional
	Enforced bool `json:"enforced,omitempty"`
}

// PlacementSpec selects objects and clusters. It also sets how the objects are applied, deleted and reported.
type PlacementSpec struct {
	// resourceSelectors select hub objects. One matching selector is enough. 1 to 64.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// priority decides between placements of one scope that select the same object: the higher number wins. -1000 to
	// 1000, default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// preemption Always takes over objects that follow another placement, if this placement comes before the other one in
	// the order of precedence. Default Never.
	// +optional
	// +kubebuilder:default=Never
	Preemption Preemption `json:"preemption,omitempty"`

	// hubExecution Allowed also places kinds on which controllers of the hub act: RBAC, quotas, admission configurations,
	// and workloads if the hub runs workloads. Default Refused.
	// +optional
	// +kubebuilder:default=Refused
	HubExecution HubExecution `json:"hubExecution,omitempty"`

	// clusters selects the clusters.
	// +required
	Clusters ClusterSelection `json:"clusters"`

	// spread sets how many of the selected clusters hold an object, and which. Unset: every selected cluster that can take
	// the object holds it.
	// +optional
	Spread *SpreadPolicy `json:"spread,omitempty"`

	// references are rules for objects that the selected objects name, such as the Secret of a Certificate. If no
	// placement selects such an object, it goes to the same clusters as the object that names it. It is created before,
	// and removed after, the objects that name it. At most 16 rules, and 64 names for each object.
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

	// deletion sets whether copies on members are deleted or orphaned.
	// +optional
	// +kubebuilder:default={}
	Deletion DeletionPolicy `json:"deletion,omitempty"`

	// removalLimit is the number of copies that may be deleted at once because clusters are no longer selected. If more
	// copies would be deleted, all of them stay until a user confirms the removal. Unset: the limit of the hub's chart, by
	// default 5 copies or 20 percent, whichever is larger.
	// +optional
	RemovalLimit *RemovalLimit `json:"removalLimit,omitempty"`

	// allowEmpty true lets objects lose their last copy without a confirmation. Default false: the last copy of an
	// object stays until a user confirms the removal.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`

	// failover sets whether an object moves if its cluster does not answer. Unset: the object stays on the cluster.
	// +optional
	Failover FailoverPolicy `json:"failover,omitempty"`

	// rollout sends changes to the clusters in waves. Unset: a change is sent to all clusters at once.
	// +optional
	Rollout *RolloutPolicy `json:"rollout,omitempty"`

	// suspend stops decisions or writes. Copies on members stay as they are.
	// +optional
	// +kubebuilder:default={}
	Suspend SuspendPolicy `json:"suspend,omitempty"`

	// statusAggregation sets how the health of copies is judged, and how and where their statuses are merged.
	// +optional
	// +kubebuilder:default={}
	StatusAggregation StatusAggregation `json:"statusAggregation,omitempty"`
}

// Preemption sets whether a placement takes over objects from another placement.
// +kubebuilder:validation:Enum=Never;Always
type Preemption string

const (
	// PreemptionNever leaves an object with the placement that it follows.
	PreemptionNever Preemption = "Never"
	// PreemptionAlways takes an object over if this placement precedes the other one in the order of precedence.
	PreemptionAlways Preemption = "Always"
)

// HubExecution sets whether kinds are placed on which controllers of the hub act.
// +kubebuilder:validation:Enum=Refused;Allowed
type HubExecution string

const (
	// HubExecutionRefused places no kind on which controllers of the hub act.
	HubExecutionRefused HubExecution = "Refused"
	// HubExecutionAllowed places such kinds. Their objects take effect on the hub, too.
	HubExecutionAllowed HubExecution = "Allowed"
)

// ClusterSelection selects the clusters that match all fields that are set. excludedNames removes clusters from the
// selection.
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

	// labelSelector selects by the labels of MemberClusters, with their derived region and zone. {} selects every
	// cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// expression in CEL is true for the clusters to select: "semver(version, true).major() == 1 && nodes.ready >= 3".
	// Variables: name, labels, annotations, region, zone, version, capacity, allocatable, nodes, servedKinds, operators.
	// The CEL libraries of Kubernetes are available. If the expression becomes false for a cluster, the cluster gets no
	// new objects. If the expression reads only name, labels, annotations, region and zone, the cluster also loses the
	// objects that it holds.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`

	// tolerations of cluster taints, as for pods. tolerationSeconds limits how long a NoExecute taint is tolerated after
	// its timeAdded. If several tolerations match, the shortest time is used. During this time, the cluster gets no new
	// objects. The toleration of the taint hanse.dev/unreachable comes from failover, unless a toleration names this key.
	// At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Adoption sets what happens to an object that exists on the member and does not belong to the hub.
// +kubebuilder:validation:Enum=Never;IfNoDiff;Always
type Adoption string

const (
	// AdoptionNever leaves the object unchanged and reports AlreadyExists.
	AdoptionNever Adoption = "Never"
	// AdoptionIfNoDiff adopts the object if a dry run shows that only Hanse's labels and annotations would change. It
	// adopts no Secret, and no object of another hub.
	AdoptionIfNoDiff Adoption = "IfNoDiff"
	// AdoptionAlways adopts the object, unless another hub owns it.
	AdoptionAlways Adoption = "Always"
)

// FieldConflict sets what happens if another manager changed a field that the hub set.
// +kubebuilder:validation:Enum=Take;Report
type FieldConflict string

const (
	// FieldConflictTake sets the field back.
	FieldConflictTake FieldConflict = "Take"
	// FieldConflictReport leaves the object unchanged and reports FieldConflict.
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

// UnknownFields sets what happens to fields that are missing in the member's schema of the kind.
// +kubebuilder:validation:Enum=Reject;Drop
type UnknownFields string

const (
	// UnknownFieldsReject leaves the member's object unchanged and reports FieldsNotServed.
	UnknownFieldsReject UnknownFields = "Reject"
	// UnknownFieldsDrop sends the object without the unknown fields and reports the fields.
	UnknownFieldsDrop UnknownFields = "Drop"
)

// Recreate sets whether the hub creates a copy again that was deleted on a member.
// +kubebuilder:validation:Enum=Always;UntilCompleted;Never
type Recreate string

const (
	// RecreateAlways creates the copy again.
	RecreateAlways Recreate = "Always"
	// RecreateUntilCompleted creates the copy again, unless it runs to completion, such as a Job, and has completed or
	// failed.
	RecreateUntilCompleted Recreate = "UntilCompleted"
	// RecreateNever creates the copy again only when the hub object changes.
	RecreateNever Recreate = "Never"
)

// ApplyPolicy sets how objects are written to members.
type ApplyPolicy struct {
	// mode ReportOnly writes nothing to members and reports the fields that would change. Default Enforce.
	// +optional
	// +kubebuilder:default=Enforce
	Mode ApplyMode `json:"mode,omitempty"`

	// adoption sets whether the hub adopts an object that already exists on a member. Default Never.
	// +optional
	// +kubebuilder:default=Never
	Adoption Adoption `json:"adoption,omitempty"`

	// fieldConflict Take sets a field back that another manager changed. Report leaves the object unchanged and reports
	// the conflict. Default Take.
	// +optional
	// +kubebuilder:default=Take
	FieldConflict FieldConflict `json:"fieldConflict,omitempty"`

	// unknownFields Reject does not write an object with fields that the member's schema does not have. Drop writes the
	// object without the fields. Default Reject.
	// +optional
	// +kubebuilder:default=Reject
	UnknownFields UnknownFields `json:"unknownFields,omitempty"`

	// memberOwnedFields are JSON pointers (RFC 6901) to fields, such as /spec/replicas. The hub sets these fields when
	// it creates the copy, and never changes them afterwards. A pointer names keys of objects, not items of lists. At
	// most 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(/([^/~]|~[01])+)+$`
	// +kubebuilder:validation:XValidation:rule="self.all(p, !(p in ['/apiVersion', '/kind', '/metadata', '/status', '/spec']) && !p.startsWith('/status/') && (!p.startsWith('/metadata/') || p.startsWith('/metadata/labels/') || p.startsWith('/metadata/annotations/')))",message="name fields of the object such as /spec/replicas, not apiVersion, kind, status, all of spec, or metadata other than single labels and annotations"
	MemberOwnedFields []string `json:"memberOwnedFields,omitempty"`

	// recreate sets whether the hub creates a copy again that was deleted on a member. Default UntilCompleted.
	// +optional
	// +kubebuilder:default=UntilCompleted
	Recreate Recreate `json:"recreate,omitempty"`

	// createNamespace true creates a missing namespace on the member. Default true.
	// +optional
	// +kubebuilder:default=true
	CreateNamespace *bool `json:"createNamespace,omitempty"`
}

// DeletionPolicy sets whether copies on members are deleted or orphaned.
type DeletionPolicy struct {
	// whenDeleted applies when the hub object is deleted. Default Delete; Orphan for CustomResourceDefinitions and
	// Namespaces.
	// +optional
	WhenDeleted RemovalPolicy `json:"whenDeleted,omitempty"`

	// whenUnselected applies when a cluster is no longer selected. Default Delete; Orphan for CustomResourceDefinitions
	// and Namespaces.
	// +optional
	WhenUnselected RemovalPolicy `json:"whenUnselected,omitempty"`

	// adopted Orphan leaves adopted copies on the member, even if another field or leave.policy says Delete. An adopted
	// copy existed on the member before the hub adopted it. Default Orphan.
	// +optional
	// +kubebuilder:default=Orphan
	Adopted RemovalPolicy `json:"adopted,omitempty"`

	// propagationPolicy of delete requests to members. Default Background.
	// +optional
	// +kubebuilder:default=Background
	// +kubebuilder:validation:Enum=Background;Foreground
	PropagationPolicy metav1.DeletionPropagation `json:"propagationPolicy,omitempty"`
}

// RemovalLimit is the number of copies that may be deleted at once. The larger of the two limits is used.
type RemovalLimit struct {
	// copies is the number of copies that may be deleted at once, even if it is more than percent allows. 0 to 1000000.
	// Unset: guard.copies of the hub's chart.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Copies *int32 `json:"copies,omitempty"`

	// percent of all copies that may be deleted at once. 0 to 100. Unset: guard.percent of the hub's chart.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
}

// RemovalHeld describes the copies that stay until a user confirms their removal.
type RemovalHeld struct {
	// id of this removal. To confirm the removal, set the annotation hanse.dev/confirm-removal to this id. An id is valid
	// once. It covers the clusters and causes that are listed here, and at most a tenth more copies.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// since is the time at which the first of these removals was held.
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
	// cluster gets this taint when it has not answered for the hub's grace period. After evictAfterSeconds, other clusters
	// take over the object, or its share of the replicas. The old copy is withdrawn only when its cluster answers again
	// and the replacement is Healthy. 0 to 604800. Unset: the object stays.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	EvictAfterSeconds *int32 `json:"evictAfterSeconds,omitempty"`
}

// SuspendPolicy stops decisions or writes.
type SuspendPolicy struct {
	// scheduling true means that the hub changes no decision on an object. Default false.
	// +optional
	Scheduling bool `json:"scheduling,omitempty"`

	// dispatching true means that the hub writes nothing to any member. Default false.
	// +optional
	Dispatching bool `json:"dispatching,omitempty"`

	// clusters to which the hub writes nothing. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters,omitempty"`

	// clusterSelector selects more clusters to which the hub writes nothing. It uses the labels of MemberClusters, with
	// their derived region and zone. {} selects every cluster. Unset: no cluster is selected by labels.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// PlacementStatus counts the objects that follow a placement.
type PlacementStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe. -1: the hub has not processed the
	// object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// objects is the number of objects that follow this placement.
	// +optional
	// +kubebuilder:default=0
	Objects int32 `json:"objects"`

	// selectedClusters is the number of clusters that hold at least one object of this placement.
	// +optional
	// +kubebuilder:default=0
	SelectedClusters int32 `json:"selectedClusters"`

	// oldestObservedTime is the time of the oldest observation that this status contains. It comes from the target cluster
	// that has not answered for the longest time. It is unset while all target clusters answer.
	// +optional
	OldestObservedTime *metav1.Time `json:"oldestObservedTime,omitempty"`

	// topology counts the copies of the objects of this placement by region, sorted by name of the region. At most 100
	// regions.
	// +optional
	// +listType=map
	// +listMapKey=region
	// +kubebuilder:validation:MaxItems=100
	Topology []RegionSummary `json:"topology,omitempty"`

	// removalHeld describes the copies that stay until a user confirms their removal. Unset if there are none.
	// +optional
	RemovalHeld *RemovalHeld `json:"removalHeld,omitempty"`

	// rollout counts the rollouts of the objects of this placement. Unset if the placement has no rollout.
	// +optional
	Rollout *PlacementRollout `json:"rollout,omitempty"`

	// conditions: Ready, Accepted, Scheduled, Applied, Healthy, RemovalHeld, RolledOut.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MostRegions bounds PlacementStatus.Topology.
const MostRegions = 100

// RegionSummary counts the copies in one region.
type RegionSummary struct {
	// region of the clusters. Empty for clusters without a region.
	// +required
	Region string `json:"region"`

	// desired is the number of copies that clusters shall hold: one for each object and cluster.
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
	// PlacementSpec returns the fields that both kinds share.
	PlacementSpec() *PlacementSpec
	// PlacementStatus returns the status.
	PlacementStatus() *PlacementStatus
	// SelectedNamespaces returns the namespaceSelector of a ClusterPlacement. It is nil for a Placement.
	SelectedNamespaces() *metav1.LabelSelector
	// IsEnforced returns the field enforced of a ClusterPlacement. It is false for a Placement.
	IsEnforced() bool
}

// RemovalHeldOf returns status.removalHeld of a placement or a MemberCluster. It is nil for any other object.
func RemovalHeldOf(o metav1.Object) *RemovalHeld {
	switch o := o.(type) {
	case PlacementObject:
		return o.PlacementStatus().RemovalHeld
	case *MemberCluster:
		return o.Status.RemovalHeld
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
