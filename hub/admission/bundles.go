package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

const whyImpersonate = "the hub stores the objects of the bundle with the rights of this ServiceAccount"

// reviewBundle refuses a bundle if its author may not use its ServiceAccount, or if its manifests are invalid. It does
// not read ConfigMaps with manifests or charts, because they may change later. The condition Stored reports errors in
// them. A warning names the objects that the change removes from the bundle.
func (r *Reviewer) reviewBundle(ctx context.Context, b hubv1.BundleObject, who author) ([]string, error) {
	if err := r.demand(ctx, who, []access.Need{impersonating(b, whyImpersonate)}); err != nil {
		return nil, err
	}
	o, isOperator := b.(*hubv1.FederatedOperator)
	fromConfigMaps := len(b.BundleSpec().ConfigMaps) > 0 || isOperator && o.Spec.Chart != nil
	if fromConfigMaps && len(b.BundleSpec().Manifests) == 0 {
		return nil, nil
	}
	objects, err := manifest.Read(manifest.Input{
		Namespace: b.GetNamespace(), Manifests: b.BundleSpec().Manifests,
		Namespaced: manifest.NamespacedOn(r.options.Mapper), Operator: isOperator, Partial: fromConfigMaps,
	})
	if errors.Is(err, manifest.ErrScope) {
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

// leaving returns a warning about the stored objects that the new bundle no longer has.
func (r *Reviewer) leaving(b hubv1.BundleObject, objects []*unstructured.Unstructured) []string {
	stay := map[hubv1.ObjectIdentity]bool{}
	for _, o := range objects {
		stay[hubv1.IdentityOf(o)] = true
	}
	var leave []string
	for _, id := range r.options.Templates.StoredOf(hubv1.ReferenceTo(b)) {
		if !stay[id] {
			leave = append(leave, id.String())
		}
	}
	if len(leave) == 0 {
		return nil
	}
	slices.Sort(leave)
	return []string{"the change removes these objects from the bundle, and their copies from all clusters; a removal of many or of last copies waits for a confirmation: " + someOf(leave, ", ")}
}

// reviewRemoval refuses the deletion of an operator while clusters have objects of its kinds. After the deletion, no
// controller would reconcile these objects.
func (r *Reviewer) reviewRemoval(ctx context.Context, policy client.Object) error {
	o, ok := policy.(*hubv1.FederatedOperator)
	if !ok || o.Spec.Removal == hubv1.OperatorRemovalAllow || len(o.Status.Provides) == 0 {
		return nil
	}
	bindings, err := scopes.Bindings(ctx, r.options.Client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	var used []string
	for _, b := range bindings {
		id, of := hubv1.ObjectOf(b), b.BindingSpec().ObjectRef.Bundle
		if len(b.BindingSpec().Clusters) > 0 && (of == nil || *of != hubv1.ReferenceTo(o)) && slices.Contains(o.Status.Provides, id.GroupKind().String()) {
			used = append(used, id.String())
		}
	}
	if len(used) == 0 {
		return nil
	}
	slices.Sort(used)
	return &refusal{text: fmt.Sprintf("clusters have objects of the operator's kinds, and no operator would act on them any more: delete these objects first, or set spec.removal to Allow: %s",
		someOf(used, ", "))}
}
