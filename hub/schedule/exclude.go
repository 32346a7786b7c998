package schedule

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// excludedBy returns all objects of the kinds that an override policy selects. It returns no objects if the policy has
// no rule that excludes clusters.
func (s *Scheduler) excludedBy(p hubv1.OverridePolicyObject) []key {
	if !overrides.Excludes(p) {
		return nil
	}
	var keys []key
	for gk := range s.wants.current() {
		if selectsKind(p, gk) {
			keys = append(keys, s.objects(gk, p.GetNamespace())...)
		}
	}
	return keys
}

// selectsKind reports whether a policy may select objects of a kind.
func selectsKind(p hubv1.OverridePolicyObject, gk schema.GroupKind) bool {
	return slices.ContainsFunc(p.OverrideSpec().ResourceSelectors, func(r hubv1.ResourceSelector) bool {
		return r.APIGroup == gk.Group && (r.Kind == gk.Kind || r.Kind == everyKind)
	})
}
