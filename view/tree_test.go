package view

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/wire"
)

// forest has the objects of the hub, and the answers of members.
type forest struct {
	Bindings []hubv1.ResourceBinding          `json:"bindings"`
	Children map[string][]wire.ObjectChildren `json:"children"`
	Notes    []string                         `json:"notes"`
}

func TestTree(t *testing.T) {
	raw, err := os.ReadFile("testdata/tree/metrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var f forest
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		t.Fatal(err)
	}
	var bindings []hubv1.BindingObject
	for i := range f.Bindings {
		bindings = append(bindings, &f.Bindings[i])
	}
	tests := map[string]struct {
		clusters []string
		limit    int
	}{
		"whole":       {nil, 50},
		"one-cluster": {[]string{"cn-sha-1"}, 50},
		"one-object":  {nil, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tree := TreeOf(PlacementName{Kind: "Placement", Namespace: "monitoring", Name: "metrics"}, bindings, tc.clusters, tc.limit)
			for _, cluster := range tree.Clusters() {
				tree.Grow(cluster, f.Children[cluster])
			}
			tree.Notes = f.Notes
			var text bytes.Buffer
			tree.Write(&text, now)
			golden(t, "testdata/tree/"+name+".txt", text.String())
			if name == "whole" {
				documented(t, text.String())
			}
		})
	}
}

func TestATreeWithoutObjectsHasAnEmptyListInJSON(t *testing.T) {
	text, err := json.Marshal(TreeOf(PlacementName{Name: "none"}, nil, nil, 1))
	if err != nil || !bytes.Contains(text, []byte(`"objects":[]`)) {
		t.Errorf("got %s, %v", text, err)
	}
}
