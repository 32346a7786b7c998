package view

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
)

func TestAnObjectIsRenderedAtTheVersionThatEachClusterGets(t *testing.T) {
	serving := func(name string, versions ...string) *hubv1.MemberCluster {
		c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.APIResources = []hubv1.ServedKind{{Group: "example.com", Kind: "Widget", Versions: versions}}
		return c
	}
	in := preview.RenderInput{
		Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v2", "kind": "Widget", "metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": map[string]any{"a": "b"},
		}},
		OtherVersions: []string{"v1"},
		Clusters:      []*hubv1.MemberCluster{serving("a", "v1"), serving("b", "v2", "v1"), serving("c", "v3"), {ObjectMeta: metav1.ObjectMeta{Name: "d"}}},
	}
	want := map[string]any{"a": "example.com/v1", "b": "example.com/v2", "c": "example.com/v2", "d": "example.com/v2"}
	for _, c := range Render(in).Clusters {
		if c.Error != "" || c.Manifest["apiVersion"] != want[c.Cluster] {
			t.Errorf("for %s: %v %s, want %s", c.Cluster, c.Manifest["apiVersion"], c.Error, want[c.Cluster])
		}
	}
	digests := Digests(in, &hubv1.BindingStatus{}, "uid", nil)
	if digests["a"] == digests["b"] || digests["b"] != digests["c"] {
		t.Errorf("digests %v, want the same for the same version alone", digests)
	}
	if in.Object.GetAPIVersion() != "example.com/v2" {
		t.Error("the hub object was changed")
	}
}
