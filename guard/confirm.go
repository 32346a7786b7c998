package guard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Held returns the removals that the hub holds for a placement or a MemberCluster, and whether a user has confirmed
// them. It returns nil for an object without such removals.
func Held(o metav1.Object) (held *hubv1.RemovalHeld, confirmed bool) {
	held = hubv1.RemovalHeldOf(o)
	return held, held != nil && o.GetAnnotations()[hubv1.ConfirmRemovalAnnotation] == held.ID
}

// Confirm returns the request of a user to carry out held removals, as a change of the object's annotations.
func Confirm(held *hubv1.RemovalHeld) func(annotations map[string]string) {
	return func(annotations map[string]string) { annotations[hubv1.ConfirmRemovalAnnotation] = held.ID }
}
