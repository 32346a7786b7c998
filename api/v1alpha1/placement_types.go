package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Placement says to which clusters the selected objects of its namespace go.
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

	// spec says which objects go where.
	// +required
	Spec PlacementSpec `json:"spec"`

	// status sums up the objects that follow this placement.
	// +optional
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

// ClusterPlacement says to which clusters the selected cluster-scoped objects go, and, with a namespaceSelector,
// namespaced ones.
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

	// spec says which objects go where.
	// +required
	Spec ClusterPlacementSpec `json:"spec"`

	// status sums up the objects that follow this placement.
	// +optional
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

	// namespaceSelector selects the namespaces whose objects are meant as well. Unset: cluster-scoped objects only.
	// {}: every namespace but kube-* and hanse-system.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// enforced true puts this placement before every Placement and every ClusterPlacement that is not enforced, whatever
	// their priority. It also takes over the objects that follow one of them, whatever its own preemption. Between
	// enforced ones, priority and preemption count as ever. Default false.
	// +optional
	Enforced bool `json:"enforced,omitempty"`
}

// PlacementSpec says which objects go to which clusters, and how they are applied, deleted and reported.
type PlacementSpec struct {
	// resourceSelectors select hub objects; one match is enough. 1 to 64.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// priority decides between placements of one scope that select the same object; the higher one wins. -1000 to 1000,
	// default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// preemption says whether this placement takes over objects that follow another one. Default Never.
	// +optional
	// +kubebuilder:default=Never
	Preemption Preemption `json:"preemption,omitempty"`

	// hubExecution Allowed also places kinds that the hub itself acts on (RBAC, quotas, admission configurations,
	// and workloads on a hub that runs them). Default Refused.
	// +optional
	// +kubebuilder:default=Refused
	HubExecution HubExecution `json:"hubExecution,omitempty"`

	// clusters selects the clusters.
	// +required
	Clusters ClusterSelection `json:"clusters"`

	// spread says how many of the selected clusters hold an object, and which. Unset: all that can.
	// +optional
	Spread *SpreadPolicy `json:"spread,omitempty"`

	// replicas says whether each cluster gets all replicas or a share of them.
	// +optional
	// +kubebuilder:default={}
	Replicas ReplicasPolicy `json:"replicas,omitempty"`

	// apply says how objects are written to members.
	// +optional
	// +kubebuilder:default={}
	Apply ApplyPolicy `json:"apply,omitempty"`

	// deletion says what becomes of member objects.
	// +optional
	// +kubebuilder:default={}
	Deletion DeletionPolicy `json:"deletion,omitempty"`

	// removalLimit is how many copies of its objects may be deleted at once because clusters lose them: if more are to go,
	// all stay until a user confirms it. Unset: the limit of the hub's chart, by default 5 copies or 20 percent, the
	// larger one.
	// +optional
	RemovalLimit *RemovalLimit `json:"removalLimit,omitempty"`

	// allowEmpty says that objects may lose their last copy without a confirmation. Default false: the last copy of an
	// object stays until a user confirms it.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`

	// failover says what becomes of an object whose cluster does not answer. Unset: it stays where it is.
	// +optional
	Failover FailoverPolicy `json:"failover,omitempty"`

	// suspend stops parts of the work; what runs on members stays as it is.
	// +optional
	// +kubebuilder:default={}
	Suspend SuspendPolicy `json:"suspend,omitempty"`

	// statusAggregation says how copies are judged, how their statuses are merged, and where the merged status goes.
	// +optional
	// +kubebuilder:default={}
	StatusAggregation StatusAggregation `json:"statusAggregation,omitempty"`
}

// Preemption says whether a placement takes objects from another one.
// +kubebuilder:validation:Enum=Never;Always
type Preemption string

const (
	// PreemptionNever leaves an object with the placement it follows.
	PreemptionNever Preemption = "Never"
	// PreemptionAlways takes an object over if this placement comes first in the order of precedence.
	PreemptionAlways Preemption = "Always"
)

// HubExecution says whether kinds that the hub would run may be placed.
// +kubebuilder:validation:Enum=Refused;Allowed
type HubExecution string

const (
	// HubExecutionRefused places no kind that the hub itself would run.
	HubExecutionRefused HubExecution = "Refused"
	// HubExecutionAllowed places them; they take effect on the hub, too.
	HubExecutionAllowed HubExecution = "Allowed"
)

// ClusterSelection selects clusters. Everything that is set must hold; excludedNames subtracts.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.labelSelector) || has(self.expression)",message="set names, labelSelector or expression; 'labelSelector: {}' selects every cluster"
type ClusterSelection struct {
	// names of MemberClusters. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// excludedNames of MemberClusters. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	ExcludedNames []string `json:"excludedNames,omitempty"`

	// labelSelector over the labels of MemberClusters and their derived region and zone. {} selects every cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// expression in CEL that is true for the clusters that are meant, over name, labels, annotations, region, zone,
	// version, capacity, allocatable, nodes and servedKinds, with the libraries of Kubernetes: "semver(version,
	// true).major() == 1 && nodes.ready >= 3". One that reads only name, labels, annotations, region and zone takes the
	// object away from clusters for which it turns false; any other only keeps new objects away.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`

	// tolerations of cluster taints, as for pods. With tolerationSeconds a NoExecute taint is tolerated for so long after
	// its timeAdded, and new objects keep away from it; of several the shortest counts. hanse.dev/unreachable is tolerated
	// as failover says, unless a toleration names that key. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Adoption says what to do about an object that exists on the member and is not the hub's.
// +kubebuilder:validation:Enum=Never;IfNoDiff;Always
type Adoption string

const (
	// AdoptionNever leaves the object alone and reports AlreadyExists.
	AdoptionNever Adoption = "Never"
	// AdoptionIfNoDiff takes the object over if a dry run shows that the rendered object could take its place and change
	// nothing but Hanse's marks, unless another hub owns it or it is a Secret, whose values are not compared.
	AdoptionIfNoDiff Adoption = "IfNoDiff"
	// AdoptionAlways takes the object over, unless another hub owns it.
	AdoptionAlways Adoption = "Always"
)

// FieldConflict says what to do about a field of ours that another manager changed.
// +kubebuilder:validation:Enum=Take;Report
type FieldConflict string

const (
	// FieldConflictTake sets the field back.
	FieldConflictTake FieldConflict = "Take"
	// FieldConflictReport leaves the object as it is and reports FieldConflict.
	FieldConflictReport FieldConflict = "Report"
)

// ApplyMode says whether members are written at all.
// +kubebuilder:validation:Enum=Enforce;ReportOnly
type ApplyMode string

const (
	// ApplyEnforce writes to members.
	ApplyEnforce ApplyMode = "Enforce"
	// ApplyReportOnly writes nothing to members and reports what would be changed.
	ApplyReportOnly ApplyMode = "ReportOnly"
)

// UnknownFields says what to do about fields that a member's schema of the kind does not have.
// +kubebuilder:validation:Enum=Reject;Drop
type UnknownFields string

const (
	// UnknownFieldsReject leaves the member's object as it is and reports FieldsNotServed.
	UnknownFieldsReject UnknownFields = "Reject"
	// UnknownFieldsDrop sends the object without them and says which.
	UnknownFieldsDrop UnknownFields = "Drop"
)

// Recreate says whether a copy that vanished from a member is made anew.
// +kubebuilder:validation:Enum=Always;UntilCompleted;Never
type Recreate string

const (
	// RecreateAlways makes it anew.
	RecreateAlways Recreate = "Always"
	// RecreateUntilCompleted makes it anew unless it runs to completion, such as a Job, and was seen complete or failed.
	RecreateUntilCompleted Recreate = "UntilCompleted"
	// RecreateNever leaves it away until the object changes.
	RecreateNever Recreate = "Never"
)

// ApplyPolicy says how objects are written to members.
type ApplyPolicy struct {
	// mode ReportOnly writes nothing to members and reports what would be changed. Default Enforce.
	// +optional
	// +kubebuilder:default=Enforce
	Mode ApplyMode `json:"mode,omitempty"`

	// adoption of an object that is already there. Default Never.
	// +optional
	// +kubebuilder:default=Never
	Adoption Adoption `json:"adoption,omitempty"`

	// fieldConflict is what happens to a field of ours that another manager changed. Default Take.
	// +optional
	// +kubebuilder:default=Take
	FieldConflict FieldConflict `json:"fieldConflict,omitempty"`

	// unknownFields is what happens to fields that the member's schema of the kind does not have. Default Reject.
	// +optional
	// +kubebuilder:default=Reject
	UnknownFields UnknownFields `json:"unknownFields,omitempty"`

	// memberOwnedFields are JSON pointers (RFC 6901) to fields, such as /spec/replicas, that are set when the object is
	// made and left to the member from then on. They name keys of objects only, not places in lists. At most 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(/([^/~]|~[01])+)+$`
	// +kubebuilder:validation:XValidation:rule="self.all(p, !(p in ['/apiVersion', '/kind', '/metadata', '/status', '/spec']) && !p.startsWith('/status/') && (!p.startsWith('/metadata/') || p.startsWith('/metadata/labels/') || p.startsWith('/metadata/annotations/')))",message="name fields of the object such as /spec/replicas, not apiVersion, kind, status, all of spec, or metadata other than single labels and annotations"
	MemberOwnedFields []string `json:"memberOwnedFields,omitempty"`

	// recreate is whether a copy that vanished from a member is made anew. Default UntilCompleted.
	// +optional
	// +kubebuilder:default=UntilCompleted
	Recreate Recreate `json:"recreate,omitempty"`

	// createNamespace makes a missing namespace on the member. Default true.
	// +optional
	// +kubebuilder:default=true
	CreateNamespace *bool `json:"createNamespace,omitempty"`
}

// DeletionPolicy says what becomes of member objects. CustomResourceDefinitions and Namespaces default to Orphan in the
// first two fields.
type DeletionPolicy struct {
	// whenDeleted applies when the hub object is deleted. Default Delete; Orphan for CustomResourceDefinitions and
	// Namespaces.
	// +optional
	WhenDeleted RemovalPolicy `json:"whenDeleted,omitempty"`

	// whenUnselected applies when a cluster is no longer selected. Default Delete; Orphan for CustomResourceDefinitions
	// and Namespaces.
	// +optional
	WhenUnselected RemovalPolicy `json:"whenUnselected,omitempty"`

	// adopted is what becomes of a copy that was on the member before Hanse took it over, where another field or
	// leave.policy of the MemberCluster says Delete. Default Orphan.
	// +optional
	// +kubebuilder:default=Orphan
	Adopted RemovalPolicy `json:"adopted,omitempty"`

	// propagationPolicy of deletes on members. Default Background.
	// +optional
	// +kubebuilder:default=Background
	// +kubebuilder:validation:Enum=Background;Foreground
	PropagationPolicy metav1.DeletionPropagation `json:"propagationPolicy,omitempty"`
}

// RemovalLimit is the number of copies that may be deleted at once: the larger one of both.
type RemovalLimit struct {
	// copies that may go at once, even if they are a larger share than percent. 0 to 1000000. Unset: guard.copies of the
	// hub's chart.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Copies *int32 `json:"copies,omitempty"`

	// percent of all copies that may go at once. 0 to 100. Unset: guard.percent of the hub's chart.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
}

// RemovalHeld sums up the copies that are to be deleted and stay until a user confirms the removal.
type RemovalHeld struct {
	// id confirms this removal: set the annotation hanse.dev/confirm-removal to it. It is good once. It covers the
	// clusters and reasons that are shown here, and at most a tenth more copies.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// since is when the first of these removals was held.
	// +required
	Since metav1.Time `json:"since"`

	// causes say why the copies are to go, one for each reason, such as "NotSelected: label tier prdo is not in [prod]".
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

	// copies that would go.
	// +required
	Copies int32 `json:"copies"`
}

// FailoverPolicy says what becomes of an object whose cluster does not answer.
type FailoverPolicy struct {
	// evictAfterSeconds is for how long the taint hanse.dev/unreachable:NoExecute is tolerated, which a cluster gets when
	// it has not answered for the hub's grace period. After that another cluster takes its place, or the others its share
	// of the replicas. The copy on it is withdrawn only when the cluster answers again and the replacement is Healthy. 0
	// to 604800. Unset: for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	EvictAfterSeconds *int32 `json:"evictAfterSeconds,omitempty"`
}

// SuspendPolicy stops parts of the work.
type SuspendPolicy struct {
	// scheduling keeps every decision as it is. Default false.
	// +optional
	Scheduling bool `json:"scheduling,omitempty"`

	// dispatching writes nothing to any member. Default false.
	// +optional
	Dispatching bool `json:"dispatching,omitempty"`

	// clusters to which nothing is written. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters,omitempty"`
}

// PlacementStatus sums up the objects that follow a placement.
type PlacementStatus struct {
	// observedGeneration is the generation of the spec that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// objects is the number of objects that follow this placement.
	// +optional
	// +kubebuilder:default=0
	Objects int32 `json:"objects"`

	// selectedClusters is the number of clusters that hold at least one of them.
	// +optional
	// +kubebuilder:default=0
	SelectedClusters int32 `json:"selectedClusters"`

	// oldestObservedTime is the time of the oldest observation that these numbers and conditions rest on. It belongs to
	// the target cluster that has been away the longest. Unset while no target cluster is away.
	// +optional
	OldestObservedTime *metav1.Time `json:"oldestObservedTime,omitempty"`

	// topology sums up the copies of these objects by region, sorted by name. At most 100 regions are listed.
	// +optional
	// +listType=map
	// +listMapKey=region
	// +kubebuilder:validation:MaxItems=100
	Topology []RegionSummary `json:"topology,omitempty"`

	// removalHeld sums up the copies that are to go and stay until a user confirms the removal. Unset if there are none.
	// +optional
	RemovalHeld *RemovalHeld `json:"removalHeld,omitempty"`

	// conditions: Accepted, Scheduled, Applied, Healthy, RemovalHeld.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MostRegions bounds PlacementStatus.Topology.
const MostRegions = 100

// RegionSummary sums up the copies in one region.
type RegionSummary struct {
	// region of the clusters; empty for those that have none.
	// +required
	Region string `json:"region"`

	// desired is the number of copies that there shall be: one for each object and cluster.
	// +optional
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`

	// applied is the number of those that are as is desired now.
	// +optional
	// +kubebuilder:default=0
	Applied int32 `json:"applied"`

	// healthy is the number of those that are healthy.
	// +optional
	// +kubebuilder:default=0
	Healthy int32 `json:"healthy"`

	// unknown is the number of those whose cluster is away or has not reported yet.
	// +optional
	// +kubebuilder:default=0
	Unknown int32 `json:"unknown"`

	// replicas of all copies that report such a number, as last known. Unset if none does.
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`

	// readyReplicas is how many of the replicas are ready, as last known. Unset if no copy says so.
	// +optional
	ReadyReplicas *int64 `json:"readyReplicas,omitempty"`
}

// PlacementObject is a Placement or a ClusterPlacement.
//
// +kubebuilder:object:generate=false
type PlacementObject interface {
	metav1.Object
	runtime.Object
	// PlacementSpec is the part that both kinds share.
	PlacementSpec() *PlacementSpec
	// PlacementStatus is the status.
	PlacementStatus() *PlacementStatus
	// SelectedNamespaces is nil for a Placement and the namespaceSelector for a ClusterPlacement.
	SelectedNamespaces() *metav1.LabelSelector
	// IsEnforced is false for a Placement and enforced for a ClusterPlacement.
	IsEnforced() bool
}

// RemovalHeldOf is status.removalHeld of a placement or a MemberCluster. It is nil for any other object.
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
