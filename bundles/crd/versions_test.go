package crd

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// define returns a definition with two versions. read and other are the schemas below the spec of each version.
func define(t *testing.T, read, other string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for i, text := range []string{read, other} {
		var spec apiextensionsv1.JSONSchemaProps
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		status := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{[]string{"old", "new"}[i]: {Type: "string"}}}
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: []string{"v2", "v1"}[i], Served: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": status}},
			},
		})
	}
	return crd
}

func TestAVersionIsUsedUnlessTheHubWouldNotSeeOneOfItsFields(t *testing.T) {
	const text = `{type: string}`
	for name, tc := range map[string]struct {
		read, other string
		want        bool
	}{
		"the same fields":                           {`{properties: {a: {type: string}}}`, `{properties: {a: {type: string}}}`, true},
		"a field more in the version that is read":  {`{properties: {a: {type: string}, b: {type: string}}}`, `{properties: {a: {type: string}}}`, true},
		"a field less in the version that is read":  {`{properties: {a: {type: string}}}`, `{properties: {a: {type: string}, b: {type: string}}}`, false},
		"a field less below a field":                {`{properties: {a: {properties: {b: {}}}}}`, `{properties: {a: {properties: {b: {}, c: {}}}}}`, false},
		"a field less in an item":                   {`{properties: {a: {items: {properties: {b: {}}}}}}`, `{properties: {a: {items: {properties: {c: {}}}}}}`, false},
		"the same fields in an item":                {`{properties: {a: {items: {properties: {b: {}}}}}}`, `{properties: {a: {items: {properties: {b: {}}}}}}`, true},
		"no items any more":                         {`{properties: {a: {type: array}}}`, `{properties: {a: {items: {properties: {b: {}}}}}}`, false},
		"unknown fields that are kept":              {`{x-kubernetes-preserve-unknown-fields: true}`, `{properties: {a: {items: {properties: {b: {}}}}}}`, true},
		"unknown fields that are no longer kept":    {`{properties: {a: {type: string}}}`, `{x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}`, false},
		"the values of a map":                       {`{additionalProperties: {properties: {b: {}}}}`, `{additionalProperties: {properties: {b: {}}}}`, true},
		"a field less in the values of a map":       {`{additionalProperties: {properties: {b: {}}}}`, `{additionalProperties: {properties: {c: {}}}}`, false},
		"a map that became fields":                  {`{properties: {a: {type: string}}}`, `{additionalProperties: {type: string}}`, false},
		"fields that became a map":                  {`{additionalProperties: {type: string}}`, `{properties: {a: {type: string}}}`, true},
		"a map of unknown values":                   {`{additionalProperties: true}`, `{additionalProperties: {properties: {b: {}}}}`, true},
		"an object whose metadata is no longer one": {`{properties: {a: {type: object}}}`, `{properties: {a: {type: object, x-kubernetes-embedded-resource: true}}}`, false},
		"a text as before":                          {text, text, true},
	} {
		crd := define(t, tc.read, tc.other)
		if got := slices.Contains(Others(crd, "v2"), "v1"); got != tc.want {
			t.Errorf("%s: used is %t, want %t", name, got, tc.want)
		}
	}
}

func TestOtherVersionsAreTheServedOnesTheNewestFirst(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for _, v := range []struct {
		name   string
		served bool
	}{{"v1beta1", true}, {"v2", true}, {"v3", false}, {"v10", true}, {"v1", true}, {"v11alpha1", true}} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v.name, Served: v.served})
	}
	if got, want := Others(crd, "v2"), []string{"v10", "v1", "v1beta1", "v11alpha1"}; !slices.Equal(got, want) {
		t.Errorf("others are %v, want %v", got, want)
	}
	if got := Preferred(crd); got != "v10" {
		t.Errorf("preferred is %s, want v10", got)
	}
	if got := Others(crd, "v9"); got != nil {
		t.Errorf("an object that is read at no version can be sent at %v", got)
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	if got := Others(crd, "v2"); got != nil {
		t.Errorf("with a webhook others are %v, want none", got)
	}
	crd.Spec.Conversion.Strategy = apiextensionsv1.NoneConverter
	if got := Others(crd, "v2"); len(got) != 4 {
		t.Errorf("without a webhook others are %v, want four", got)
	}
}
