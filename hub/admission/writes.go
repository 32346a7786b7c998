package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
)

// write is a kind of objects that a policy can cause the hub to write to members. A name limits it to one object.
type write struct {
	kind schema.GroupKind
	name string
	why  string
	// ofPods is true for an object that a pod template names, such as a ConfigMap. On the hub, a user who creates the pod
	// template also lets the pods use the object without a right to write it.
	ofPods bool
}

// writesOf returns the kinds of objects that a policy can cause the hub to write. The author of the policy needs the
// rights to write them all. A new field of a policy that causes writes of other kinds needs a case here.
//
// It returns none for a bundle: the hub checks the rights of the bundle's ServiceAccount on each object.
func writesOf(policy client.Object) []write {
	var out []write
	add := func(w write) {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	selected := func(selectors []hubv1.ResourceSelector) {
		for _, s := range selectors {
			add(write{kind: schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}, name: s.Name, why: whySelected})
		}
	}
	switch p := policy.(type) {
	case hubv1.PlacementObject:
		selected(p.PlacementSpec().ResourceSelectors)
		for _, rule := range p.PlacementSpec().References {
			for _, kind := range decide.ReferencedKinds([]hubv1.ReferenceRule{rule}) {
				add(write{kind: kind, why: whyReferenced, ofPods: rule.Kind == ""})
			}
		}
	case hubv1.OverridePolicyObject:
		selected(p.OverrideSpec().ResourceSelectors)
	}
	return out
}

// checkSizes refuses a policy with longer lists than its definition permits. The API server refuses such a policy
// before the review, but another client may request a review, too.
func checkSizes(policy client.Object) error {
	check := func(field string, n, limit int) error {
		if n > limit {
			return &refusal{text: fmt.Sprintf("%s: must have at most %d items", field, limit)}
		}
		return nil
	}
	switch p := policy.(type) {
	case hubv1.PlacementObject:
		spec := p.PlacementSpec()
		return cmp.Or(check("spec.clusters.names", len(spec.Clusters.Names), maxNames), check("spec.references", len(spec.References), maxReferences),
			check("spec.resourceSelectors", len(spec.ResourceSelectors), maxSelectors))
	case hubv1.OverridePolicyObject:
		return check("spec.resourceSelectors", len(p.OverrideSpec().ResourceSelectors), maxSelectors)
	}
	return nil
}

// toWrite returns the rights that the author of a policy needs for the objects that the policy can cause the hub to
// write.
func (r *Reviewer) toWrite(policy client.Object) ([]access.Need, error) {
	if err := checkSizes(policy); err != nil {
		return nil, err
	}
	var out []access.Need
	for _, w := range writesOf(policy) {
		resource, err := r.resource(w.kind)
		if err != nil {
			return nil, err
		}
		needed := access.ToWrite(w.kind, resource, policy.GetNamespace(), w.name)
		if w.ofPods {
			needed = needed[:1] // get
		}
		for _, right := range needed {
			n := access.Need{Right: right, Why: w.why}
			if right.Verb == "escalate" || right.Verb == "bind" {
				n.Why = whyEscalate
			}
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out, nil
}

// accounts returns the rights to impersonate the ServiceAccounts of the bundles that a placement selects now. The
// objects of these bundles are written with the rights of the accounts. The author of a bundle that comes later needs
// the same right.
func (r *Reviewer) accounts(ctx context.Context, p hubv1.PlacementObject) ([]access.Need, error) {
	if !slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, func(s hubv1.ResourceSelector) bool { return s.APIGroup == hubv1.GroupVersion.Group }) {
		return nil, nil
	}
	bundles, err := scopes.Bundles(ctx, r.options.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var out []access.Need
	for _, b := range bundles {
		labels, err := r.namespaceLabels(ctx, b.GetNamespace())
		if err != nil {
			return nil, err
		}
		o := hubv1.SelectableObject{ObjectIdentity: hubv1.ReferenceTo(b).Identity(), Labels: b.GetLabels(), NamespaceLabels: labels}
		inScope, err := hubv1.InScope(p.GetNamespace(), p.SelectedNamespaces(), o)
		if err != nil {
			return nil, &refusal{text: "spec." + err.Error()}
		}
		specificity, err := hubv1.Match(p.PlacementSpec().ResourceSelectors, o)
		if err != nil {
			return nil, &refusal{text: "spec." + err.Error()}
		}
		if n := impersonating(b, whyBundle); inScope && specificity != hubv1.MatchesNot && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// impersonating returns the right to impersonate the ServiceAccount of a bundle.
func impersonating(b hubv1.BundleObject, why string) access.Need {
	namespace := b.GetNamespace()
	if namespace == "" {
		namespace = hubv1.SystemNamespace
	}
	return access.Need{Why: why, Right: authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "impersonate", Resource: "serviceaccounts", Name: b.BundleSpec().ServiceAccountName,
	}}
}

// resource returns the resource of a kind. If the hub does not serve the kind, or if the kind is "*" and stands for
// every kind of the group, it returns "*" for all resources of the group.
func (r *Reviewer) resource(gk schema.GroupKind) (string, error) {
	if gk.Kind == "*" {
		return "*", nil
	}
	mapping, served, err := r.mapping(gk)
	if err != nil || !served {
		return "*", err
	}
	return mapping.Resource.Resource, nil
}
