package view

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// ScalePathOf returns the path of the replicas in the kind's scale subresource; empty if it has none.
func ScalePathOf(d *apiextensionsv1.CustomResourceDefinition) string {
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

// NeedsVersions reports whether a cluster serves the kind, but not at this version, so that the further versions of its
// definition count.
func NeedsVersions(gvk schema.GroupVersionKind, clusters []*hubv1.MemberCluster) bool {
	return slices.ContainsFunc(clusters, func(m *hubv1.MemberCluster) bool {
		served := m.ServedVersions(gvk.GroupKind())
		return len(served) > 0 && !slices.Contains(served, gvk.Version)
	})
}
