//go:build !race

package operators

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The minimum numbers of samples and of operators.
const (
	minSamples   = 40
	minOperators = 15
)

func TestSamplesAreWhatTheirDefinitionsAllow(t *testing.T) {
	definitions := Definitions(t)
	names, operators := map[string]bool{}, map[string]bool{}
	for _, s := range Samples(t) {
		operators[s.Operator] = true
		name := s.Operator + "/" + s.Name
		if names[name] {
			t.Errorf("two samples are called %q", name)
		}
		names[name] = true
		t.Run(name, func(t *testing.T) {
			check(t, s.Object, definitions)
		})
	}
	if len(names) < minSamples || len(operators) < minOperators {
		t.Errorf("%d samples of %d operators: want at least %d of %d", len(names), len(operators), minSamples, minOperators)
	}
	t.Logf("%d samples of %d operators: %v", len(names), len(operators), slices.Sorted(maps.Keys(operators)))
}

func TestSituationsAreWhatTheirDefinitionsAllow(t *testing.T) {
	definitions := Definitions(t)
	names := map[string]bool{}
	for _, s := range Situations(t) {
		name := s.Operator + "/" + s.Name
		if names[name] {
			t.Errorf("two situations are called %q", name)
		}
		names[name] = true
		for _, cluster := range s.Names() {
			t.Run(name+"/"+cluster, func(t *testing.T) { check(t, s.On(t, cluster), definitions) })
		}
	}
}

func check(t *testing.T, obj *unstructured.Unstructured, definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	gk := obj.GroupVersionKind().GroupKind()
	crd := definitions[gk]
	if crd == nil {
		t.Fatalf("no definition of %s", gk)
	}
	for _, fault := range faults(t, obj, crd) {
		t.Error(fault)
	}
}

// faults returns the violations of the definition, and the fields that the definition does not have.
func faults(t *testing.T, obj *unstructured.Unstructured, crd *apiextensionsv1.CustomResourceDefinition) (out []string) {
	t.Helper()
	internal := internalSchema(t, crd, obj.GroupVersionKind().Version)
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range validation.ValidateCustomResource(nil, obj.Object, validator) {
		out = append(out, err.Error())
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	unknown := pruning.PruneWithOptions(obj.DeepCopy().Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		out = append(out, fmt.Sprintf("the definition has no field %s", path))
	}
	return out
}

func internalSchema(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensions.JSONSchemaProps {
	t.Helper()
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		t.Fatalf("%s has no version %s", crd.Name, version)
	}
	var out apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, &out, nil); err != nil {
		t.Fatal(err)
	}
	return &out
}
