package inputs

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
)

// DefinitionKind is the kind of CustomResourceDefinitions.
var DefinitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// Definition reads the hub's CustomResourceDefinition of a kind. It returns nil for a built-in kind.
func Definition(ctx context.Context, c client.Client, kind schema.GroupKind) (*apiextensionsv1.CustomResourceDefinition, error) {
	mapping, err := c.RESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, fmt.Errorf("finding the kind %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(DefinitionKind)
	if err := c.Get(ctx, client.ObjectKey{Name: mapping.Resource.GroupResource().String()}, u); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return DefinitionOf(u)
}

// DefinitionOf converts a CustomResourceDefinition.
func DefinitionOf(u *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", u.GetName(), err)
	}
	return d, nil
}

// ScalePath returns the path of the replicas in the kind's scale subresource. The result is empty if the kind has no
// scale subresource. d may be nil.
func ScalePath(d *apiextensionsv1.CustomResourceDefinition) string {
	if d == nil {
		return ""
	}
	for _, v := range d.Spec.Versions {
		if v.Served && v.Subresources != nil && v.Subresources.Scale != nil {
			return v.Subresources.Scale.SpecReplicasPath
		}
	}
	return ""
}

// OtherVersions returns the versions at which clusters may get an object, besides the version at which the hub reads
// it. OtherVersions reads the definition only if a cluster does not serve the hub's version. An object of a bundle has
// no other versions.
func OtherVersions(ctx context.Context, c client.Client, object *unstructured.Unstructured, clusters []*hubv1.MemberCluster) ([]string, error) {
	gvk := object.GroupVersionKind()
	if hubv1.BundleOf(object) != nil || !NeedsVersions(gvk, clusters) {
		return nil, nil
	}
	d, err := Definition(ctx, c, gvk.GroupKind())
	return OthersOf(d, gvk.Version), err
}

// OthersOf returns the other versions of d at which clusters may get an object that the hub reads at the given version.
// If d is nil, the result is nil.
func OthersOf(d *apiextensionsv1.CustomResourceDefinition, version string) []string {
	if d == nil {
		return nil
	}
	return crd.Others(d, version)
}

// NeedsVersions reports whether a cluster serves the kind, but not at the version of gvk.
func NeedsVersions(gvk schema.GroupVersionKind, clusters []*hubv1.MemberCluster) bool {
	return slices.ContainsFunc(clusters, func(m *hubv1.MemberCluster) bool {
		served := m.ServedVersions(gvk.GroupKind())
		return len(served) > 0 && !slices.Contains(served, gvk.Version)
	})
}
