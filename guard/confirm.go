package guard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Held returns the removals that the hub holds for a placement or a MemberCluster, and whether a user has confirmed
// them. It returns nil if the hub holds no removals for the object.
func Held(o metav1.Object) (held *hubv1.RemovalHeld, confirmed bool) {
	held = hubv1.RemovalHeldOf(o)
	return held, held != nil && o.GetAnnotations()[hubv1.ConfirmRemovalAnnotation] == held.ID
}

// Confirm returns a function that changes the annotations of a placement or a MemberCluster. The change tells the hub
// that the user confirms the held removals.
func Confirm(held *hubv1.RemovalHeld) func(annotations map[string]string) {
	return func(annotations map[string]string) { annotations[hubv1.ConfirmRemovalAnnotation] = held.ID }
}
