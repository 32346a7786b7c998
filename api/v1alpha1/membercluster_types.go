package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberCluster is one cluster that receives objects from the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=mcl,categories=hanse
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="As Of",type=date,JSONPath=`.status.lastObservedTime`
// +kubebuilder:printcolumn:name="Cordoned",type=boolean,JSONPath=`.spec.unschedulable`
// +kubebuilder:printcolumn:name="To-Drain",type=integer,JSONPath=`.status.drain.remaining`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.status.topology.region`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version.kubernetes`
// +kubebuilder:printcolumn:name="Connection",type=string,JSONPath=`.spec.connection.type`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Nodes",type=integer,priority=1,JSONPath=`.status.nodes.ready`
// +kubebuilder:printcolumn:name="Taints",type=string,priority=1,JSONPath=`.spec.taints`
// +kubebuilder:printcolumn:name="Credentials-Until",type=string,priority=1,JSONPath=`.status.credentials.expireTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="the name of a MemberCluster is a DNS label of at most 63 characters"
type MemberCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how the cluster is reached and what may go there.
	// +required
	Spec MemberClusterSpec `json:"spec"`

	// status is what the hub last saw of the cluster.
	// +optional
	Status MemberClusterStatus `json:"status,omitempty"`
}

// MemberClusterList is a list of MemberClusters.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberCluster `json:"items"`
}

// MemberClusterSpec says how a cluster is reached and what may go there.
type MemberClusterSpec struct {
	// connection is how the hub reaches the cluster's API server.
	// +required
	Connection Connection `json:"connection"`

	// taints keep objects away whose placement does not tolerate them. NoSchedule keeps new objects away; NoExecute also
	// withdraws those that are there; PreferNoSchedule only lowers the score of the cluster. A placement may tolerate a
	// NoExecute taint for a time: its objects are withdrawn when that time has passed since timeAdded. Without timeAdded
	// they stay. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="the effect of a taint is NoSchedule, PreferNoSchedule or NoExecute"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !t.key.startsWith('hanse.dev/'))",message="taints of hanse.dev/ are set by the hub, in status.taints"
	Taints []corev1.Taint `json:"taints,omitempty"`

	// unschedulable keeps new objects away; those that are there stay. Default false.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`

	// drain moves the objects of this cluster to others and keeps new ones away. Each object gets its replacement first
	// and leaves this cluster when that is Healthy. What no other cluster can take stays, and so does what its placement
	// wants on every cluster. Unset: nothing is moved; what is moving already goes on.
	// +optional
	Drain *DrainPolicy `json:"drain,omitempty"`

	// allowedNamespaces says from which hub namespaces objects may come. It does not limit cluster-scoped objects. Checked
	// at the decision and before each write; an object whose namespace is no longer allowed is neither changed nor
	// deleted.
	// +required
	AllowedNamespaces AllowedNamespaces `json:"allowedNamespaces"`

	// requirePlaceVerb lets only authors who have the verb place on this MemberCluster place objects here. The webhook
	// asks for it when a placement is made or its spec changes and its names and labels select this cluster. Placements
	// that are stored already are not asked again, and neither is one that selects the cluster only later. Default false:
	// who may write placements may place objects here.
	// +optional
	RequirePlaceVerb bool `json:"requirePlaceVerb,omitempty"`

	// hub says that this cluster is the hub itself. Its objects are the hub's own, so nothing is written there. The hub
	// believes this field alone: a cluster that answers with the hub's identity without it is refused (ClusterIDClaimed),
	// and so is another cluster with it (IdentityChanged). Default false: this is another cluster than the hub.
	// +optional
	Hub bool `json:"hub,omitempty"`

	// leave says what becomes of the objects on the cluster when this MemberCluster is deleted.
	// Unset: they stay (Orphan), and the deletion waits for the cluster to answer.
	// +optional
	// +kubebuilder:default={}
	Leave LeavePolicy `json:"leave,omitempty"`
}

// DrainPolicy says how a cluster is emptied.
type DrainPolicy struct {
	// maxUnavailable is how many objects of the cluster may be moving at a time: their replacement is chosen and not yet
	// Healthy. 1 to 10000, default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`

	// evict also takes away objects that no other cluster can take. These are objects that their placements want on every
	// cluster, and objects without a replacement. They come back when drain is unset.
	// deletion.whenUnselected of the placement says whether a copy is deleted or orphaned. Default false: such objects
	// stay.
	// +optional
	Evict bool `json:"evict,omitempty"`
}

// MostUnavailable is the default of DrainPolicy.MaxUnavailable.
const MostUnavailable = 10

// ConnectionType is how the hub reaches a member.
// +kubebuilder:validation:Enum=Direct
type ConnectionType string

// ConnectionDirect means that the hub dials the member's API server with a kubeconfig.
const ConnectionDirect ConnectionType = "Direct"

// Connection is a union: exactly the member named by type is set.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'Direct' ? has(self.direct) : !has(self.direct)",message="set direct if and only if type is Direct"
type Connection struct {
	// type is the kind of connection. It cannot be changed; delete the MemberCluster (its objects stay) and join again.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="connection.type cannot be changed: delete the MemberCluster (its objects stay) and join again"
	Type ConnectionType `json:"type"`

	// direct is set if type is Direct.
	// +optional
	Direct *DirectConnection `json:"direct,omitempty"`
}

// DirectConnection reaches the member's API server from the hub.
type DirectConnection struct {
	// kubeconfigSecretRef names a Secret in the namespace hanse-system. The kubeconfig must hold everything inline; exec,
	// auth-provider, file paths, proxy-url and insecure-skip-tls-verify are refused. A changed Secret is picked up without
	// a restart.
	// +required
	KubeconfigSecretRef SecretKeyRef `json:"kubeconfigSecretRef"`
}

// SecretKeyRef names one key of a Secret in the namespace hanse-system.
type SecretKeyRef struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in the Secret's data. Default "kubeconfig".
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// NamespacesFrom says which hub namespaces are meant.
// +kubebuilder:validation:Enum=All;Selector;None
type NamespacesFrom string

const (
	// NamespacesFromAll means every namespace.
	NamespacesFromAll NamespacesFrom = "All"
	// NamespacesFromSelector means the namespaces that the selector selects.
	NamespacesFromSelector NamespacesFrom = "Selector"
	// NamespacesFromNone means no namespace.
	NamespacesFromNone NamespacesFrom = "None"
)

// AllowedNamespaces selects hub namespaces.
//
// +kubebuilder:validation:XValidation:rule="(self.from == 'Selector') == has(self.selector)",message="set selector if and only if from is Selector"
type AllowedNamespaces struct {
	// from is All, Selector or None.
	// +required
	From NamespacesFrom `json:"from"`

	// selector selects namespaces by their labels on the hub. Set if from is Selector.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// RemovalPolicy says what becomes of a member object that the hub no longer keeps there.
// +kubebuilder:validation:Enum=Orphan;Delete
type RemovalPolicy string

const (
	// RemovalOrphan leaves the object and removes the hub's labels, annotations and field ownership.
	RemovalOrphan RemovalPolicy = "Orphan"
	// RemovalDelete deletes the object.
	RemovalDelete RemovalPolicy = "Delete"
)

// WhenUnreachable says what to do about a cluster that does not answer.
// +kubebuilder:validation:Enum=Wait;Abandon
type WhenUnreachable string

const (
	// UnreachableWait waits for the cluster to answer.
	UnreachableWait WhenUnreachable = "Wait"
	// UnreachableAbandon gives the cluster's objects up and says which were left behind.
	UnreachableAbandon WhenUnreachable = "Abandon"
)

// CredentialsOnLeave says what becomes of the hub's credentials on a cluster that leaves.
// +kubebuilder:validation:Enum=Keep;Revoke
type CredentialsOnLeave string

const (
	// CredentialsKeep leaves them valid.
	CredentialsKeep CredentialsOnLeave = "Keep"
	// CredentialsRevoke deletes the Secret on the cluster that the hub's token is bound to, so that the token is refused
	// from then on.
	CredentialsRevoke CredentialsOnLeave = "Revoke"
)

// LeavePolicy says what becomes of a cluster's objects when its MemberCluster is deleted.
type LeavePolicy struct {
	// policy is Orphan (the objects stay as they are, without marks of the hub) or Delete. Default Orphan.
	// +optional
	// +kubebuilder:default=Orphan
	Policy RemovalPolicy `json:"policy,omitempty"`

	// timeoutSeconds is how long an unreachable cluster is waited for before whenUnreachable: Abandon takes effect.
	// Default 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// whenUnreachable is Wait (for ever, with the reason in the Ready condition) or Abandon. Default Wait.
	// +optional
	// +kubebuilder:default=Wait
	WhenUnreachable WhenUnreachable `json:"whenUnreachable,omitempty"`

	// credentials is Keep or Revoke. With Revoke the hub revokes its token on the cluster as its last act there, if the
	// cluster answers and the token is one of hansectl's; an event says whether it did. hansectl unjoin sets it. Default
	// Keep: a MemberCluster that is deleted by mistake and made again finds its credentials valid.
	// +optional
	// +kubebuilder:default=Keep
	Credentials CredentialsOnLeave `json:"credentials,omitempty"`
}

// MemberClusterStatus is what the hub last saw of a cluster.
type MemberClusterStatus struct {
	// observedGeneration is the generation of the spec that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// clusterID is the UID of the cluster's kube-system namespace. It is set once.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ClusterID string `json:"clusterID,omitempty"`

	// lastObservedTime is when a watch of the cluster last delivered something to the hub. Written with every other change
	// of this status, and else at most every 30 s: a time that is older than a minute means that the hub does not observe
	// the cluster, whatever the conditions say. Unset before the first connection.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`

	// version is what the cluster runs.
	// +optional
	Version ClusterVersion `json:"version,omitempty"`

	// topology is where the cluster is, from its labels or else from its nodes.
	// +optional
	Topology ClusterTopology `json:"topology,omitempty"`

	// apiResources are the kinds that placements select, and at which versions the cluster serves them. Unset before the
	// cluster was asked. At most 500.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=500
	APIResources []ServedKind `json:"apiResources,omitempty"`

	// capacity is the sum over the cluster's nodes.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the sum over the cluster's ready, schedulable nodes.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// nodes counts the cluster's nodes.
	// +optional
	Nodes NodeSummary `json:"nodes,omitempty"`

	// taints that the hub sets: hanse.dev/unreachable with effect NoSchedule as soon as the cluster does not answer, and
	// with NoExecute after a grace period. timeAdded is when. Both go when the cluster answers.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=8
	Taints []corev1.Taint `json:"taints,omitempty"`

	// drain counts what spec.drain has left to do. Unset if nothing is drained.
	// +optional
	Drain *DrainStatus `json:"drain,omitempty"`

	// unclaimed is the number of objects on the cluster that this hub wrote and that no binding claims any more, such as
	// copies of objects that a restored hub does not know. Counted once a minute, of kinds that bindings place on the
	// cluster. Unset: none were found.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Unclaimed *int32 `json:"unclaimed,omitempty"`

	// removalHeld sums up the copies that this MemberCluster deletes with leave.policy Delete. They stay until a user
	// confirms the removal. Unset if there are none.
	// +optional
	RemovalHeld *RemovalHeld `json:"removalHeld,omitempty"`

	// credentials says until when the credentials in use are valid. Unset before the cluster was reached.
	// +optional
	Credentials *CredentialsStatus `json:"credentials,omitempty"`

	// conditions: Ready, CredentialsValid, CredentialsExpireSoon, TopologyChanged, Unclaimed, RemovalHeld.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CredentialsStatus says what is known of the credentials in use. It holds no part of them.
type CredentialsStatus struct {
	// id tells these credentials from others: 16 hexadecimal digits of a digest. With it in the annotation
	// hanse.dev/rotate-credentials, the hub replaces them.
	// +required
	// +kubebuilder:validation:MaxLength=16
	ID string `json:"id"`

	// issueTime is from when they are valid. Unset: they do not say so.
	// +optional
	IssueTime *metav1.Time `json:"issueTime,omitempty"`

	// expireTime is until when they are valid. Unset: for ever, or they do not say so.
	// +optional
	ExpireTime *metav1.Time `json:"expireTime,omitempty"`

	// tokenSecret is the Secret in the cluster's namespace hanse-system with which the token ends. Unset: there is none of
	// hansectl's.
	// +optional
	TokenSecret *TokenSecret `json:"tokenSecret,omitempty"`
}

// TokenSecret is a Secret on a cluster to which a token is bound.
type TokenSecret struct {
	// name of the Secret: hanse-token-a to hanse-token-d, or hanse-token of a token that does not expire.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the Secret. Unset of a token that does not expire.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
}

// DrainStatus counts the objects of a cluster that is drained. The drain is done when remaining equals staying, and
// cannot go on when it equals staying + blocked.
type DrainStatus struct {
	// total is the number of objects that the cluster had when the drain began. Total less remaining have left it. Unset:
	// an older hub has counted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total,omitempty"`

	// remaining is the number of objects that the cluster still has, those below included.
	// +required
	Remaining int32 `json:"remaining"`

	// moving is the number of those that have a replacement, which is not yet Healthy.
	// +required
	Moving int32 `json:"moving"`

	// blocked is the number of those that no other cluster can take now.
	// +required
	Blocked int32 `json:"blocked"`

	// staying is the number of those that their placement wants on every cluster, as a DaemonSet wants pods on every node.
	// +required
	Staying int32 `json:"staying"`

	// evicted is the number of objects that were taken away although no other cluster took them, as spec.drain.evict asks.
	// They are not part of remaining.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Evicted int32 `json:"evicted,omitempty"`

	// message says what is waited for, and names up to three objects that are blocked and three that stay.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ClusterVersion is what a cluster runs.
type ClusterVersion struct {
	// kubernetes is the version of the API server, such as v1.36.3.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Kubernetes string `json:"kubernetes,omitempty"`
}

// MostAPIResources bounds MemberClusterStatus.APIResources.
const MostAPIResources = 500

// ServedKind says at which versions a cluster serves a kind.
type ServedKind struct {
	// group of the kind; "" is the core group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// kind, such as Prometheus.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// versions at which the cluster serves it, the one that it prefers first. Empty: it does not serve the kind. At
	// most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Versions []string `json:"versions,omitempty"`
}

// ClusterTopology is where a cluster is. Values derived from nodes are pinned: they never change or go back to empty by
// themselves.
type ClusterTopology struct {
	// region is the MemberCluster's label topology.kubernetes.io/region, or else the region that all nodes share.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// zones are the MemberCluster's label topology.kubernetes.io/zone, or else the zones of the nodes, sorted. At most 64.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Zones []string `json:"zones,omitempty"`
}

// NodeSummary counts nodes.
type NodeSummary struct {
	// total number of nodes.
	// +optional
	Total int32 `json:"total,omitempty"`

	// ready is the number of nodes whose Ready condition is True.
	// +optional
	Ready int32 `json:"ready,omitempty"`
}
