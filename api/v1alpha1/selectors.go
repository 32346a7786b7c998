package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceSelector selects hub objects by group and kind, never by version.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.labelSelector))",message="set name or labelSelector, not both"
// +kubebuilder:validation:XValidation:rule="self.kind != '*' || (has(self.apiGroup) && size(self.apiGroup) > 0)",message="kind '*' needs an apiGroup other than the core group"
// +kubebuilder:validation:XValidation:rule="self.kind != '*' || !has(self.name)",message="kind '*' cannot be combined with name"
type ResourceSelector struct {
	// apiGroup is the API group of the objects. Unset means the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// kind of the objects. "*" means every kind of the group, and is not allowed for the core group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Z][A-Za-z0-9]*|\*)$`
	Kind string `json:"kind"`

	// name of the one object that is selected. Unset: objects of every name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// labelSelector selects objects by their labels. Unset and {} select all objects.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
