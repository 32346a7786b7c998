package admission

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundle"
)

const whyImpersonate = "the hub stores the objects of the bundle with the rights of this ServiceAccount"

// reviewBundle refuses a bundle whose author may not use its ServiceAccount, or whose manifests are invalid. It does not
// read manifests in ConfigMaps: they may change later, and the condition Stored describes them.
func (r *Reviewer) reviewBundle(ctx context.Context, b hubv1.BundleObject, who author) error {
	account := need{why: whyImpersonate, attributes: authorizationv1.ResourceAttributes{
		Namespace: b.GetNamespace(), Verb: "impersonate", Resource: "serviceaccounts", Name: b.BundleSpec().ServiceAccountName,
	}}
	if b.GetNamespace() == "" {
		account.attributes.Namespace = hubv1.SystemNamespace
	}
	if err := r.demand(ctx, who, []need{account}); err != nil {
		return err
	}
	if len(b.BundleSpec().ConfigMaps) > 0 && len(b.BundleSpec().Manifests) == 0 {
		return nil
	}
	_, err := bundle.Read(bundle.Input{
		Namespace: b.GetNamespace(), Manifests: b.BundleSpec().Manifests,
		Namespaced: func(gk schema.GroupKind) (namespaced, known bool) {
			mapping, served, err := r.mapping(gk)
			if err != nil || !served {
				return false, false
			}
			return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
		},
	})
	if err != nil {
		return &refusal{text: err.Error()}
	}
	return nil
}
