package templates

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trim leaves out what no one reads: the last-applied copy of the object, and who owns which field. Kept is who writes to the
// status subresource, since only a status without another owner is written.
func trim(u *unstructured.Unstructured) {
	if a := u.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
		delete(a, corev1.LastAppliedConfigAnnotation)
		u.SetAnnotations(a)
	}
	var owners []metav1.ManagedFieldsEntry
	for _, e := range u.GetManagedFields() {
		if e.Subresource == "status" {
			owners = append(owners, metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource})
		}
	}
	u.SetManagedFields(owners)
}
