package placement

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheEnforcedPlacementsThatMayOutrankOne(t *testing.T) {
	inNamespacesOf := func(key, value string) edit {
		return func(p hubv1.PlacementObject) {
			p.(*hubv1.ClusterPlacement).Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		}
	}
	other := byName()
	other.Name = "other"
	tests := map[string]struct {
		tenants hubv1.PlacementObject
		all     []hubv1.PlacementObject
		want    []string
	}{
		"one of the same kind, and none that is not enforced": {
			tenants: namespaced("a", priority(1000)), all: []hubv1.PlacementObject{clusterWide("b", enforced), clusterWide("c"), namespaced("d")}, want: []string{"b"},
		},
		"one that selects every kind of the group": {
			tenants: namespaced("a"), all: []hubv1.PlacementObject{clusterWide("b", enforced, selecting(hubv1.ResourceSelector{APIGroup: web.Group, Kind: "*"}))}, want: []string{"b"},
		},
		"one by labels, whatever the objects have now": {
			tenants: namespaced("a", selecting(byName())), all: []hubv1.PlacementObject{clusterWide("b", enforced, selecting(byLabels("NotIn")))}, want: []string{"b"},
		},
		"none of another kind": {
			tenants: namespaced("a"), all: []hubv1.PlacementObject{clusterWide("b", enforced, selecting(hubv1.ResourceSelector{Kind: "Secret"}))},
		},
		"none for an object of another name": {
			tenants: namespaced("a", selecting(byName())), all: []hubv1.PlacementObject{clusterWide("b", enforced, selecting(other))},
		},
		"none for other namespaces": {
			tenants: namespaced("a"), all: []hubv1.PlacementObject{clusterWide("b", enforced, inNamespacesOf("env", "test")), clusterWide("c", enforced, inNamespacesOf("env", "prod"))},
			want: []string{"c"},
		},
		"none that is being deleted": {
			tenants: namespaced("a"), all: []hubv1.PlacementObject{clusterWide("b", enforced, deleting)},
		},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			var got []string
			for _, p := range OutrankedBy(tc.tenants, web.NamespaceLabels, tc.all) {
				got = append(got, p.GetName())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
