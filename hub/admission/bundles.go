package admission

import (
	"context"
	"errors"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundle"
	"github.com/hanse-dev/hanse/hub/rights"
)

const whyImpersonate = "the hub stores the objects of the bundle with the rights of this ServiceAccount"

// reviewBundle refuses a bundle whose author may not use its ServiceAccount, or whose manifests are invalid. It does
// not read manifests in ConfigMaps: they may change later, and the condition Stored describes them. The warning names
// the objects that leave the bundle.
func (r *Reviewer) reviewBundle(ctx context.Context, b hubv1.BundleObject, who author) ([]string, error) {
	account := rights.Need{Why: whyImpersonate, Right: authorizationv1.ResourceAttributes{
		Namespace: b.GetNamespace(), Verb: "impersonate", Resource: "serviceaccounts", Name: b.BundleSpec().ServiceAccountName,
	}}
	if b.GetNamespace() == "" {
		account.Right.Namespace = hubv1.SystemNamespace
	}
	if err := r.demand(ctx, who, []rights.Need{account}); err != nil {
		return nil, err
	}
	fromConfigMaps := len(b.BundleSpec().ConfigMaps) > 0
	if fromConfigMaps && len(b.BundleSpec().Manifests) == 0 {
		return nil, nil
	}
	objects, err := bundle.Read(bundle.Input{
		Namespace: b.GetNamespace(), Manifests: b.BundleSpec().Manifests,
		Namespaced: bundle.NamespacedOn(r.options.Mapper),
	})
	if errors.Is(err, bundle.ErrScope) {
		return nil, err
	}
	if err != nil {
		return nil, &refusal{text: err.Error()}
	}
	if fromConfigMaps {
		return nil, nil
	}
	return r.leaving(b, objects), nil
}

// leaving returns a warning about the stored objects that are not among the new ones.
func (r *Reviewer) leaving(b hubv1.BundleObject, objects []*unstructured.Unstructured) []string {
	stay := map[hubv1.ObjectIdentity]bool{}
	for _, o := range objects {
		stay[hubv1.IdentityOf(o)] = true
	}
	key := client.ObjectKeyFromObject(b)
	var leave []string
	for _, id := range r.options.Templates.ListStored(func(of hubv1.ObjectBundle) bool { return of.Key() == key }) {
		if !stay[id] {
			leave = append(leave, id.String())
		}
	}
	if len(leave) == 0 {
		return nil
	}
	slices.Sort(leave)
	return []string{"these objects leave the bundle, and their copies leave all clusters: " + someOf(leave, ", ")}
}
