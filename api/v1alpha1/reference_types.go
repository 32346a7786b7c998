package v1alpha1

import "slices"

// ReferenceRule finds the names of objects that a selected object needs. The needed objects are in its namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.kind) || !has(self.apiGroup)",message="apiGroup goes with kind"
// +kubebuilder:validation:XValidation:rule="!has(self.apiGroup) || self.apiGroup != 'hanse.dev'",message="objects of hanse.dev stay on the hub"
// +kubebuilder:validation:XValidation:rule="!has(self.kind) || !has(self.restart)",message="restart goes with the path of a pod template, without kind"
type ReferenceRule struct {
	// apiGroup is the API group of the needed objects. Unset means the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// kind of the needed objects, such as Secret. If it is unset, path leads to a pod template, and the ConfigMaps,
	// Secrets and the ServiceAccount in the template are needed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`

	// path is a JSON pointer (RFC 6901) to the field with the name of the needed object, such as /spec/tls/secretName. If
	// kind is unset, it leads to a pod template, such as /spec/template. An asterisk in place of a key means all items of
	// a list, such as /spec/listeners/*/secret. If an object does not have the field, the rule has no effect on it.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^/~]|~[01])+)+$`
	Path string `json:"path"`

	// restart OnChange restarts pods when a ConfigMap or Secret that they read changes. The hub sets the annotation
	// hanse.dev/reload in the pod template at path. Its value is a digest of the content of these objects that the hub
	// sends to the cluster. Pull secrets and Jobs are ignored. Unset: Never.
	// +optional
	Restart RestartPolicy `json:"restart,omitempty"`
}

// RestartPolicy sets whether pods restart when an object that they read changes.
// +kubebuilder:validation:Enum=Never;OnChange
type RestartPolicy string

const (
	// RestartNever leaves the pod template as it is.
	RestartNever RestartPolicy = "Never"
	// RestartOnChange changes the pod template when an object that the pods read changes.
	RestartOnChange RestartPolicy = "OnChange"
)

// RestartPaths returns the paths of the pod templates whose pods restart when an object that they read changes.
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

// BindingReference is an object that the object of the binding needs on its clusters.
type BindingReference struct {
	// apiGroup of the needed object. It is empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// kind of the needed object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the needed object. It is in the namespace of the binding.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// path of the field in which the object of the binding names the needed object.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// former is true if the newest state of the object does not need the other object any more, but copies of older states
	// may.
	// +optional
	Former bool `json:"former,omitempty"`
}

// In returns the identity of the needed object, from the namespace of the object that needs it.
func (r BindingReference) In(namespace string) ObjectIdentity {
	return ObjectIdentity{Group: r.APIGroup, Kind: r.Kind, Namespace: namespace, Name: r.Name}
}
