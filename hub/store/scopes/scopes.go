// Package scopes lists a namespaced kind and its cluster-scoped counterpart together, the namespaced objects first. It
// also reads the policies and clusters that affect the objects of a namespace, and whether the hub runs workloads.
// Objects that are read from a cache with client.UnsafeDisableDeepCopy are shared, and the caller must not change them.
// Last returns the object of any informer event.
package scopes

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Bindings lists the bindings of a namespace. For an empty namespace, it lists all bindings.
func Bindings(ctx context.Context, r client.Reader, namespace string, options ...client.ListOption) ([]hubv1.BindingObject, error) {
	var here hubv1.ResourceBindingList
	if err := r.List(ctx, &here, in(namespace, options)...); err != nil {
		return nil, fmt.Errorf("listing ResourceBindings: %w", err)
	}
	out := add(nil, here.Items, func(b *hubv1.ResourceBinding) hubv1.BindingObject { return b })
	if namespace != "" {
		return out, nil
	}
	var everywhere hubv1.ClusterResourceBindingList
	if err := r.List(ctx, &everywhere, options...); err != nil {
		return nil, fmt.Errorf("listing ClusterResourceBindings: %w", err)
	}
	return add(out, everywhere.Items, func(b *hubv1.ClusterResourceBinding) hubv1.BindingObject { return b }), nil
}

// IndexBindings adds a field index of bindings to a cache. values returns the values of a binding in the index.
func IndexBindings(indexer client.FieldIndexer, name string, values func(hubv1.BindingObject) []string) error {
	for plural, kind := range map[string]client.Object{"ResourceBindings": &hubv1.ResourceBinding{}, "ClusterResourceBindings": &hubv1.ClusterResourceBinding{}} {
		// The index lives as long as the process. Therefore its context has no deadline.
		err := indexer.IndexField(context.Background(), kind, name, func(o client.Object) []string { return values(o.(hubv1.BindingObject)) })
		if err != nil {
			return fmt.Errorf("adding the cache index %s for %s: %w", name, plural, err)
		}
	}
	return nil
}

// TargetIndex is the name of the field index of bindings by the clusters in spec.clusters.
const TargetIndex = "spec.clusters.name"

// IndexTargets adds the field index TargetIndex to a cache.
func IndexTargets(indexer client.FieldIndexer) error {
	return IndexBindings(indexer, TargetIndex, func(b hubv1.BindingObject) []string {
		names := make([]string, 0, len(b.BindingSpec().Clusters))
		for _, target := range b.BindingSpec().Clusters {
			names = append(names, target.Name)
		}
		return names
	})
}

// Placements lists all placements.
func Placements(ctx context.Context, r client.Reader, options ...client.ListOption) ([]hubv1.PlacementObject, error) {
	var here hubv1.PlacementList
	if err := r.List(ctx, &here, options...); err != nil {
		return nil, fmt.Errorf("listing Placements: %w", err)
	}
	return clusterPlacements(ctx, r, add(nil, here.Items, func(p *hubv1.Placement) hubv1.PlacementObject { return p }), options)
}

// PlacementsFor lists the placements that may select objects of a namespace. With an empty namespace, it lists the
// ClusterPlacements, because only they may select cluster-scoped objects.
func PlacementsFor(ctx context.Context, r client.Reader, namespace string, options ...client.ListOption) ([]hubv1.PlacementObject, error) {
	if namespace == "" {
		return clusterPlacements(ctx, r, nil, options)
	}
	var here hubv1.PlacementList
	if err := r.List(ctx, &here, in(namespace, options)...); err != nil {
		return nil, fmt.Errorf("listing Placements in namespace %q: %w", namespace, err)
	}
	return clusterPlacements(ctx, r, add(nil, here.Items, func(p *hubv1.Placement) hubv1.PlacementObject { return p }), options)
}

func clusterPlacements(ctx context.Context, r client.Reader, out []hubv1.PlacementObject, options []client.ListOption) ([]hubv1.PlacementObject, error) {
	var everywhere hubv1.ClusterPlacementList
	if err := r.List(ctx, &everywhere, options...); err != nil {
		return nil, fmt.Errorf("listing ClusterPlacements: %w", err)
	}
	return add(out, everywhere.Items, func(p *hubv1.ClusterPlacement) hubv1.PlacementObject { return p }), nil
}

// Bundles lists all bundles.
func Bundles(ctx context.Context, r client.Reader, options ...client.ListOption) ([]hubv1.BundleObject, error) {
	var here hubv1.BundleList
	if err := r.List(ctx, &here, options...); err != nil {
		return nil, fmt.Errorf("listing Bundles: %w", err)
	}
	var everywhere hubv1.ClusterBundleList
	if err := r.List(ctx, &everywhere, options...); err != nil {
		return nil, fmt.Errorf("listing ClusterBundles: %w", err)
	}
	var operators hubv1.FederatedOperatorList
	if err := r.List(ctx, &operators, options...); err != nil {
		return nil, fmt.Errorf("listing FederatedOperators: %w", err)
	}
	out := add(nil, here.Items, func(b *hubv1.Bundle) hubv1.BundleObject { return b })
	out = add(out, everywhere.Items, func(b *hubv1.ClusterBundle) hubv1.BundleObject { return b })
	return add(out, operators.Items, func(o *hubv1.FederatedOperator) hubv1.BundleObject { return o }), nil
}

// OverridePolicies lists all override policies.
func OverridePolicies(ctx context.Context, r client.Reader, options ...client.ListOption) ([]hubv1.OverridePolicyObject, error) {
	var here hubv1.OverridePolicyList
	if err := r.List(ctx, &here, options...); err != nil {
		return nil, fmt.Errorf("listing OverridePolicies: %w", err)
	}
	return clusterOverridePolicies(ctx, r, add(nil, here.Items, func(p *hubv1.OverridePolicy) hubv1.OverridePolicyObject { return p }), options)
}

// OverridePoliciesFor lists the override policies that may select objects of a namespace. With an empty namespace, it
// lists the ClusterOverridePolicies, because only they may select cluster-scoped objects.
func OverridePoliciesFor(ctx context.Context, r client.Reader, namespace string, options ...client.ListOption) ([]hubv1.OverridePolicyObject, error) {
	if namespace == "" {
		return clusterOverridePolicies(ctx, r, nil, options)
	}
	var here hubv1.OverridePolicyList
	if err := r.List(ctx, &here, in(namespace, options)...); err != nil {
		return nil, fmt.Errorf("listing OverridePolicies in namespace %q: %w", namespace, err)
	}
	return clusterOverridePolicies(ctx, r, add(nil, here.Items, func(p *hubv1.OverridePolicy) hubv1.OverridePolicyObject { return p }), options)
}

func clusterOverridePolicies(ctx context.Context, r client.Reader, out []hubv1.OverridePolicyObject, options []client.ListOption) ([]hubv1.OverridePolicyObject, error) {
	var everywhere hubv1.ClusterOverridePolicyList
	if err := r.List(ctx, &everywhere, options...); err != nil {
		return nil, fmt.Errorf("listing ClusterOverridePolicies: %w", err)
	}
	return add(out, everywhere.Items, func(p *hubv1.ClusterOverridePolicy) hubv1.OverridePolicyObject { return p }), nil
}

// in adds a namespace to a copy of the options.
func in(namespace string, options []client.ListOption) []client.ListOption {
	return append(options[:len(options):len(options)], client.InNamespace(namespace))
}

// add appends the items of a list, converted to the common interface of both kinds.
func add[T, O any](out []O, items []T, as func(*T) O) []O {
	for i := range items {
		out = append(out, as(&items[i]))
	}
	return out
}

// EachBinding reads the ResourceBindings of a namespace in pages of at most `part` bindings, and calls visit for each
// binding. An empty namespace means all namespaces.
func EachBinding(ctx context.Context, r client.Reader, namespace string, part int64, visit func(hubv1.BindingObject)) error {
	var list hubv1.ResourceBindingList
	for {
		if err := r.List(ctx, &list, client.InNamespace(namespace), client.Limit(part), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("listing ResourceBindings: %w", err)
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
	}
}

// EachClusterBinding reads the ClusterResourceBindings in pages of at most `part` bindings, and calls visit for each
// binding.
func EachClusterBinding(ctx context.Context, r client.Reader, part int64, visit func(hubv1.BindingObject)) error {
	var list hubv1.ClusterResourceBindingList
	for {
		if err := r.List(ctx, &list, client.Limit(part), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("listing ClusterResourceBindings: %w", err)
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
	}
}
