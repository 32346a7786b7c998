package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Bundle has manifests of objects in its namespace. The hub does not create these objects on its own API server: they
// exist on members only. A Placement that selects the Bundle sends them to clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=hanse
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Placed",type=integer,JSONPath=`.status.placed`
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=`.status.conditions[?(@.type=="Stored")].status`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.removalHeld.copies`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bundle struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the manifests.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.manifests) || has(self.configMaps)",message="manifests or configMaps is required"
	Spec BundleSpec `json:"spec"`

	// status counts the objects of the bundle.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status BundleStatus `json:"status,omitempty"`
}

// BundleList is a list of Bundles.
//
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}

// ClusterBundle has manifests of cluster-scoped objects, and of objects in any namespace except kube-* and
// hanse-system. The hub does not create these objects on its own API server: they exist on members only. A
// ClusterPlacement that selects the ClusterBundle sends them to clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=hanse
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Placed",type=integer,JSONPath=`.status.placed`
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=`.status.conditions[?(@.type=="Stored")].status`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.removalHeld.copies`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterBundle struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the manifests.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.manifests) || has(self.configMaps)",message="manifests or configMaps is required"
	Spec BundleSpec `json:"spec"`

	// status counts the objects of the bundle.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status BundleStatus `json:"status,omitempty"`
}

// ClusterBundleList is a list of ClusterBundles.
//
// +kubebuilder:object:root=true
type ClusterBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterBundle `json:"items"`
}

// BundleSpec has the manifests of a bundle. It also names a ServiceAccount: a bundle may contain only objects that this
// account may write on the hub.
type BundleSpec struct {
	// serviceAccountName is a ServiceAccount on the hub. It must have the right to get, create, update and delete each
	// object of the bundle on the hub. The ServiceAccount of a Bundle is in the namespace of the Bundle. The
	// ServiceAccount of a ClusterBundle or FederatedOperator is in hanse-system. The author of the bundle needs the right
	// to impersonate the ServiceAccount. Default "default".
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// manifests are objects, each with apiVersion, kind and metadata.name. At most 1000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:Type=object
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Manifests []runtime.RawExtension `json:"manifests,omitempty"`

	// configMaps name ConfigMaps with further manifests. Each value of such a ConfigMap is YAML or JSON with one or more
	// objects. The ConfigMaps of a Bundle are in the namespace of the Bundle. The ConfigMaps of a ClusterBundle or
	// FederatedOperator are in hanse-system. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ConfigMaps []ConfigMapSource `json:"configMaps,omitempty"`
}

// ConfigMapSource names a ConfigMap with manifests.
type ConfigMapSource struct {
	// name of the ConfigMap. All its values are read.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// BundleStatus counts the objects of a bundle.
type BundleStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe. -1 means that the hub has not
	// processed the bundle yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// objects is the number of objects of the bundle that the hub has stored. An object that is being removed does not
	// count.
	// +optional
	// +kubebuilder:default=0
	Objects int32 `json:"objects"`

	// placed is the number of stored objects that follow a placement: a placement decides which clusters get the object.
	// +optional
	// +kubebuilder:default=0
	Placed int32 `json:"placed"`

	// removalHeld describes the copies of objects that the bundle no longer contains, and that stay until a user confirms
	// their removal. Unset: there are none.
	// +optional
	RemovalHeld *RemovalHeld `json:"removalHeld,omitempty"`

	// conditions are of the types Stored, Applied, Healthy and RemovalHeld. Stored is True if the manifests are valid and
	// stored. Applied and Healthy summarize the copies of all objects. RemovalHeld is True if copies of objects that the
	// bundle no longer contains stay until a user confirms their removal.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BundleObject is a Bundle, a ClusterBundle or a FederatedOperator. It has objects for members, which the hub does not
// create on its own API server.
//
// +kubebuilder:object:generate=false
type BundleObject interface {
	metav1.Object
	runtime.Object
	// BundleSpec returns the part of the spec with the manifests.
	BundleSpec() *BundleSpec
	// BundleStatus returns the part of the status that all kinds of bundles have.
	BundleStatus() *BundleStatus
}

var (
	_ BundleObject = &Bundle{}
	_ BundleObject = &ClusterBundle{}
	_ BundleObject = &FederatedOperator{}
)

// BundleSpec implements BundleObject.
func (b *Bundle) BundleSpec() *BundleSpec { return &b.Spec }

// BundleStatus implements BundleObject.
func (b *Bundle) BundleStatus() *BundleStatus { return &b.Status }

// BundleSpec implements BundleObject.
func (b *ClusterBundle) BundleSpec() *BundleSpec { return &b.Spec }

// BundleStatus implements BundleObject.
func (b *ClusterBundle) BundleStatus() *BundleStatus { return &b.Status }

// BundleSpec implements BundleObject.
func (o *FederatedOperator) BundleSpec() *BundleSpec { return &o.Spec.BundleSpec }

// BundleStatus implements BundleObject.
func (o *FederatedOperator) BundleStatus() *BundleStatus { return &o.Status.BundleStatus }

// The kinds of bundles.
const (
	BundleKind            = "Bundle"
	ClusterBundleKind     = "ClusterBundle"
	FederatedOperatorKind = "FederatedOperator"
)

// New returns an empty bundle of this kind and name.
func (r BundleReference) New() BundleObject {
	meta := metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}
	switch r.Kind {
	case FederatedOperatorKind:
		return &FederatedOperator{ObjectMeta: meta}
	case ClusterBundleKind:
		return &ClusterBundle{ObjectMeta: meta}
	default:
		return &Bundle{ObjectMeta: meta}
	}
}

// ReferenceTo returns the kind, namespace and name of a bundle as a BundleReference.
func ReferenceTo(b BundleObject) BundleReference {
	out := BundleReference{Kind: BundleKind, Namespace: b.GetNamespace(), Name: b.GetName()}
	switch b.(type) {
	case *ClusterBundle:
		out.Kind = ClusterBundleKind
	case *FederatedOperator:
		out.Kind = FederatedOperatorKind
	}
	return out
}

// ObjectBundle describes the bundle that contains an object. A placement that selects the bundle applies to all its
// objects, so the selectors of placements are compared with this data.
//
// +kubebuilder:object:generate=false
type ObjectBundle struct {
	BundleReference `json:",inline"`
	// Labels of the bundle.
	Labels map[string]string `json:"labels,omitempty"`
}

// OfBundle returns the reference and the labels of a bundle. They are the same for all objects of the bundle.
func OfBundle(b BundleObject) ObjectBundle {
	return ObjectBundle{BundleReference: ReferenceTo(b), Labels: b.GetLabels()}
}

// Key returns the namespace and name of the bundle.
func (r BundleReference) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// Identity returns the identity of the bundle as an object of the API.
func (r BundleReference) Identity() ObjectIdentity {
	return ObjectIdentity{Group: GroupVersion.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// String returns the bundle as text: "Bundle shop/web" or "ClusterBundle web".
func (r BundleReference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Annotation returns the ObjectBundle as JSON, which is the value of BundleAnnotation.
func (o ObjectBundle) Annotation() string {
	value, err := json.Marshal(o)
	if err != nil {
		panic(err) // cannot fail: strings can always be encoded
	}
	return string(value)
}

// Regarding returns the object to which the hub attaches events about a hub object. This is the hub object itself, or
// the bundle that contains it.
func (r ObjectReference) Regarding(namespace string) *corev1.ObjectReference {
	if r.Bundle == nil {
		return &corev1.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: namespace, Name: r.Name, UID: r.UID}
	}
	return &corev1.ObjectReference{
		APIVersion: GroupVersion.String(), Kind: r.Bundle.Kind, Namespace: r.Bundle.Namespace, Name: r.Bundle.Name, UID: r.UID,
	}
}

// IsOfOperator reports whether the object belongs to a FederatedOperator.
func (r ObjectReference) IsOfOperator() bool {
	return r.Bundle != nil && r.Bundle.Kind == FederatedOperatorKind
}

// IsOfOperator reports whether the object belongs to a FederatedOperator, by BundleOf.
func IsOfOperator(o metav1.Object) bool {
	b := BundleOf(o)
	return b != nil && b.Kind == FederatedOperatorKind
}

// BundleOf returns the bundle that contains the object. It reads the bundle from the BundleAnnotation of the object. It
// returns nil for an object that exists on the hub's API server. Only objects in the hub's memory may have a
// BundleAnnotation: the hub removes this annotation from objects that it reads from the API server.
func BundleOf(o metav1.Object) *ObjectBundle {
	value, ok := o.GetAnnotations()[BundleAnnotation]
	if !ok {
		return nil
	}
	var out ObjectBundle
	if err := json.Unmarshal([]byte(value), &out); err != nil || out.Kind == "" || out.Name == "" {
		return nil
	}
	return &out
}
