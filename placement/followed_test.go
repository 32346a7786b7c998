package placement

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestWhyAPlacementIsNotFollowed(t *testing.T) {
	t.Parallel()
	object := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}}
	named := func(name string, priority int32, s hubv1.ResourceSelector) hubv1.PlacementObject {
		s.APIGroup, s.Kind = "example.com", "Widget"
		return &hubv1.Placement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       hubv1.PlacementSpec{Priority: priority, ResourceSelectors: []hubv1.ResourceSelector{s}},
		}
	}
	every := hubv1.ResourceSelector{}
	fleet := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}, Spec: hubv1.ClusterPlacementSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		PlacementSpec:     hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "example.com", Kind: "Widget"}}},
	}}
	fixed := fleet.DeepCopy()
	fixed.Name, fixed.Spec.Enforced, fixed.Spec.Priority = "fixed", true, -5
	broken := named("broken", 0, hubv1.ResourceSelector{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like", Values: []string{"web"}}},
	}})
	tests := map[string]struct {
		winner, other hubv1.PlacementObject
		current       string
		want          string
	}{
		"a cluster-scoped one comes after a namespaced one": {named("a", 0, every), fleet, "", "a namespaced Placement comes first"},
		"an enforced one comes before a namespaced one": {
			fixed, named("a", 1000, every), "a", "ClusterPlacement fixed is enforced: it comes before every placement that is not enforced",
		},
		"an enforced one comes before a cluster-scoped one": {
			fixed, fleet, "", "ClusterPlacement fixed is enforced: it comes before every placement that is not enforced",
		},
		"a lower priority": {named("b", 5, every), named("a", -1, every), "", "its priority -1 is lower than 5"},
		"a wider selector": {named("b", 0, hubv1.ResourceSelector{Name: "web"}), named("a", 0, every), "", "its selector is wider"},
		"a later name":     {named("a", 0, every), named("b", 0, every), "", "at equal priority and selectors the name decides"},
		"one that does not preempt": {
			named("b", 0, every), named("a", 9, every), "b",
			"it comes first, but its preemption is not Always, so it takes over no object from another placement",
		},
		"the followed one cannot be read": {
			broken, named("a", 9, every), "broken",
			"the object stays with the placement that it follows, because the selectors of that placement are invalid",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var current *hubv1.PlacementReference
			if tc.current != "" {
				current = &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: tc.current}
			}
			choice, _ := Choose(object, []hubv1.PlacementObject{tc.other, tc.winner}, current)
			if choice.Winner != tc.winner {
				t.Fatalf("%v is followed", choice.Winner)
			}
			if got := WhyNotFollowed(object, tc.winner, tc.other); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
