package view

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// field has the objects of the hub and of one member.
type field struct {
	Object           map[string]any                `json:"object"`
	Binding          *hubv1.ResourceBinding        `json:"binding"`
	Cluster          *hubv1.MemberCluster          `json:"cluster"`
	Placements       []hubv1.Placement             `json:"placements"`
	Overrides        []hubv1.OverridePolicy        `json:"overrides"`
	ClusterOverrides []hubv1.ClusterOverridePolicy `json:"clusterOverrides"`
	OnMember         map[string]any                `json:"onMember"`
	Note             string                        `json:"note"`
}

func TestFieldsArePrintedAsInTestdata(t *testing.T) {
	cases, err := filepath.Glob("testdata/fields/*.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var f field
			if err := yaml.UnmarshalStrict(raw, &f); err != nil {
				t.Fatal(err)
			}
			in := decide.Input{
				Object:  decide.Object{Template: &unstructured.Unstructured{Object: integers(f.Object).(map[string]any)}},
				Binding: f.Binding, Facts: decide.Facts{Clusters: []*hubv1.MemberCluster{f.Cluster}},
			}
			for i := range f.Placements {
				in.Facts.Placements = append(in.Facts.Placements, &f.Placements[i])
			}
			var policies []hubv1.OverridePolicyObject
			for i := range f.Overrides {
				policies = append(policies, &f.Overrides[i])
			}
			for i := range f.ClusterOverrides {
				policies = append(policies, &f.ClusterOverrides[i])
			}
			var onMember *unstructured.Unstructured
			if f.OnMember != nil {
				onMember = &unstructured.Unstructured{Object: integers(f.OnMember).(map[string]any)}
			}
			fields := FieldsOf(in, policies, f.Cluster, onMember)
			fields.Note = f.Note
			var text bytes.Buffer
			fields.write(&text)
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", text.String())
			if f.OnMember != nil {
				documented(t, text.String())
			}
		})
	}
}
