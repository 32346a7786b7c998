//go:build !race

package crd_test

import (
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/hanse-dev/hanse/bundles/crd"
	"github.com/hanse-dev/hanse/test/operators"
)

// The definitions of operators use parts of schemas that small definitions lack. The test changes each definition. New
// descriptions of all fields must break no sample object. The removal of a field of the spec must break each sample
// object that sets the field.
func TestDefinitionsOfOperators(t *testing.T) {
	definitions := operators.Definitions(t)
	for _, sample := range operators.Samples(t) {
		gvk := sample.Object.GroupVersionKind()
		known := definitions[gvk.GroupKind()]
		i := slices.IndexFunc(known.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version })
		if i < 0 || !known.Spec.Versions[i].Served {
			continue
		}
		t.Run(sample.Operator+" "+sample.Name, func(t *testing.T) {
			in := crd.Input{Before: known, After: known.DeepCopy(), Objects: []crd.Object{{Content: sample.Object, Clusters: []string{"eu-1"}}}}
			schema := in.After.Spec.Versions[i].Schema.OpenAPIV3Schema
			undescribe(schema)
			report, err := crd.Check(t.Context(), in)
			if err != nil || report.BlockedTotal+report.WarningsTotal > 0 {
				t.Errorf("other descriptions: %v %v", report, err)
			}
			spec, _ := sample.Object.Object["spec"].(map[string]any)
			declared := schema.Properties["spec"]
			for _, name := range slices.Sorted(maps.Keys(spec)) {
				field, ok := declared.Properties[name]
				if !ok {
					continue
				}
				delete(declared.Properties, name)
				report, err := crd.Check(t.Context(), in)
				if err != nil || !slices.ContainsFunc(report.Blocked, func(f crd.Finding) bool {
					return f.Rule == crd.RuleFieldRemoved && f.Path == "/spec/"+name && f.Object.Name == sample.Object.GetName()
				}) {
					t.Errorf("without /spec/%s: %v %v", name, report.Blocked, err)
				}
				declared.Properties[name] = field
			}
		})
	}
}

// undescribe removes the descriptions of a schema.
func undescribe(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = ""
	for name, below := range s.Properties {
		undescribe(&below)
		s.Properties[name] = below
	}
	if s.Items != nil && s.Items.Schema != nil {
		undescribe(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		undescribe(s.AdditionalProperties.Schema)
	}
}
