package schedule

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
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

// maySelect reports whether one of the policies may select an object, by its kind and namespace.
func maySelect(policies []hubv1.OverridePolicyObject, id key) bool {
	return slices.ContainsFunc(policies, func(p hubv1.OverridePolicyObject) bool {
		return (p.GetNamespace() == "" || p.GetNamespace() == id.Namespace) && selectsKind(p, id.GroupKind())
	})
}

// selectsKind reports whether a policy may select objects of a kind.
func selectsKind(p hubv1.OverridePolicyObject, gk schema.GroupKind) bool {
	return slices.ContainsFunc(p.OverrideSpec().ResourceSelectors, func(r hubv1.ResourceSelector) bool {
		return r.APIGroup == gk.Group && (r.Kind == gk.Kind || r.Kind == everyKind)
	})
}

// excludingByFacts returns the override policies that exclude clusters by their annotations, Kubernetes version,
// capacity or operators.
func (s *Scheduler) excludingByFacts(ctx context.Context) []hubv1.OverridePolicyObject {
	policies, err := scopes.OverridePolicies(ctx, s.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Waking objects")
		return nil
	}
	return slices.DeleteFunc(policies, func(p hubv1.OverridePolicyObject) bool {
		return !slices.ContainsFunc(p.OverrideSpec().Rules, func(r hubv1.OverrideRule) bool { return r.Exclude && overrides.ReadsFacts(&r) })
	})
}
