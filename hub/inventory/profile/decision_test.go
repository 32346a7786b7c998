package profile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func binding(p Placement, targets ...hubv1.BindingTarget) hubv1.BindingObject {
	b := &hubv1.ResourceBinding{}
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
	b.Spec.Clusters = targets
	return b
}

func on(state hubv1.TargetState, clusters ...string) (out []hubv1.BindingTarget) {
	for _, name := range clusters {
		out = append(out, hubv1.BindingTarget{Name: name, State: state})
	}
	return out
}

// chosen returns the clusters of each PlacementDecision, as text.
func chosen(placements []Placement, bindings ...hubv1.BindingObject) map[string]string {
	out := map[string]string{}
	for _, o := range Decisions("fleet", placements, bindings) {
		var names []string
		for _, d := range o.Object["decisions"].([]any) {
			names = append(names, d.(map[string]any)["clusterProfileRef"].(map[string]any)["name"].(string))
		}
		out[o.GetAnnotations()[PlacementAnnotation]+" "+o.GetLabels()[decisionIndexLabel]] = strings.Join(names, ",")
	}
	return out
}

func TestAPlacementHasTheClustersOfItsObjects(t *testing.T) {
	web, all, gone := Placement{"Placement", "shop", "web"}, Placement{"ClusterPlacement", "", "all"}, Placement{"Placement", "shop", "gone"}
	got := chosen([]Placement{web, all},
		binding(web, on(hubv1.TargetPresent, "eu", "cn")...),
		binding(web, append(on(hubv1.TargetPresent, "us"), on(hubv1.TargetAbsent, "ap")...)...),
		binding(gone, on(hubv1.TargetPresent, "eu")...),
		&hubv1.ResourceBinding{},
	)
	want := map[string]string{"Placement/shop/web 0": "cn,eu,us", "ClusterPlacement/all 0": "", "Placement/shop/gone 0": "eu"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManyClustersAreSeveralSlicesOfOneDecision(t *testing.T) {
	web := Placement{"Placement", "shop", "web"}
	var names []string
	for i := range 250 {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	objects := Decisions("fleet", nil, []hubv1.BindingObject{binding(web, on(hubv1.TargetPresent, names...)...)})
	keys, lengths := map[string]int{}, map[string]int{}
	for _, o := range objects {
		keys[o.GetLabels()[decisionKeyLabel]]++
		lengths[o.GetLabels()[decisionIndexLabel]] = len(o.Object["decisions"].([]any))
	}
	if diff := cmp.Diff(map[string]int{"0": 100, "1": 100, "2": 50}, lengths); diff != "" || len(keys) != 1 {
		t.Errorf("%v (-want +got):\n%s", keys, diff)
	}
}

func TestNamesOfPlacementsDoNotCollide(t *testing.T) {
	long := strings.Repeat("a", 252)
	placements := []Placement{
		{"Placement", "shop", "web"}, {"ClusterPlacement", "", "shop.web"}, {"Placement", "shop", long + "b"}, {"Placement", "shop", long + "c"},
	}
	objects := Decisions("fleet", placements, nil)
	if len(objects) != len(placements) {
		t.Errorf("%d objects", len(objects))
	}
	for name, o := range objects {
		if len(name) > 253 || len(o.GetLabels()[nameLabel]) > 63 {
			t.Errorf("%s has labels %v", name, o.GetLabels())
		}
	}
}
