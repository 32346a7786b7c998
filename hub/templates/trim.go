package templates

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// trim removes the parts of a hub object that the hub never reads: the last-applied annotation, most managed fields,
// and a BundleAnnotation, which only objects of bundles may have. It keeps the field managers of the status, because
// the hub writes a status only if no other manager has written it.
func trim(u *unstructured.Unstructured) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	if a, ok := metadata["annotations"].(map[string]any); ok {
		delete(a, corev1.LastAppliedConfigAnnotation)
		delete(a, hubv1.BundleAnnotation)
	}
	entries, _ := metadata["managedFields"].([]any)
	var owners []any
	for _, entry := range entries {
		if e, ok := entry.(map[string]any); ok && e["subresource"] == "status" {
			owners = append(owners, map[string]any{"manager": e["manager"], "operation": e["operation"], "subresource": "status"})
		}
	}
	delete(metadata, "managedFields")
	if len(owners) > 0 {
		metadata["managedFields"] = owners
	}
}
