package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// OverridePolicy says how the selected objects of its namespace differ in which clusters.
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

	// spec says which objects differ where.
	// +required
	Spec OverridePolicySpec `json:"spec"`

	// status says what the rules match.
	// +optional
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

// ClusterOverridePolicy says how selected cluster-scoped objects differ, and, with a namespaceSelector, namespaced
// ones.
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

	// spec says which objects differ where.
	// +required
	Spec ClusterOverridePolicySpec `json:"spec"`

	// status says what the rules match.
	// +optional
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
	// TierBaseline comes before OverridePolicies, which may change what it set.
	TierBaseline Tier = "Baseline"
	// TierAdmin comes after OverridePolicies; a path set by it cannot be changed by them.
	TierAdmin Tier = "Admin"
	// TierNamespaced is the stage of OverridePolicies. It is not a value of spec.tier.
	TierNamespaced Tier = "Namespaced"
)

// ClusterOverridePolicySpec is an OverridePolicySpec for all namespaces.
type ClusterOverridePolicySpec struct {
	OverridePolicySpec `json:",inline"`

	// tier is Baseline (before OverridePolicies) or Admin (after them, final). Default Baseline.
	// +optional
	// +kubebuilder:default=Baseline
	Tier Tier `json:"tier,omitempty"`

	// namespaceSelector selects the namespaces whose objects are meant as well. Unset: cluster-scoped objects only.
	// {}: every namespace but kube-* and hanse-system.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// OverridePolicySpec says how objects differ in which clusters.
type OverridePolicySpec struct {
	// resourceSelectors select hub objects; one match is enough. 1 to 64.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// rules in order: at equal rank a later rule wins. 1 to 64, names unique.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.name == b.name))",message="rule names must be unique"
	Rules []OverrideRule `json:"rules"`
}

// OverrideRule changes objects in the clusters that it selects, or keeps them away. Whatever the order of the fields, a
// rule applies images, command, args, env, resources, labels, annotations, mergePatch, patches and edits, in this
// order.
//
// +kubebuilder:validation:XValidation:rule="(has(self.exclude) && self.exclude) != (has(self.images) || has(self.command) || has(self.args) || has(self.env) || has(self.resources) || has(self.labels) || has(self.annotations) || has(self.mergePatch) || has(self.patches) || has(self.edits))",message="set exclude: true alone, or at least one of images, command, args, env, resources, labels, annotations, mergePatch, patches and edits"
type OverrideRule struct {
	// name of the rule, unique in its policy. Conditions and explanations use it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// priority comes before the topology level in the order of rules; the higher one wins. -1000 to 1000, default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// clusters in which the rule applies. Unset: all.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// exclude keeps the objects away from these clusters, and withdraws copies from them. A rule that excludes changes
	// nothing else. Default false.
	// +optional
	Exclude bool `json:"exclude,omitempty"`

	// images of containers, or of string fields that hold one. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Images []ImageOverride `json:"images,omitempty"`

	// command of containers: the entrypoint. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Command []CommandOverride `json:"command,omitempty"`

	// args of containers. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Args []CommandOverride `json:"args,omitempty"`

	// env of containers: environment variables. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Env []EnvOverride `json:"env,omitempty"`

	// resources of containers: requests and limits. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Resources []ResourcesOverride `json:"resources,omitempty"`

	// labels of the object to set; the others stay. null for a key in metadata.labels of mergePatch removes one. At most
	// 64, none of hanse.dev.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the object to set; the others stay. null for a key in metadata.annotations of mergePatch removes one.
	// At most 64, none of hanse.dev.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// mergePatch is a JSON merge patch (RFC 7386): null removes a field, a list is replaced as a whole.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	MergePatch *apiextensionsv1.JSON `json:"mergePatch,omitempty"`

	// patches are JSON patch operations (RFC 6902), applied in order. At most 64. Where a test is not met the rule is
	// skipped as a whole, with a reason; tests that come before every other operation look at the object before the rule
	// changes anything.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Patches []PatchOperation `json:"patches,omitempty"`

	// edits inside string fields that hold YAML or JSON. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Edits []StringEdit `json:"edits,omitempty"`
}

// ContainerTarget says which containers are meant: those of the pod template of a workload (/spec/template/spec, or
// jobTemplate's), of a Pod, or of any kind that holds a pod template in the same place; or, by a path, one object that
// has the fields of a container.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.containers) && has(self.path))",message="set containers or path, not both"
type ContainerTarget struct {
	// containers by name, init containers among them; each must exist. Unset: all containers, and no init container. At
	// most 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Containers []string `json:"containers,omitempty"`

	// path is a JSON pointer (RFC 6901) to the object whose field is meant, such as /spec for the resources of a
	// Prometheus. It must exist. Unset: the containers of the pod template.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path,omitempty"`
}

// ImageOverride replaces parts of an image. What is not set stays, but that a tag without a digest takes the digest
// away, and a digest without a tag the tag. An image without a registry is one of docker.io, and without a path there
// one of docker.io/library.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.containers) && has(self.path))",message="set containers or path, not both"
// +kubebuilder:validation:XValidation:rule="has(self.registry) || has(self.repository) || has(self.tag) || has(self.digest)",message="set at least one of registry, repository, tag and digest"
type ImageOverride struct {
	// containers by name, init containers among them; each must exist. Unset: all containers and init containers. At
	// most 32.
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

	// registry is a host, with a port if need be, such as registry.cn-shanghai.example.com:5000.
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

// CommandOverride replaces the command, or the args, of containers as a whole.
type CommandOverride struct {
	ContainerTarget `json:",inline"`

	// value is the whole list. Empty: the container runs what its image says. At most 256.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Value []string `json:"value"`
}

// EnvOverride sets and removes environment variables of containers; the others stay, in their order.
//
// +kubebuilder:validation:XValidation:rule="has(self.set) || has(self.remove)",message="set at least one of set and remove"
type EnvOverride struct {
	ContainerTarget `json:",inline"`

	// set variables as a container has them: one that is there is replaced as a whole, one that is not is appended. At
	// most 128, names unique.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Set []corev1.EnvVar `json:"set,omitempty"`

	// remove variables by name; one that is not there is as good as removed. At most 128.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Remove []string `json:"remove,omitempty"`
}

// ResourcesOverride sets requests and limits of containers by name; the others stay.
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

// TextFormat is what a string field holds.
// +kubebuilder:validation:Enum=YAML;JSON
type TextFormat string

// The formats that can be edited.
const (
	TextYAML TextFormat = "YAML"
	TextJSON TextFormat = "JSON"
)

// StringEdit changes what a string field holds: one document of YAML or JSON whose root is an object. What is not
// touched keeps its order, its comments and its way of writing; blank lines and indentation may change. YAML with
// anchors, aliases or tags is refused. At most 256 KiB.
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

	// mergePatch is a JSON merge patch (RFC 7386) of the document, applied before patches.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	MergePatch *apiextensionsv1.JSON `json:"mergePatch,omitempty"`

	// patches are JSON patch operations (RFC 6902) whose paths begin at the root of the document, applied in order. At
	// most 64. Where a test is not met the whole rule is skipped.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Patches []EditOperation `json:"patches,omitempty"`
}

// RuleClusters selects clusters for a rule. Everything that is set must hold.
type RuleClusters struct {
	// names of MemberClusters. At most 256.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// labelSelector over the labels of MemberClusters and their derived region and zone.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// expression in CEL that is true for the clusters that are meant, in the language of Placement's
	// spec.clusters.expression, over name, labels, region, zone, version and capacity: "semver(version, true).major() == 1
	// && region.startsWith('eu-')".
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
// last step of add. Neither apiVersion, kind and status of an object can be patched, nor its metadata, except for
// single labels and annotations that are not the hub's.
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

	// value for add, replace and test: any JSON value but null, which is as good as no value. An operation that lacks both
	// it and expression, or has both, makes its rule invalid.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// expression in CEL that makes the value, in place of value, over cluster (name, labels, region, zone, version and
	// capacity) and object, which is the object before any override.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// EditOperation is one operation of a JSON patch (RFC 6902) on the document that a string field holds.
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

	// from is the source of move and copy, in the document too.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	From string `json:"from,omitempty"`

	// value for add, replace and test: any JSON value but null, which is as good as no value. An operation that lacks both
	// it and expression, or has both, makes its rule invalid.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// expression in CEL that makes the value, as in patches of a rule: cluster and object are the same there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// OverridePolicyStatus says what the rules of a policy match.
type OverridePolicyStatus struct {
	// observedGeneration is the generation of the spec that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// rules in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Rules []RuleStatus `json:"rules,omitempty"`

	// conditions: Accepted, Conflicted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RuleStatus says what one rule matches.
type RuleStatus struct {
	// name of the rule.
	// +required
	Name string `json:"name"`

	// rank is the rule's place in the order of precedence: stage/priority/topology level/number of requirements, such as
	// Namespaced/0/region/1.
	// +required
	Rank string `json:"rank"`

	// objects is the number of federated objects that the policy selects.
	// +required
	Objects int32 `json:"objects"`

	// clusters is the number of clusters that hold such an object and that the rule selects; of a rule that excludes, of
	// all clusters that it selects.
	// +required
	Clusters int32 `json:"clusters"`
}

// OverridePolicyObject is an OverridePolicy or a ClusterOverridePolicy.
//
// +kubebuilder:object:generate=false
type OverridePolicyObject interface {
	metav1.Object
	runtime.Object
	// OverrideSpec is the part that both kinds share.
	OverrideSpec() *OverridePolicySpec
	// OverrideStatus is the status.
	OverrideStatus() *OverridePolicyStatus
	// OverrideTier is TierNamespaced for an OverridePolicy.
	OverrideTier() Tier
	// SelectedNamespaces is nil for an OverridePolicy and the namespaceSelector for a ClusterOverridePolicy.
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
