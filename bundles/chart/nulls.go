package chart

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hanse-dev/hanse/bundles/manifest"
)

// dropNulls removes fields that are null from the custom resources whose definitions are in the chart, unless the
// definition declares them as nullable. An API server does the same when a client creates an object, but it refuses
// such a field in server-side apply, with which Hanse writes. Templates make such fields from empty values.
func dropNulls(objects, definitions []*unstructured.Unstructured) {
	for _, definition := range definitions {
		gk, _, ok := manifest.DefinedKind(definition)
		if !ok {
			continue
		}
		for _, object := range objects {
			if object.GroupVersionKind().GroupKind() != gk {
				continue
			}
			if schema := schemaOf(definition, object.GroupVersionKind().Version); schema != nil {
				dropNullsIn(object.Object, schema)
			}
		}
	}
}

// schemaOf returns the schema of a version. It returns nil if the definition has no valid schema for it.
func schemaOf(definition *unstructured.Unstructured, version string) *structuralschema.Structural {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &crd); err != nil {
		return nil
	}
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 || crd.Spec.Versions[i].Schema == nil || crd.Spec.Versions[i].Schema.OpenAPIV3Schema == nil {
		return nil
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil
	}
	schema, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil
	}
	return schema
}

func dropNullsIn(value any, schema *structuralschema.Structural) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			of, declared := schema.Properties[key]
			if extra := schema.AdditionalProperties; !declared && extra != nil && extra.Structural != nil {
				of, declared = *extra.Structural, true
			}
			switch {
			case !declared:
			case child == nil && !of.Nullable:
				delete(v, key)
			default:
				dropNullsIn(child, &of)
			}
		}
	case []any:
		if schema.Items == nil {
			return
		}
		for _, item := range v {
			dropNullsIn(item, schema.Items)
		}
	}
}
