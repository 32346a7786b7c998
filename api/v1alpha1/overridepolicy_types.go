package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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

// ClusterOverridePolicy says how selected cluster-scoped objects differ, and, with a namespaceSelector, namespaced ones.
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

// OverrideRule changes objects in the clusters that it selects. mergePatch is applied before patches.
//
// +kubebuilder:validation:XValidation:rule="has(self.mergePatch) || has(self.patches)",message="set mergePatch or patches"
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

	// mergePatch is a JSON merge patch (RFC 7386): null removes a field, a list is replaced as a whole.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	MergePatch *apiextensionsv1.JSON `json:"mergePatch,omitempty"`

	// patches are JSON patch operations (RFC 6902), applied in order. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Patches []PatchOperation `json:"patches,omitempty"`
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
// last step of add. Neither apiVersion, kind and status of an object can be patched, nor its metadata, except for single
// labels and annotations that are not the hub's.
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

	// value for add, replace and test: any JSON value but null, which is as good as no value. An operation that lacks it makes its
	// rule invalid.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
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

	// rank is the rule's place in the order of precedence: stage/priority/topology level/number of requirements, such as Namespaced/0/region/1.
	// +required
	Rank string `json:"rank"`

	// objects is the number of federated objects that the policy selects.
	// +required
	Objects int32 `json:"objects"`

	// clusters is the number of clusters that hold such an object and that the rule selects.
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
