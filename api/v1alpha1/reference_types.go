package v1alpha1

import "slices"

// ReferenceRule finds the needed objects of a selected object: the objects that a field of the selected object names.
// They are in the namespace of the selected object.
//
// +kubebuilder:validation:XValidation:rule="has(self.kind) || !has(self.apiGroup)",message="set apiGroup only together with kind"
// +kubebuilder:validation:XValidation:rule="!has(self.apiGroup) || self.apiGroup != 'hanse.dev'",message="objects of hanse.dev stay on the hub"
// +kubebuilder:validation:XValidation:rule="!has(self.apiGroup) || self.apiGroup != 'rbac.authorization.k8s.io'",message="an object that gives rights is sent only if resourceSelectors select it"
// +kubebuilder:validation:XValidation:rule="!has(self.kind) || !has(self.restart)",message="set restart only if kind is unset and path leads to a pod template"
type ReferenceRule struct {
	// apiGroup is the API group of the needed objects. Unset means the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// kind of the needed objects, such as Secret. Unset: path leads to a pod template. The ConfigMaps, the Secrets and the
	// ServiceAccount that the template names are then the needed objects.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`

	// path is a JSON pointer (RFC 6901) to the field with the name of the needed object, such as /spec/tls/secretName. If
	// kind is unset, path leads to a pod template, such as /spec/template. An asterisk in place of a key means all items
	// of a list, such as /spec/listeners/*/secret. If an object does not have the field, the rule has no effect on the
	// object.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^/~]|~[01])+)+$`
	Path string `json:"path"`

	// restart sets whether pods restart when a ConfigMap or Secret that they read changes. With OnChange, the hub sets the
	// annotation hanse.dev/reload in the pod template at path, so that the member's controller starts new pods. The value
	// is a digest of the content of these ConfigMaps and Secrets. Secrets that are only used to pull images do not count,
	// and pods of Jobs do not restart. Unset: Never.
	// +optional
	Restart RestartPolicy `json:"restart,omitempty"`
}

// RestartPolicy sets whether pods restart when a ConfigMap or Secret that they read changes.
// +kubebuilder:validation:Enum=Never;OnChange
type RestartPolicy string

const (
	// RestartNever leaves the pod template as it is.
	RestartNever RestartPolicy = "Never"
	// RestartOnChange changes the pod template when a ConfigMap or Secret that the pods read changes.
	RestartOnChange RestartPolicy = "OnChange"
)

// RestartPaths returns the paths of the pod templates in the rules with restart OnChange.
func (s *PlacementSpec) RestartPaths() []string {
	var out []string
	for _, r := range s.References {
		if r.Restart == RestartOnChange {
			out = append(out, r.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// BindingReference names a needed object: one that the object of the binding needs on its clusters.
type BindingReference struct {
	// apiGroup of the needed object. Empty: the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// kind of the needed object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the needed object. The needed object is in the namespace of the binding.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// path of the field, in the object of the binding, that names the needed object.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// former is true if the newest state of the object no longer names the needed object, but copies with an older state
	// may still need it.
	// +optional
	Former bool `json:"former,omitempty"`
}

// In returns the identity of the needed object. namespace is the namespace of the object that needs it.
func (r BindingReference) In(namespace string) ObjectIdentity {
	return ObjectIdentity{Group: r.APIGroup, Kind: r.Kind, Namespace: namespace, Name: r.Name}
}
