package command

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	kindversions "github.com/hanse-dev/hanse/versions"
	"github.com/hanse-dev/hanse/view"
)

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// hubDefinition reads the hub's CustomResourceDefinition of a kind. It returns nil for a built-in kind.
func hubDefinition(ctx context.Context, c client.Client, kind schema.GroupKind) (*apiextensionsv1.CustomResourceDefinition, error) {
	mapping, err := c.RESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, fmt.Errorf("finding the kind %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(definitionKind)
	if err := c.Get(ctx, client.ObjectKey{Name: mapping.Resource.GroupResource().String()}, u); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return definitionOf(u)
}

func definitionOf(u *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", u.GetName(), err)
	}
	return d, nil
}

// scalePath returns the path of the replicas in the kind's scale subresource; empty if it has none.
func scalePath(ctx context.Context, c client.Client, kind schema.GroupKind) (string, error) {
	d, err := hubDefinition(ctx, c, kind)
	return view.ScalePathOf(d), err
}

// otherVersions returns the further API versions at which clusters may get an object that the hub reads at one version.
// It reads the definition only if a cluster does not serve that version. An object of a bundle has one version alone.
func otherVersions(ctx context.Context, c client.Client, object *unstructured.Unstructured, clusters []*hubv1.MemberCluster) ([]string, error) {
	gvk := object.GroupVersionKind()
	if hubv1.BundleOf(object) != nil || !view.NeedsVersions(gvk, clusters) {
		return nil, nil
	}
	d, err := hubDefinition(ctx, c, gvk.GroupKind())
	return othersOf(d, gvk.Version), err
}

func othersOf(d *apiextensionsv1.CustomResourceDefinition, version string) []string {
	if d == nil {
		return nil
	}
	return kindversions.Others(d, version)
}
