package guard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Held returns the removals of copies that the hub holds because of o, a placement, a MemberCluster or a bundle. held
// is nil if there are none. confirmed is true if an annotation of o says that a user has confirmed these removals.
func Held(o metav1.Object) (held *hubv1.RemovalHeld, confirmed bool) {
	held = hubv1.RemovalHeldOf(o)
	return held, held != nil && o.GetAnnotations()[hubv1.ConfirmRemovalAnnotation] == held.ID
}

// Confirm returns a function that sets an annotation of the placement, MemberCluster or bundle. The annotation tells
// the hub that a user confirms the removals in held.
func Confirm(held *hubv1.RemovalHeld) func(annotations map[string]string) {
	return func(annotations map[string]string) { annotations[hubv1.ConfirmRemovalAnnotation] = held.ID }
}
