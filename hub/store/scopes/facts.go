package scopes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Facts reads the policies and clusters that affect the objects of a namespace. With an empty namespace, it reads those
// that affect cluster-scoped objects. A missing namespace is not an error.
func Facts(ctx context.Context, r client.Reader, namespace string, options ...client.ListOption) (decide.Facts, error) {
	all, err := Clusters(ctx, r, options...)
	if err != nil {
		return decide.Facts{}, err
	}
	return FactsOf(ctx, r, all, namespace, options...)
}

// FactsOf returns the same as Facts with these clusters, which are sorted by name.
func FactsOf(ctx context.Context, r client.Reader, all []*hubv1.MemberCluster, namespace string, options ...client.ListOption) (decide.Facts, error) {
	f := decide.Facts{Clusters: all}
	var err error
	if f.Placements, err = PlacementsFor(ctx, r, namespace, options...); err != nil {
		return decide.Facts{}, err
	}
	if f.Overrides, err = OverridePoliciesFor(ctx, r, namespace, options...); err != nil {
		return decide.Facts{}, err
	}
	if namespace == "" {
		return f, nil
	}
	var ns corev1.Namespace
	err = r.Get(ctx, client.ObjectKey{Name: namespace}, &ns)
	if client.IgnoreNotFound(err) != nil {
		return decide.Facts{}, fmt.Errorf("reading namespace %q: %w", namespace, err)
	}
	f.NamespaceLabels, f.NamespaceRead = ns.Labels, err == nil
	return f, nil
}

// Clusters lists all MemberClusters, sorted by name.
func Clusters(ctx context.Context, r client.Reader, options ...client.ListOption) ([]*hubv1.MemberCluster, error) {
	var list hubv1.MemberClusterList
	if err := r.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	clusters := add(nil, list.Items, func(c *hubv1.MemberCluster) *hubv1.MemberCluster { return c })
	slices.SortFunc(clusters, func(a, b *hubv1.MemberCluster) int { return strings.Compare(a.Name, b.Name) })
	return clusters, nil
}
