package templates

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trim removes the parts that are never read: the last-applied copy of the object and managed fields. It keeps the
// managers of the status subresource, because only a status without another owner is written.
func trim(u *unstructured.Unstructured) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	if a, ok := metadata["annotations"].(map[string]any); ok {
		delete(a, corev1.LastAppliedConfigAnnotation)
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
