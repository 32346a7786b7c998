package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// OverridePolicy changes the selected objects of its namespace for some clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=ovp,categories=hanse
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Conflicted",type=string,JSONPath=`.status.conditions[?(@.type=="Conflicted")].status`
// +kubebuilder:printcolumn:name="Objects",type=string,priority=1,JSONPath=`.status.rules[*].objects`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OverridePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects and sets the changes.
	// +required
	Spec OverridePolicySpec `json:"spec"`

	// status counts the objects and clusters that the rules match.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status OverridePolicyStatus `json:"status,omitempty"`
}

// OverridePolicyList is a list of OverridePolicies.
//
// +kubebuilder:object:root=true
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OverridePolicy `json:"items"`
}

// ClusterOverridePolicy changes the selected cluster-scoped objects for some clusters. With a namespaceSelector, it
// also changes namespaced objects.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=covp,categories=hanse
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.spec.tier`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Conflicted",type=string,JSONPath=`.status.conditions[?(@.type=="Conflicted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterOverridePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects and sets the changes.
	// +required
	Spec ClusterOverridePolicySpec `json:"spec"`

	// status counts the objects and clusters that the rules match.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status OverridePolicyStatus `json:"status,omitempty"`
}

// ClusterOverridePolicyList is a list of ClusterOverridePolicies.
//
// +kubebuilder:object:root=true
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterOverridePolicy `json:"items"`
}

// Tier is the stage at which a ClusterOverridePolicy is applied.
// +kubebuilder:validation:Enum=Baseline;Admin
type Tier string

const (
	// TierBaseline is applied before OverridePolicies, which may change the same paths.
	TierBaseline Tier = "Baseline"
	// TierAdmin is applied after OverridePolicies, so that they cannot change the same paths.
	TierAdmin Tier = "Admin"
	// TierNamespaced is the stage of OverridePolicies. It is not a value of spec.tier.
	TierNamespaced Tier = "Namespaced"
)

// ClusterOverridePolicySpec is an OverridePolicySpec for all namespaces.
type ClusterOverridePolicySpec struct {
	OverridePolicySpec `json:",inline"`

	// tier Baseline is applied before OverridePolicies. Admin is applied after them and wins. Default Baseline.
	// +optional
	// +kubebuilder:default=Baseline
	Tier Tier `json:"tier,omitempty"`

	// namespaceSelector selects namespaces. Objects in these namespaces may then be selected, too. Unset: only
	// cluster-scoped objects. {}: every namespace except kube-* and hanse-system.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// OverridePolicySpec selects objects and sets their changes for some clusters.
type OverridePolicySpec struct {
	// resourceSelectors select hub objects. One matching selector is enough. 1 to 64.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// rules in order. Among rules of equal rank, the later rule wins. 1 to 64, names unique.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.name == b.name))",message="rule names must be unique"
	Rules []OverrideRule `json:"rules"`
}

// OverrideRule changes objects for the clusters that it selects, or excludes the objects from these clusters. A rule
// applies images, command, args, env, resources, labels, annotations, mergePatch, patches and edits, in this order.
//
// +kubebuilder:validation:XValidation:rule="(has(self.exclude) && self.exclude) != (has(self.images) || has(self.command) || has(self.args) || has(self.env) || has(self.resources) || has(self.labels) || has(self.annotations) || has(self.mergePatch) || has(self.patches) || has(self.edits))",message="set exclude: true alone, or at least one of images, command, args, env, resources, labels, annotations, mergePatch, patches and edits"
type OverrideRule struct {
	// name of the rule, unique in its policy. Conditions and explanations use it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// priority of the rule. The rule with the higher number wins. Only between rules of equal priority does the topology
	// level decide. -1000 to 1000. Unset: 0.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// clusters in which the rule applies. Unset: all.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// exclude true excludes the objects from these clusters, and withdraws their copies. A rule with exclude has no other
	// change. Default false.
	// +optional
	Exclude bool `json:"exclude,omitempty"`

	// images changes images of containers, or string fields that hold an image. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Images []ImageOverride `json:"images,omitempty"`

	// command replaces the command (the entrypoint) of containers. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Command []CommandOverride `json:"command,omitempty"`

	// args replaces the arguments of containers. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Args []CommandOverride `json:"args,omitempty"`

	// env sets and removes environment variables of containers. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Env []EnvOverride `json:"env,omitempty"`

	// resources sets requests and limits of containers. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Resources []ResourcesOverride `json:"resources,omitempty"`

	// labels to set on the object. Other labels stay. To remove a label, set it to null in metadata.labels of
	// mergePatch. At most 64, none of hanse.dev.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// annotations to set on the object. Other annotations stay. To remove an annotation, set it to null in
	// metadata.annotations of mergePatch. At most 64, none of hanse.dev.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// mergePatch is a JSON merge patch (RFC 7386): null removes a field, a list is replaced as a whole.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	MergePatch *apiextensionsv1.JSON `json:"mergePatch,omitempty"`

	// patches are JSON patch operations (RFC 6902), applied in order. If a test fails, the whole rule is skipped, and the
	// reason is reported. Tests before all other operations read the object as it was before the rule. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Patches []PatchOperation `json:"patches,omitempty"`

	// edits changes YAML or JSON documents in string fields. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Edits []StringEdit `json:"edits,omitempty"`
}

// ContainerTarget selects containers of a Pod, or of a pod template at /spec/template/spec or in a jobTemplate, for any
// kind. With a path, it selects one object that has the fields of a container.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.containers) && has(self.path))",message="set containers or path, not both"
type ContainerTarget struct {
	// containers are names of containers and init containers. Each must exist. Unset: all containers, but no init
	// container. At most 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Containers []string `json:"containers,omitempty"`

	// path is a JSON pointer (RFC 6901) to an object with the fields of a container, such as /spec of a Prometheus. It
	// must exist. Unset: the containers of the pod template.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path,omitempty"`
}

// ImageOverride replaces parts of an image. Unset parts stay. If only the tag is set, the digest is removed. If only
// the digest is set, the tag is removed. An image without a registry is in docker.io, and without a path in
// docker.io/library.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.containers) && has(self.path))",message="set containers or path, not both"
// +kubebuilder:validation:XValidation:rule="has(self.registry) || has(self.repository) || has(self.tag) || has(self.digest)",message="set at least one of registry, repository, tag and digest"
type ImageOverride struct {
	// containers are names of containers and init containers. Each must exist. Unset: all containers and init
	// containers. At most 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Containers []string `json:"containers,omitempty"`

	// path is a JSON pointer (RFC 6901) to a string field that holds an image, such as /spec/image of a Prometheus. It
	// must exist. Unset: the images of the containers of the pod template.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path,omitempty"`

	// registry is a host with an optional port, such as registry.cn-shanghai.example.com:5000.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Registry string `json:"registry,omitempty"`

	// repository is the path in the registry, such as prometheus/prometheus.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Repository string `json:"repository,omitempty"`

	// tag, such as v3.5.0.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Tag string `json:"tag,omitempty"`

	// digest, such as sha256:9f86d0...
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Digest string `json:"digest,omitempty"`
}

// CommandOverride replaces the whole command, or all args, of containers.
type CommandOverride struct {
	ContainerTarget `json:",inline"`

	// value is the whole list. Empty: the container uses the value of its image. At most 256.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Value []string `json:"value"`
}

// EnvOverride sets and removes environment variables of containers. Other variables stay, in their order.
//
// +kubebuilder:validation:XValidation:rule="has(self.set) || has(self.remove)",message="set at least one of set and remove"
type EnvOverride struct {
	ContainerTarget `json:",inline"`

	// set variables, written as in a container. An existing variable is replaced, a new one is appended. At most 128,
	// names unique.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Set []corev1.EnvVar `json:"set,omitempty"`

	// remove has names of variables to remove. A missing variable is not an error. At most 128.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Remove []string `json:"remove,omitempty"`
}

// ResourcesOverride sets requests and limits of containers by resource name. Other requests and limits stay.
//
// +kubebuilder:validation:XValidation:rule="has(self.requests) || has(self.limits)",message="set at least one of requests and limits"
type ResourcesOverride struct {
	ContainerTarget `json:",inline"`

	// requests to set, such as {cpu: 500m, memory: 1Gi}. At most 32.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	Requests map[corev1.ResourceName]resource.Quantity `json:"requests,omitempty"`

	// limits to set, such as {memory: 2Gi}. At most 32.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	Limits map[corev1.ResourceName]resource.Quantity `json:"limits,omitempty"`
}

// TextFormat is the format of a document in a string field.
// +kubebuilder:validation:Enum=YAML;JSON
type TextFormat string

// The formats that can be edited.
const (
	TextYAML TextFormat = "YAML"
	TextJSON TextFormat = "JSON"
)

// StringEdit changes one YAML or JSON document in a string field. The root of the document is an object. Unchanged
// parts keep their order, comments and spelling. Blank lines and indentation may change. YAML with anchors, aliases or
// tags is refused. At most 256 KiB.
//
// +kubebuilder:validation:XValidation:rule="has(self.mergePatch) || has(self.patches)",message="set mergePatch or patches"
type StringEdit struct {
	// path is a JSON pointer (RFC 6901) to the string field, such as /data/prometheus.yml. It must exist.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path"`

	// format is YAML or JSON.
	// +required
	Format TextFormat `json:"format"`

	// mergePatch is a JSON merge patch (RFC 7386) for the document, applied before patches.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	MergePatch *apiextensionsv1.JSON `json:"mergePatch,omitempty"`

	// patches are JSON patch operations (RFC 6902), applied in order. Their paths start at the root of the document. If
	// a test fails, the whole rule is skipped. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Patches []EditOperation `json:"patches,omitempty"`
}

// RuleClusters selects the clusters that match all fields that are set.
type RuleClusters struct {
	// names of the MemberClusters to select. At most 256.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// labelSelector selects by the labels of MemberClusters, with their derived region and zone.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// expression in CEL is true for the clusters to select: "semver(version, true).major() == 1 &&
	// region.startsWith('eu-')". Variables: name, labels, region, zone, version, capacity, operators. The language is
	// that of clusters.expression of a Placement.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// PatchOp is an operation of RFC 6902.
// +kubebuilder:validation:Enum=add;remove;replace;move;copy;test
type PatchOp string

// The operations of RFC 6902.
const (
	PatchAdd     PatchOp = "add"
	PatchRemove  PatchOp = "remove"
	PatchReplace PatchOp = "replace"
	PatchMove    PatchOp = "move"
	PatchCopy    PatchOp = "copy"
	PatchTest    PatchOp = "test"
)

// PatchOperation is one operation of a JSON patch (RFC 6902). A path that does not exist is an error, except for the
// last step of add. apiVersion, kind, status and metadata of an object cannot be patched. Single labels and annotations
// can be patched, except the labels and annotations of the hub.
//
// +kubebuilder:validation:XValidation:rule="(self.op in ['move', 'copy']) == has(self.from)",message="from goes with move and copy, and only with them"
// +kubebuilder:validation:XValidation:rule="[self.path, has(self.from) && self.op == 'move' ? self.from : self.path].all(p, !(p in ['/', '/apiVersion', '/kind', '/status', '/metadata']) && !p.startsWith('/apiVersion/') && !p.startsWith('/kind/') && !p.startsWith('/status/') && (!p.startsWith('/metadata/') || p.startsWith('/metadata/labels/') || p.startsWith('/metadata/annotations/')))",message="apiVersion, kind, status and metadata other than single labels and annotations cannot be patched"
// +kubebuilder:validation:XValidation:rule="[self.path, has(self.from) ? self.from : self.path].all(p, !p.startsWith('/metadata/labels/hanse.dev~1') && !p.startsWith('/metadata/annotations/hanse.dev~1'))",message="labels and annotations of hanse.dev cannot be patched or copied"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || (self.from != '/status' && !self.from.startsWith('/status/') && (!self.from.startsWith('/metadata/') || self.from in ['/metadata/name', '/metadata/namespace', '/metadata/labels', '/metadata/annotations'] || self.from.startsWith('/metadata/labels/') || self.from.startsWith('/metadata/annotations/')))",message="from cannot be the status, or metadata other than name, namespace, labels and annotations"
type PatchOperation struct {
	// op is add, remove, replace, move, copy or test.
	// +required
	Op PatchOp `json:"op"`

	// path is a JSON pointer (RFC 6901), such as /spec/replicas.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path"`

	// from is the source of move and copy.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	From string `json:"from,omitempty"`

	// value for add, replace and test: any JSON value except null. Exactly one of value and expression must be set,
	// otherwise the rule is invalid.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// expression in CEL returns the value. Variables: cluster, with name, labels, region, zone, version, capacity and
	// operators, and object, which is the object before all overrides.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// EditOperation is one operation of a JSON patch (RFC 6902) on the document in a string field.
//
// +kubebuilder:validation:XValidation:rule="(self.op in ['move', 'copy']) == has(self.from)",message="from goes with move and copy, and only with them"
type EditOperation struct {
	// op is add, remove, replace, move, copy or test.
	// +required
	Op PatchOp `json:"op"`

	// path is a JSON pointer (RFC 6901) from the root of the document, such as /global/scrape_interval.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path"`

	// from is the source of move and copy, in the same document.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	From string `json:"from,omitempty"`

	// value for add, replace and test: any JSON value except null. Exactly one of value and expression must be set,
	// otherwise the rule is invalid.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// expression in CEL returns the value. Its variables cluster and object are the same as in patches of a rule.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// OverridePolicyStatus counts the objects and clusters that the rules of a policy match.
type OverridePolicyStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe. -1: the hub has not processed the
	// object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// rules in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Rules []RuleStatus `json:"rules,omitempty"`

	// conditions: Ready, Accepted, Conflicted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RuleStatus counts the objects and clusters that one rule matches.
type RuleStatus struct {
	// name of the rule.
	// +required
	Name string `json:"name"`

	// rank is the precedence of the rule: tier/priority/topology level/number of requirements, such as
	// Namespaced/0/region/1.
	// +required
	Rank string `json:"rank"`

	// objects is the number of federated objects that the policy selects.
	// +required
	Objects int32 `json:"objects"`

	// clusters is the number of clusters that the rule selects and that hold such an object. For a rule with exclude,
	// it is the number of all clusters that the rule selects.
	// +required
	Clusters int32 `json:"clusters"`
}

// OverridePolicyObject is an OverridePolicy or a ClusterOverridePolicy.
//
// +kubebuilder:object:generate=false
type OverridePolicyObject interface {
	metav1.Object
	runtime.Object
	// OverrideSpec returns the fields that both kinds share.
	OverrideSpec() *OverridePolicySpec
	// OverrideStatus returns the status.
	OverrideStatus() *OverridePolicyStatus
	// OverrideTier returns the tier. It is TierNamespaced for an OverridePolicy.
	OverrideTier() Tier
	// SelectedNamespaces returns the namespaceSelector of a ClusterOverridePolicy. It is nil for an OverridePolicy.
	SelectedNamespaces() *metav1.LabelSelector
}

var (
	_ OverridePolicyObject = &OverridePolicy{}
	_ OverridePolicyObject = &ClusterOverridePolicy{}
)

// OverrideSpec implements OverridePolicyObject.
func (p *OverridePolicy) OverrideSpec() *OverridePolicySpec { return &p.Spec }

// OverrideStatus implements OverridePolicyObject.
func (p *OverridePolicy) OverrideStatus() *OverridePolicyStatus { return &p.Status }

// OverrideTier implements OverridePolicyObject.
func (p *OverridePolicy) OverrideTier() Tier { return TierNamespaced }

// SelectedNamespaces implements OverridePolicyObject.
func (p *OverridePolicy) SelectedNamespaces() *metav1.LabelSelector { return nil }

// OverrideSpec implements OverridePolicyObject.
func (p *ClusterOverridePolicy) OverrideSpec() *OverridePolicySpec { return &p.Spec.OverridePolicySpec }

// OverrideStatus implements OverridePolicyObject.
func (p *ClusterOverridePolicy) OverrideStatus() *OverridePolicyStatus { return &p.Status }

// OverrideTier implements OverridePolicyObject.
func (p *ClusterOverridePolicy) OverrideTier() Tier {
	if p.Spec.Tier == "" {
		return TierBaseline
	}
	return p.Spec.Tier
}

// SelectedNamespaces implements OverridePolicyObject.
func (p *ClusterOverridePolicy) SelectedNamespaces() *metav1.LabelSelector {
	return p.Spec.NamespaceSelector
}
