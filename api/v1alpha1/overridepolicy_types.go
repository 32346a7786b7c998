package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// OverridePolicy selects objects in its namespace, and changes their copies on some clusters.
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

	// spec selects the objects and sets the changes of their copies.
	// +required
	Spec OverridePolicySpec `json:"spec"`

	// status counts, for each rule, the objects and clusters to which it applies.
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

// ClusterOverridePolicy selects cluster-scoped objects, and changes their copies on some clusters. With a
// namespaceSelector, it also selects namespaced objects.
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

	// spec selects the objects and sets the changes of their copies.
	// +required
	Spec ClusterOverridePolicySpec `json:"spec"`

	// status counts, for each rule, the objects and clusters to which it applies.
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

// Tier sets whether a ClusterOverridePolicy is applied before or after OverridePolicies.
// +kubebuilder:validation:Enum=Baseline;Admin
type Tier string

const (
	// TierBaseline applies the policy before OverridePolicies, which may change the same fields again.
	TierBaseline Tier = "Baseline"
	// TierAdmin applies the policy after OverridePolicies, so that they cannot change the same fields.
	TierAdmin Tier = "Admin"
	// TierNamespaced is the tier of every OverridePolicy. It is applied after Baseline and before Admin. It is not a value
	// of spec.tier.
	TierNamespaced Tier = "Namespaced"
)

// ClusterOverridePolicySpec is an OverridePolicySpec with two more fields: a tier, and a selector of namespaces.
type ClusterOverridePolicySpec struct {
	OverridePolicySpec `json:",inline"`

	// tier sets whether this policy is applied before or after OverridePolicies. Baseline is applied before them, and they
	// may change the same fields again. Admin is applied after them and wins. Default Baseline.
	// +optional
	// +kubebuilder:default=Baseline
	Tier Tier `json:"tier,omitempty"`

	// namespaceSelector selects namespaces by their labels. resourceSelectors then also select objects in these
	// namespaces. Unset: only cluster-scoped objects are selected. {}: all namespaces are selected except kube-* and
	// hanse-system.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// OverridePolicySpec selects objects, and sets the changes of their copies on some clusters.
type OverridePolicySpec struct {
	// resourceSelectors select hub objects. An object is selected if at least one of them matches. 1 to 64.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// rules are applied to the copies of the selected objects. If several rules of this policy set the same field and have
	// equal rank (status.rules shows it), the later rule wins. 1 to 64, with unique names.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.name == b.name))",message="rule names must be unique"
	Rules []OverrideRule `json:"rules"`
}

// OverrideRule changes the copies of objects on the clusters that it selects, or keeps the objects away from these
// clusters. The changes of a rule are applied in this order: images, command, args, env, resources, labels,
// annotations, mergePatch, patches, edits.
//
// +kubebuilder:validation:XValidation:rule="(has(self.exclude) && self.exclude) != (has(self.images) || has(self.command) || has(self.args) || has(self.env) || has(self.resources) || has(self.labels) || has(self.annotations) || has(self.mergePatch) || has(self.patches) || has(self.edits))",message="set exclude: true alone, or at least one of images, command, args, env, resources, labels, annotations, mergePatch, patches and edits"
// +kubebuilder:validation:XValidation:rule="!has(self.when) || !has(self.exclude) || !self.exclude",message="when cannot be combined with exclude: use clusters.expression"
type OverrideRule struct {
	// name of the rule, unique in its policy. Conditions and the output of hansectl explain contain the name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// priority of the rule. If several rules of one tier set the same field, the rule with the highest priority wins.
	// Between rules of equal priority, the rule that selects clusters more narrowly wins: by names, then by zone, then by
	// region, then by anything else. -1000 to 1000. Unset: 0.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// clusters to which the rule applies. Unset: all clusters.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// when is a CEL expression that is true for the objects and clusters to which the rule applies. Its variables are
	// cluster and object, as in the expression of a patch. If it is false, the whole rule is skipped for this object and
	// cluster, and the reason is reported. Rules with exclude must not have it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`

	// exclude true keeps the objects away from the clusters of the rule, and withdraws copies that are there. A rule with
	// exclude must not have other changes. Default false.
	// +optional
	Exclude bool `json:"exclude,omitempty"`

	// images changes the images of containers, or string fields that have an image as their value. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Images []ImageOverride `json:"images,omitempty"`

	// command replaces the command of containers, which is their entrypoint. At most 32.
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

	// labels are labels to set on the copy. Other labels stay. To remove a label, set it to null in metadata.labels of
	// mergePatch. At most 64. Labels with the prefix hanse.dev/ are not allowed.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are annotations to set on the copy. Other annotations stay. To remove an annotation, set it to null in
	// metadata.annotations of mergePatch. At most 64. Annotations with the prefix hanse.dev/ are not allowed.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// mergePatch is a JSON merge patch (RFC 7386): null removes a field, a list is replaced as a whole.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	MergePatch *apiextensionsv1.JSON `json:"mergePatch,omitempty"`

	// patches are JSON patch operations (RFC 6902), applied in order. If an operation with op test fails for a cluster,
	// the whole rule is skipped for this cluster, and the reason is reported. Tests that precede all other operations read
	// the object as it was before this rule changed it. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Patches []PatchOperation `json:"patches,omitempty"`

	// edits change YAML or JSON documents inside string fields. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Edits []StringEdit `json:"edits,omitempty"`
}

// ContainerTarget selects containers of an object of any kind: the containers of a Pod, of the pod template at
// /spec/template, or of the pod template in a jobTemplate. With a path, it selects objects that have the fields of a
// container.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.containers) && has(self.path))",message="set containers or path, not both"
type ContainerTarget struct {
	// containers are names of containers and init containers. Each must exist. Unset: all containers, but no init
	// containers. At most 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Containers []string `json:"containers,omitempty"`

	// path is a JSON pointer (RFC 6901) to an object with the fields of a container, such as /spec of a Prometheus. In a
	// list, a step may be a key such as [name=web], which selects the items whose field has this value, or *, which
	// selects all items. The object must exist, unless the path has *. Unset: the containers of the Pod or pod template.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path,omitempty"`
}

// ImageOverride replaces parts of an image. Parts that are not set here stay. However, if only the tag is set, the
// digest is removed. If only the digest is set, the tag is removed. An image without a registry is in docker.io. An
// image of docker.io without a path is in docker.io/library.
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

	// path is a JSON pointer (RFC 6901) to a string field that has an image as its value, such as /spec/image of a
	// Prometheus. In a list, a step may be a key such as [name=web], which selects the items whose field has this value,
	// or *, which selects all items. The field must exist, unless the path has *. Unset: the images of the containers of
	// the Pod or pod template.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path,omitempty"`

	// registry is the host of the registry with an optional port, such as registry.cn-shanghai.example.com:5000.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Registry string `json:"registry,omitempty"`

	// repository is the path of the image in the registry, such as prometheus/prometheus.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Repository string `json:"repository,omitempty"`

	// tag of the image, such as v3.5.0.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Tag string `json:"tag,omitempty"`

	// digest of the image, such as sha256:9f86d0...
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Digest string `json:"digest,omitempty"`
}

// CommandOverride replaces the whole command, or all args, of containers.
type CommandOverride struct {
	ContainerTarget `json:",inline"`

	// value is the new command, or the new args. Empty: the container uses the command or args of its image. At most 256.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Value []string `json:"value"`
}

// EnvOverride sets and removes environment variables of containers. Other variables keep their values and their order.
//
// +kubebuilder:validation:XValidation:rule="has(self.set) || has(self.remove)",message="set at least one of set and remove"
type EnvOverride struct {
	ContainerTarget `json:",inline"`

	// set has variables, written as in a container, or with an expression. A variable with the name of an existing one
	// replaces it. Other variables are appended. At most 128, with unique names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Set []EnvVariable `json:"set,omitempty"`

	// remove has names of variables to remove. It is no error if a variable does not exist. At most 128.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Remove []string `json:"remove,omitempty"`
}

// EnvVariable is an environment variable, written as in a container. Its value can be computed by an expression.
//
// +kubebuilder:validation:XValidation:rule="!has(self.expression) || (!has(self.value) && !has(self.valueFrom))",message="set expression, value or valueFrom, not several of them"
type EnvVariable struct {
	corev1.EnvVar `json:",inline"`

	// expression in CEL computes the value, which must be a string. Its variables are cluster and object, as in the
	// expression of a patch.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// ResourcesOverride sets requests and limits of containers. Requests and limits of other resources stay.
//
// +kubebuilder:validation:XValidation:rule="has(self.requests) || has(self.limits)",message="set at least one of requests and limits"
type ResourcesOverride struct {
	ContainerTarget `json:",inline"`

	// requests has the requests to set, by the name of the resource, such as {cpu: 500m, memory: 1Gi}. At most 32.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	Requests map[corev1.ResourceName]resource.Quantity `json:"requests,omitempty"`

	// limits has the limits to set, by the name of the resource, such as {memory: 2Gi}. At most 32.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	Limits map[corev1.ResourceName]resource.Quantity `json:"limits,omitempty"`
}

// TextFormat is the format of a document in a string field.
// +kubebuilder:validation:Enum=YAML;JSON
type TextFormat string

// The formats of documents that a StringEdit can change.
const (
	TextYAML TextFormat = "YAML"
	TextJSON TextFormat = "JSON"
)

// StringEdit changes one YAML or JSON document that is the value of a string field. The root of the document must be an
// object. Unchanged parts of the document keep their order, comments and spelling. Blank lines and indentation may
// change. YAML with anchors, aliases or tags is refused. At most 256 KiB.
//
// +kubebuilder:validation:XValidation:rule="has(self.mergePatch) || has(self.patches)",message="set mergePatch or patches"
type StringEdit struct {
	// path is a JSON pointer (RFC 6901) to the string field, such as /data/prometheus.yml. The field must exist.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path"`

	// format is YAML or JSON.
	// +required
	Format TextFormat `json:"format"`

	// mergePatch is a JSON merge patch (RFC 7386) for the document. It is applied before patches.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	MergePatch *apiextensionsv1.JSON `json:"mergePatch,omitempty"`

	// patches are JSON patch operations (RFC 6902), applied in order. Their paths start at the root of the document. If an
	// operation with op test fails for a cluster, the whole rule is skipped for this cluster. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Patches []EditOperation `json:"patches,omitempty"`
}

// RuleClusters selects clusters. A cluster is selected if it matches all fields that are set.
type RuleClusters struct {
	// names of the MemberClusters to select. At most 256.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// labelSelector selects clusters by the labels of their MemberClusters. The region in status.topology counts as a
	// label, and so does the zone if there is only one.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// expression is a CEL expression that is true for the clusters to select, such as "semver(version, true).major() == 1
	// && region.startsWith('eu-')". Its variables are name, labels, annotations, region, zone, version, capacity and
	// operators. The language is the same as in clusters.expression of a Placement.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// PatchOp is the name of a JSON patch operation (RFC 6902).
// +kubebuilder:validation:Enum=add;remove;replace;move;copy;test
type PatchOp string

// The names of the JSON patch operations.
const (
	PatchAdd     PatchOp = "add"
	PatchRemove  PatchOp = "remove"
	PatchReplace PatchOp = "replace"
	PatchMove    PatchOp = "move"
	PatchCopy    PatchOp = "copy"
	PatchTest    PatchOp = "test"
)

// PatchOperation is one operation of a JSON patch (RFC 6902). A path that does not exist is an error, except that add
// may create the last step of its path. apiVersion, kind, status and metadata of an object cannot be patched. Single
// labels and annotations can be patched, except those with the prefix hanse.dev/.
//
// +kubebuilder:validation:XValidation:rule="(self.op in ['move', 'copy']) == has(self.from)",message="set from if and only if op is move or copy"
// +kubebuilder:validation:XValidation:rule="[self.path, has(self.from) && self.op == 'move' ? self.from : self.path].all(p, !(p in ['/', '/apiVersion', '/kind', '/status', '/metadata']) && !p.startsWith('/apiVersion/') && !p.startsWith('/kind/') && !p.startsWith('/status/') && (!p.startsWith('/metadata/') || p.startsWith('/metadata/labels/') || p.startsWith('/metadata/annotations/')))",message="apiVersion, kind, status and metadata other than single labels and annotations cannot be patched"
// +kubebuilder:validation:XValidation:rule="[self.path, has(self.from) ? self.from : self.path].all(p, !p.startsWith('/metadata/labels/hanse.dev~1') && !p.startsWith('/metadata/annotations/hanse.dev~1'))",message="labels and annotations of hanse.dev cannot be patched or copied"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || (self.from != '/status' && !self.from.startsWith('/status/') && (!self.from.startsWith('/metadata/') || self.from in ['/metadata/name', '/metadata/namespace', '/metadata/labels', '/metadata/annotations'] || self.from.startsWith('/metadata/labels/') || self.from.startsWith('/metadata/annotations/')))",message="from cannot be the status, or metadata other than name, namespace, labels and annotations"
type PatchOperation struct {
	// op is add, remove, replace, move, copy or test.
	// +required
	Op PatchOp `json:"op"`

	// path is a JSON pointer (RFC 6901) to the field that the operation reads or changes, such as /spec/replicas. In a
	// list, a step may be a key such as [name=web], which selects the items whose field has this value, or *, which
	// selects all items. A path with * changes the fields that are there, which may be none. test, move and copy need a
	// path that selects one value.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path"`

	// from is a JSON pointer to the value that move and copy take. Other operations must not have it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	From string `json:"from,omitempty"`

	// value is the value for add, replace and test. It may be any JSON value except null. These operations need either
	// value or expression.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// expression in CEL computes the value. Its variables are cluster and object. cluster has the fields name, labels,
	// annotations, region, zone, version, capacity and operators. object is the hub object before all overrides.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// EditOperation is one operation of a JSON patch (RFC 6902) on the document in a string field.
//
// +kubebuilder:validation:XValidation:rule="(self.op in ['move', 'copy']) == has(self.from)",message="set from if and only if op is move or copy"
type EditOperation struct {
	// op is add, remove, replace, move, copy or test.
	// +required
	Op PatchOp `json:"op"`

	// path is a JSON pointer (RFC 6901) from the root of the document, such as /global/scrape_interval. In a list, a step
	// may be a key such as [name=web] or *, as in the patches of the rule.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	Path string `json:"path"`

	// from is a JSON pointer, in the same document, to the value that move and copy take. Other operations must not have
	// it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
	From string `json:"from,omitempty"`

	// value is the value for add, replace and test. It may be any JSON value except null. These operations need either
	// value or expression.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// expression in CEL computes the value. Its variables are cluster and object. cluster has the fields name, labels,
	// annotations, region, zone, version, capacity and operators. object is the hub object before all overrides.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// OverridePolicyStatus counts, for each rule, the objects and clusters to which it applies.
type OverridePolicyStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe. -1: the hub has not processed the
	// object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// rules has the counts for each rule, in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Rules []RuleStatus `json:"rules,omitempty"`

	// conditions are of the types Ready, Accepted and Conflicted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RuleStatus counts the objects and clusters to which one rule applies.
type RuleStatus struct {
	// name of the rule.
	// +required
	Name string `json:"name"`

	// rank decides which rule wins if several rules set the same field. It is written as tier/priority/topology
	// level/number of requirements, such as Namespaced/0/region/1. The topology level is names, zone, region or none: how
	// the rule selects its clusters. A requirement is one condition in clusters of the rule.
	// +required
	Rank string `json:"rank"`

	// objects is the number of objects that the policy selects. Only objects with a binding count.
	// +required
	Objects int32 `json:"objects"`

	// clusters is the number of clusters that the rule selects and that hold at least one object that the policy selects.
	// For a rule with exclude, it is the number of all clusters that the rule selects.
	// +required
	Clusters int32 `json:"clusters"`
}

// OverridePolicyObject is an OverridePolicy or a ClusterOverridePolicy.
//
// +kubebuilder:object:generate=false
type OverridePolicyObject interface {
	metav1.Object
	runtime.Object
	// OverrideSpec returns the part of the spec that both kinds have.
	OverrideSpec() *OverridePolicySpec
	// OverrideStatus returns the status.
	OverrideStatus() *OverridePolicyStatus
	// OverrideTier returns the tier of a ClusterOverridePolicy. It returns TierNamespaced for an OverridePolicy.
	OverrideTier() Tier
	// SelectedNamespaces returns the namespaceSelector of a ClusterOverridePolicy. It returns nil for an OverridePolicy.
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
