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
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Observed",type=date,JSONPath=`.status.lastObservedTime`
// +kubebuilder:printcolumn:name="Cordoned",type=boolean,JSONPath=`.spec.unschedulable`
// +kubebuilder:printcolumn:name="To-Drain",type=integer,JSONPath=`.status.drain.remaining`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.status.topology.region`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version.kubernetes`
// +kubebuilder:printcolumn:name="Connection",type=string,JSONPath=`.spec.connection.type`
// +kubebuilder:printcolumn:name="Nodes",type=integer,priority=1,JSONPath=`.status.nodes.ready`
// +kubebuilder:printcolumn:name="Taints",type=string,priority=1,JSONPath=`.spec.taints`
// +kubebuilder:printcolumn:name="Credentials-Until",type=string,priority=1,JSONPath=`.status.credentials.expireTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="the name of a MemberCluster is a DNS label of at most 63 characters"
type MemberCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec sets how the hub reaches the cluster, and which objects may be sent there.
	// +required
	Spec MemberClusterSpec `json:"spec"`

	// status is the last state of the cluster that the hub observed.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
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

// MemberClusterSpec sets how the hub reaches a cluster, and which objects may be sent there.
type MemberClusterSpec struct {
	// connection sets how the hub reaches the cluster's API server.
	// +required
	Connection Connection `json:"connection"`

	// taints repel objects whose placement does not tolerate the taint. NoSchedule repels new objects. NoExecute also
	// withdraws the objects that are on the cluster. PreferNoSchedule lowers the score of the cluster. A placement can
	// tolerate a NoExecute taint for some time after timeAdded. When this time is over, the objects of the placement are
	// withdrawn. If timeAdded is not set, the toleration never ends. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="the effect of a taint is NoSchedule, PreferNoSchedule or NoExecute"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !t.key.startsWith('hanse.dev/'))",message="taints of hanse.dev/ are set by the hub, in status.taints"
	Taints []corev1.Taint `json:"taints,omitempty"`

	// unschedulable true keeps new objects away from the cluster. Objects that are on the cluster stay. Default false.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`

	// drain moves the objects of this cluster to other clusters, and keeps new objects away. The copy of an object leaves
	// this cluster when the copy on its new cluster is Healthy. An object stays if no other cluster can take it, or if its
	// placement wants it on every cluster. If drain is unset again, no further object begins to move, and objects that are
	// already moving go on.
	// +optional
	Drain *DrainPolicy `json:"drain,omitempty"`

	// allowedNamespaces selects the hub namespaces whose objects may be sent to the cluster. It does not limit
	// cluster-scoped objects. The hub checks the namespace of an object when it chooses clusters, and before each write.
	// If a namespace is no longer allowed, the copies of its objects are neither changed nor deleted.
	// +required
	AllowedNamespaces AllowedNamespaces `json:"allowedNamespaces"`

	// requirePlaceVerb true means that the author of a placement needs the RBAC verb place on this MemberCluster. When a
	// placement is created or its spec changes, the webhook checks whether the names and labels in clusters select this
	// MemberCluster. If they do, the webhook checks the verb. Placements that are stored already, or that select this
	// cluster only later, are not checked. Default false: every author of a placement may place objects on the cluster.
	// +optional
	RequirePlaceVerb bool `json:"requirePlaceVerb,omitempty"`

	// hub true means that this cluster is the hub itself. The hub writes nothing to it, because the hub objects already
	// exist there. Without this field, a cluster that is the hub is refused (reason ClusterIDClaimed). With this field, a
	// cluster that is not the hub is refused (reason IdentityChanged). Default false.
	// +optional
	Hub bool `json:"hub,omitempty"`

	// capacity limits the resources of the cluster that count in decisions, such as cpu: "400". For a resource in this
	// list, the sum that the nodes report counts up to this amount, however fast it grows. For any other resource, the
	// amount that counts grows at most twofold an hour. Unset: no resource has a limit of its own. At most 64.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.size() <= 64",message="capacity has at most 64 resources"
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// leave sets what happens to the copies on the cluster when this MemberCluster is deleted. Unset: the copies stay, as
	// with the policy Orphan. The deletion waits until the cluster answers.
	// +optional
	// +kubebuilder:default={}
	Leave LeavePolicy `json:"leave,omitempty"`
}

// DrainPolicy sets how a cluster is drained.
type DrainPolicy struct {
	// maxUnavailable is the maximum number of objects that move at the same time. An object moves until the copy on its
	// new cluster is Healthy. 1 to 10000, default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`

	// evict true also withdraws the objects that no other cluster can take: objects that their placements want on every
	// cluster, and objects for which no other cluster is suitable. They come back when drain is unset.
	// deletion.whenUnselected of the placement sets whether their copies are deleted, or left on the cluster. Default
	// false: such objects stay.
	// +optional
	Evict bool `json:"evict,omitempty"`
}

// DefaultMaxUnavailable is the default of DrainPolicy.MaxUnavailable.
const DefaultMaxUnavailable = 10

// ConnectionType sets how the hub reaches a member.
// +kubebuilder:validation:Enum=Direct;Tunnel
type ConnectionType string

const (
	// ConnectionDirect means that the hub connects to the member's API server with a kubeconfig.
	ConnectionDirect ConnectionType = "Direct"
	// ConnectionTunnel means that an agent of the member connects to the hub, which has no credentials for the member.
	ConnectionTunnel ConnectionType = "Tunnel"
)

// Connection is a union: only the field that type names is set.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'Direct' ? has(self.direct) : !has(self.direct)",message="set direct if and only if type is Direct"
// +kubebuilder:validation:XValidation:rule="self.type == 'Tunnel' ? has(self.tunnel) : !has(self.tunnel)",message="set tunnel if and only if type is Tunnel"
type Connection struct {
	// type of the connection. It cannot be changed. To change it, delete the MemberCluster, which leaves the copies on the
	// cluster by default, and join the cluster again.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="connection.type cannot be changed: delete the MemberCluster (its objects stay) and join again"
	Type ConnectionType `json:"type"`

	// direct has the settings of the type Direct. It is set if, and only if, type is Direct.
	// +optional
	Direct *DirectConnection `json:"direct,omitempty"`

	// tunnel has the settings of the type Tunnel. It is set if, and only if, type is Tunnel.
	// +optional
	Tunnel *TunnelConnection `json:"tunnel,omitempty"`
}

// TunnelConnection has the keys of the agent that connects the member to the hub.
type TunnelConnection struct {
	// keys are the fingerprints of the agent's keys: SHA256: and 43 characters, as hanse-member prints them. An agent with
	// another key is refused. Whoever has the key of a fingerprint gets the objects that are sent to this
	// cluster. If a key is removed, its agent is disconnected at once. Empty: the hub accepts no agent. At most 2, so that
	// a key can be replaced without a gap.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^SHA256:[A-Za-z0-9+/]{43}$'))",message="a key is SHA256: and 43 characters, as hanse-member prints it"
	Keys []string `json:"keys,omitempty"`
}

// DirectConnection has the kubeconfig with which the hub connects to the member's API server.
type DirectConnection struct {
	// kubeconfigSecretRef names a Secret in the namespace hanse-system that has the kubeconfig. The kubeconfig must
	// contain all credentials inline: exec, auth-provider, file paths, proxy-url and insecure-skip-tls-verify are refused.
	// If the Secret changes, the hub uses the new kubeconfig without a restart.
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

	// key of the kubeconfig in the Secret's data. Default "kubeconfig".
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// NamespacesFrom sets which hub namespaces are selected.
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
	// from is All (every namespace), Selector (the namespaces that selector selects) or None (no namespace).
	// +required
	From NamespacesFrom `json:"from"`

	// selector selects namespaces by their labels on the hub. It is set if, and only if, from is Selector.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// RemovalPolicy sets what happens to a copy when the hub withdraws the object from a member.
// +kubebuilder:validation:Enum=Orphan;Delete
type RemovalPolicy string

const (
	// RemovalOrphan leaves the copy on the member, and removes the hub's labels, annotations and field ownership from it.
	RemovalOrphan RemovalPolicy = "Orphan"
	// RemovalDelete deletes the copy.
	RemovalDelete RemovalPolicy = "Delete"
)

// WhenUnreachable sets what happens if the MemberCluster is deleted and the cluster does not answer.
// +kubebuilder:validation:Enum=Wait;Abandon
type WhenUnreachable string

const (
	// UnreachableWait waits until the cluster answers.
	UnreachableWait WhenUnreachable = "Wait"
	// UnreachableAbandon waits for timeoutSeconds. It then leaves the copies on the cluster and reports their names.
	UnreachableAbandon WhenUnreachable = "Abandon"
)

// CredentialsOnLeave sets what happens to the hub's credentials for a cluster when its MemberCluster is deleted.
// +kubebuilder:validation:Enum=Keep;Revoke
type CredentialsOnLeave string

const (
	// CredentialsKeep leaves the credentials valid.
	CredentialsKeep CredentialsOnLeave = "Keep"
	// CredentialsRevoke deletes the Secret on the cluster to which the hub's token is bound. A token is valid only while
	// this Secret exists.
	CredentialsRevoke CredentialsOnLeave = "Revoke"
)

// LeavePolicy sets what happens to the copies on a cluster when its MemberCluster is deleted.
type LeavePolicy struct {
	// policy sets what happens to the copies. Orphan leaves them on the cluster, without the hub's labels and annotations.
	// Delete deletes them. Default Orphan.
	// +optional
	// +kubebuilder:default=Orphan
	Policy RemovalPolicy `json:"policy,omitempty"`

	// timeoutSeconds is how long the hub waits for a cluster that does not answer, counted from the deletion of the
	// MemberCluster. It is used if whenUnreachable is Abandon. 0 to 604800, default 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// whenUnreachable sets what happens if the cluster does not answer. With Wait, the deletion of the MemberCluster waits
	// without a limit, and the condition Ready says why it waits. With Abandon, the hub leaves the copies on the cluster
	// after timeoutSeconds. Default Wait.
	// +optional
	// +kubebuilder:default=Wait
	WhenUnreachable WhenUnreachable `json:"whenUnreachable,omitempty"`

	// credentials sets what happens to the hub's token. With Revoke, the hub revokes the token as its last step on the
	// cluster, if the cluster answers and hansectl created the token. An event reports the result. The command hansectl
	// unjoin sets Revoke. Default Keep: the credentials stay valid, so that a MemberCluster that was deleted by mistake
	// can be created again.
	// +optional
	// +kubebuilder:default=Keep
	Credentials CredentialsOnLeave `json:"credentials,omitempty"`
}

// MemberClusterStatus is the last state of a cluster that the hub observed.
type MemberClusterStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe. -1: the hub has not processed the
	// object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// clusterID is the UID of the cluster's namespace kube-system, which identifies the cluster. It is set once.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ClusterID string `json:"clusterID,omitempty"`

	// lastObservedTime is the time at which a watch of the cluster last delivered an event to the hub. The hub writes it
	// with every other change of this status, and otherwise at most every 30 s. If the time is older than a minute, no hub
	// observes the cluster now, and the conditions may be out of date. Unset before the first connection.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`

	// version has the Kubernetes version of the cluster.
	// +optional
	Version ClusterVersion `json:"version,omitempty"`

	// topology is the region and the zones of the cluster. They come from the labels of the MemberCluster, or otherwise
	// from the nodes.
	// +optional
	Topology ClusterTopology `json:"topology,omitempty"`

	// apiResources lists the kinds that placements select, each with the versions at which the cluster serves it. Unset:
	// the hub has not read the cluster's kinds yet. At most 500.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=500
	APIResources []ServedKind `json:"apiResources,omitempty"`

	// operators lists the FederatedOperators that are placed on the cluster. Expressions of placements and override
	// policies can read this list. At most 64. If there are more, the first ones by name are listed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Operators []OperatorFact `json:"operators,omitempty"`

	// capacity is the sum of the capacities of the cluster's nodes, as far as it counts in decisions: see capacityGrowth.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the sum of the allocatable resources of the cluster's ready, schedulable nodes, as far as it counts
	// in decisions: see capacityGrowth.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// capacityGrowth has the amounts by which the hub limits the growth of capacity and allocatable. Unset: the hub has
	// not read the nodes yet.
	// +optional
	CapacityGrowth *CapacityGrowth `json:"capacityGrowth,omitempty"`

	// nodes counts the cluster's nodes.
	// +optional
	Nodes NodeSummary `json:"nodes,omitempty"`

	// taints are taints that the hub sets while the cluster does not answer. The hub sets hanse.dev/unreachable with the
	// effect NoSchedule at once, and with NoExecute after a grace period. timeAdded is the time at which the hub set the
	// taint. The hub removes both taints when the cluster answers.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=8
	Taints []corev1.Taint `json:"taints,omitempty"`

	// drain counts the objects that spec.drain still has to move. Unset: the cluster is not drained.
	// +optional
	Drain *DrainStatus `json:"drain,omitempty"`

	// unclaimed is the number of copies of this hub on the cluster for which no binding has an entry. An example is a copy
	// of an object that was created after the backup from which the hub was restored. Once a minute, the hub counts such
	// copies of the kinds that bindings place on the cluster. Unset: there are none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Unclaimed *int32 `json:"unclaimed,omitempty"`

	// removalHeld describes copies that leave.policy Delete would delete, but that stay until a user confirms the removal.
	// Unset: there are none.
	// +optional
	RemovalHeld *RemovalHeld `json:"removalHeld,omitempty"`

	// credentials describes the credentials that the hub uses now. Unset: the hub has not reached the cluster yet.
	// +optional
	Credentials *CredentialsStatus `json:"credentials,omitempty"`

	// agent describes the agent of a cluster with the connection type Tunnel.
	// +optional
	Agent *AgentStatus `json:"agent,omitempty"`

	// conditions are of the types Ready, CredentialsValid, CredentialsExpireSoon, TopologyChanged, AnswersTooLarge,
	// Unclaimed and RemovalHeld.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AgentStatus describes the agent that connects a cluster to the hub.
type AgentStatus struct {
	// request is the agent that has asked to be approved, with the token of hansectl join. hansectl approve puts its key
	// into spec.connection.tunnel.keys. Unset: no agent has used the present token.
	// +optional
	Request *AgentRequest `json:"request,omitempty"`
}

// AgentRequest is the request of an agent to be approved. The handshake proves that the agent has the key. The agent
// reports all other data.
type AgentRequest struct {
	// key is the fingerprint of the agent's key.
	// +required
	// +kubebuilder:validation:MaxLength=50
	Key string `json:"key"`

	// token identifies the token that the agent used: 16 hexadecimal digits of a digest. The first key that uses a token
	// owns it.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Token string `json:"token"`

	// clusterID is the UID of the namespace kube-system of the agent's cluster. Unset: the agent cannot read it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ClusterID string `json:"clusterID,omitempty"`

	// kubernetes is the version of the agent's API server.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Kubernetes string `json:"kubernetes,omitempty"`

	// version is the version of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// address is the address from which the agent connects to the hub, as the hub sees it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`

	// time of the first request with this key and token.
	// +required
	Time metav1.Time `json:"time"`
}

// CapacityGrowth limits the growth of a cluster's capacity. A faulty or hostile cluster could otherwise draw all
// replicas that are divided by capacity to itself.
type CapacityGrowth struct {
	// base has an amount of each resource. Up to twice this amount counts. The first amount that the nodes report of a
	// resource counts at once, and is its first base. At most 64.
	// +optional
	Base corev1.ResourceList `json:"base,omitempty"`

	// since is the time at which an amount that counts last grew beyond base. An hour later, the amounts that count become
	// the base.
	// +required
	Since metav1.Time `json:"since"`

	// reported has the resources that the nodes report and that count less, with the reported amounts. Unset: all
	// resources count as reported.
	// +optional
	Reported corev1.ResourceList `json:"reported,omitempty"`
}

// MaxResources is the maximum number of resources in the capacity of a cluster.
const MaxResources = 64

// CredentialsStatus describes the credentials that the hub uses now. It contains no part of the credentials.
type CredentialsStatus struct {
	// id of these credentials: 16 hexadecimal digits of a digest. To make the hub replace these credentials, set the
	// annotation hanse.dev/rotate-credentials to this id.
	// +required
	// +kubebuilder:validation:MaxLength=16
	ID string `json:"id"`

	// issueTime is the time from which the credentials are valid. Unset: the time is not known.
	// +optional
	IssueTime *metav1.Time `json:"issueTime,omitempty"`

	// expireTime is the time until which the credentials are valid. Unset: they never expire, or the time is not known.
	// +optional
	ExpireTime *metav1.Time `json:"expireTime,omitempty"`

	// tokenSecret is the Secret in the cluster's namespace hanse-system to which the token is bound. If the Secret is
	// deleted, the token is invalid. Unset: the token is not bound to such a Secret.
	// +optional
	TokenSecret *TokenSecret `json:"tokenSecret,omitempty"`
}

// TokenSecret is a Secret on a cluster to which a token is bound.
type TokenSecret struct {
	// name of the Secret: hanse-token-a to hanse-token-d, or hanse-token for a token that does not expire.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the Secret. Unset for a token that does not expire.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
}

// DrainStatus counts the objects of a drained cluster. An object is staying if its placement wants it on every cluster.
// It is blocked if no other cluster can take it at present. The drain is complete when all remaining objects are
// staying. No object can move at present if all remaining objects are staying or blocked.
type DrainStatus struct {
	// total is the number of objects on the cluster when the drain began. The difference of total and remaining is the
	// number of objects that have left the cluster. Unset: an older version of the hub wrote this status.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total,omitempty"`

	// remaining is the number of objects that are on the cluster now. It includes the objects that moving, blocked and
	// staying count.
	// +required
	Remaining int32 `json:"remaining"`

	// moving is the number of objects whose copy on the new cluster is not yet Healthy.
	// +required
	Moving int32 `json:"moving"`

	// blocked is the number of objects that no other cluster can take at present.
	// +required
	Blocked int32 `json:"blocked"`

	// staying is the number of objects that their placements want on every cluster, as a DaemonSet wants a pod on every
	// node. No other cluster can replace the copy of such an object.
	// +required
	Staying int32 `json:"staying"`

	// evicted is the number of objects that spec.drain.evict has withdrawn although no other cluster took them. remaining
	// does not include them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Evicted int32 `json:"evicted,omitempty"`

	// message says why objects remain. It names up to three blocked objects and three staying objects.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ClusterVersion is the version of a cluster.
type ClusterVersion struct {
	// kubernetes is the version of the API server, such as v1.36.3.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Kubernetes string `json:"kubernetes,omitempty"`
}

// MaxOperators bounds MemberClusterStatus.Operators.
const MaxOperators = 64

// OperatorFact describes a FederatedOperator that is placed on a cluster. The description does not change while the
// cluster does not answer, and does not depend on whether the operator is ready.
type OperatorFact struct {
	// name of the FederatedOperator.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// version of the operator's workloads on the cluster. If the workloads have several versions, it is the lowest one.
	// Unset: no workload there has a version.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// installed is true when each workload, CustomResourceDefinition, webhook configuration and APIService of the operator
	// was applied on the cluster at least once. It stays true until the operator is removed from the cluster.
	// +required
	Installed bool `json:"installed"`
}

// MaxAPIResources bounds MemberClusterStatus.APIResources.
const MaxAPIResources = 500

// ServedKind lists the versions of a kind that a cluster serves.
type ServedKind struct {
	// group of the kind. "" is the core group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// kind, such as Prometheus.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// versions at which the cluster serves the kind, the preferred version first. Empty: the cluster does not serve the
	// kind. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Versions []string `json:"versions,omitempty"`
}

// ClusterTopology is the location of a cluster. A region or zone that comes from the nodes is not changed later, even
// if the nodes change. To change it, set a label on the MemberCluster.
type ClusterTopology struct {
	// region is the label topology.kubernetes.io/region of the MemberCluster. Without this label, it is the region that
	// all nodes have.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// zones has the label topology.kubernetes.io/zone of the MemberCluster. Without this label, it has the zones of the
	// nodes, sorted. At most 64.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Zones []string `json:"zones,omitempty"`
}

// NodeSummary counts nodes.
type NodeSummary struct {
	// total is the number of all nodes.
	// +optional
	Total int32 `json:"total,omitempty"`

	// ready is the number of nodes whose Ready condition is True.
	// +optional
	Ready int32 `json:"ready,omitempty"`
}
