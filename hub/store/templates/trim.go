package templates

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// trim removes the parts of a hub object that the hub never reads: the last-applied annotation, and a BundleAnnotation,
// which only objects of bundles may have. Of the managed fields, it keeps the field managers of the status, because the
// hub writes a status only if no other manager has written it. It also keeps which fields clients own, see
// overrides.KeepOwners.
func trim(u *unstructured.Unstructured) {
	overrides.KeepOwners(u)
	metadata, _ := u.Object["metadata"].(map[string]any)
	if a, ok := metadata["annotations"].(map[string]any); ok {
		delete(a, corev1.LastAppliedConfigAnnotation)
		delete(a, hubv1.BundleAnnotation)
	}
}
