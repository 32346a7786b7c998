package admission

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

const (
	// lookupWithin is the part of reviewWithin (the timeout of a review) for the search for what a policy names.
	lookupWithin = reviewWithin / 8
	// maxListed is the number of objects of which a warning may name some.
	maxListed = 100
)

// Lookup tells what a policy may name.
type Lookup interface {
	// Reads reports whether the hub may list and watch a resource in a namespace, or in all namespaces.
	Reads(ctx context.Context, resource schema.GroupVersionResource, namespace string) (bool, error)
	// Names returns the names of some objects of a kind in a namespace. found reports whether the named object exists.
	Names(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (names []string, found bool, err error)
}

// HubLookup is a Lookup with the hub's own rights. Reader reads without a cache.
type HubLookup struct {
	Client client.Client
	Reader client.Reader
}

var _ Lookup = HubLookup{}

// Reads implements Lookup.
func (l HubLookup) Reads(ctx context.Context, resource schema.GroupVersionResource, namespace string) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: namespace,
			},
		}}
		if err := l.Client.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking whether the hub may %s %s: %w", verb, resource.GroupResource(), err)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// Names implements Lookup.
func (l HubLookup) Names(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (names []string, found bool, err error) {
	one := &metav1.PartialObjectMetadata{}
	one.SetGroupVersionKind(kind)
	if err := l.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, one); !apierrors.IsNotFound(err) {
		return nil, err == nil, client.IgnoreNotFound(err)
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := l.Reader.List(ctx, &list, client.InNamespace(namespace), client.Limit(maxListed)); err != nil {
		return nil, false, fmt.Errorf("listing objects of kind %s: %w", kind.GroupKind(), err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, false, nil
}

// unmatched returns warnings about what a policy names and what does not exist: clusters, labels of clusters, kinds and
// objects. It also warns of kinds that the hub may not read. Such a policy is never refused, because the named things
// may come later. If a lookup fails, its warning is left out.
func (r *Reviewer) unmatched(ctx context.Context, policy client.Object) []string {
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	out := r.unmatchedClusters(ctx, policy)
	var unread []preview.AskedKind
	for _, a := range askedKinds(policy) {
		mapping, served, err := r.mapping(a.Kind)
		switch {
		case err != nil:
		case !served && r.options.Templates.StoredKinds().Has(a.Kind): // an object of a bundle, which the hub need not serve
		case !served:
			out = append(out, a.Field+": "+notServed(a.Kind, r.options.Client.Scheme()))
		case r.cannotRead(ctx, policy, mapping):
			if _, places := policy.(hubv1.PlacementObject); places {
				unread = append(unread, a)
			}
		default:
			out = append(out, r.missingObjects(ctx, policy, mapping)...)
		}
	}
	if len(unread) > 0 {
		out = append(out, preview.NotFederated(unread, func(gk schema.GroupKind) string { name, _ := r.resource(gk); return name }))
	}
	return out
}

// askedKinds returns the kinds that a policy names, each once.
func askedKinds(policy client.Object) []preview.AskedKind {
	switch p := policy.(type) {
	case hubv1.PlacementObject:
		return preview.AskedKinds(p.PlacementSpec(), false)
	case hubv1.OverridePolicyObject:
		return preview.AskedKinds(&hubv1.PlacementSpec{ResourceSelectors: p.OverrideSpec().ResourceSelectors, HubExecution: hubv1.HubExecutionAllowed}, false)
	}
	return nil
}

func (r *Reviewer) unmatchedClusters(ctx context.Context, policy client.Object) []string {
	var list hubv1.MemberClusterList
	if r.options.Client.List(ctx, &list, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	clusters := make([]*hubv1.MemberCluster, 0, len(list.Items))
	for i := range list.Items {
		clusters = append(clusters, &list.Items[i])
	}
	switch p := policy.(type) {
	case hubv1.PlacementObject:
		return preview.UnmatchedPlacement(p, clusters, "no cluster")
	case hubv1.OverridePolicyObject:
		return preview.UnmatchedOverrides(p, clusters, "no cluster")
	}
	return nil
}

// notServed returns the text about a kind that the hub does not serve. It names similar kinds of Kubernetes.
func notServed(gk schema.GroupKind, known *runtime.Scheme) string {
	text := "the hub does not serve the kind " + gk.String()
	var kinds []string
	for gvk := range known.AllKnownTypes() {
		if gvk.Group == gk.Group && gvk.Kind != gk.Kind && !strings.HasSuffix(gvk.Kind, "List") && !strings.HasSuffix(gvk.Kind, "Options") {
			kinds = append(kinds, gvk.Kind)
		}
	}
	similar := view.Similar(gk.Kind, kinds)
	switch {
	case len(similar) > 0:
		return text + "; did you mean " + strings.Join(similar, " or ") + "?"
	case gk.Group == "":
		return text + ": set its apiGroup, or correct its name"
	}
	return text + ": install its CustomResourceDefinition on the hub"
}

// cannotRead reports whether the hub is known to lack the right to read a kind for a policy. A kind that the hub
// already watches is readable for a cluster-scoped policy, also if it may be read in some namespaces only.
func (r *Reviewer) cannotRead(ctx context.Context, policy client.Object, mapping *meta.RESTMapping) bool {
	if r.options.Lookup == nil {
		return false
	}
	if state, watched := r.options.Templates.State(mapping.GroupVersionKind.GroupKind()); policy.GetNamespace() == "" && watched && state.Synced {
		return false
	}
	reads, err := r.options.Lookup.Reads(ctx, mapping.Resource, policy.GetNamespace())
	return err == nil && !reads
}

// missingObjects returns warnings about objects of a kind that the policy names and that the hub does not have. The
// objects of a cluster-scoped policy may be in any namespace, so that only cluster-scoped ones are looked up for it.
// Names of Secrets are not listed.
func (r *Reviewer) missingObjects(ctx context.Context, policy client.Object, mapping *meta.RESTMapping) (out []string) {
	namespace, gk := policy.GetNamespace(), mapping.GroupVersionKind.GroupKind()
	if r.options.Lookup == nil || (mapping.Scope.Name() == meta.RESTScopeNameNamespace) != (namespace != "") {
		return nil
	}
	selectors, _ := selectionOf(policy)
	for i, s := range selectors {
		if s.Name == "" || s.APIGroup != gk.Group || s.Kind != gk.Kind {
			continue
		}
		if _, known := r.options.Templates.Head(hubv1.ObjectIdentity{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: s.Name}); known {
			continue // of a bundle, too
		}
		names, found, err := r.options.Lookup.Names(ctx, mapping.GroupVersionKind, namespace, s.Name)
		if err != nil || found {
			continue
		}
		text := fmt.Sprintf("resourceSelectors[%d]: there is no %s %s", i, gk, s.Name)
		if namespace != "" {
			text += " in namespace " + namespace
		}
		if !hubv1.IsSecret(gk) {
			text += ": " + preview.ThereAreLike(s.Name, names)
		}
		out = append(out, text)
	}
	return out
}
