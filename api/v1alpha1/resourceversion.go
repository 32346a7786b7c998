package v1alpha1

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Older reports whether resourceVersion a is older than b. Both must belong to objects of the same kind on the same API
// server. If they cannot be compared, Older returns false.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
