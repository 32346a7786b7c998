package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNullFieldsOfCustomResourcesAreLeftOut(t *testing.T) {
	t.Parallel()
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            nullable: true
            properties:
              size: {type: integer}
              level: {type: integer, default: 3}
              note: {type: string, nullable: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              parts: {type: array, items: {type: object, properties: {size: {type: integer}}}}
              named: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}}}}
`
	const object = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		spec, definition string
		want             any
	}{
		"a field that may not be null":     {"{size: null, level: 2}", crd, map[string]any{"level": int64(2)}},
		"a field with a default":           {"{level: null}", crd, map[string]any{}},
		"a nullable field stays":           {"{note: null}", crd, map[string]any{"note": nil}},
		"a nullable map stays":             {"null", crd, nil},
		"an undeclared field stays":        {"{other: null, free: {a: null}}", crd, map[string]any{"other": nil, "free": map[string]any{"a": nil}}},
		"a field of an item of a list":     {"{parts: [{size: null}, {size: 1}]}", crd, map[string]any{"parts": []any{map[string]any{}, map[string]any{"size": int64(1)}}}},
		"an item of a list stays":          {"{parts: [null]}", crd, map[string]any{"parts": []any{nil}}},
		"a value of a map with any keys":   {"{named: {a: null, b: {size: null}}}", crd, map[string]any{"named": map[string]any{"b": map[string]any{}}}},
		"without the version, all stay":    {"{size: null}", strings.Replace(crd, "name: v1", "name: v2", 1), map[string]any{"size": nil}},
		"without a definition, all stay":   {"{size: null}", "", map[string]any{"size": nil}},
		"without a valid schema, all stay": {"{size: null}", strings.Replace(crd, "{type: string, nullable: true}", "{$ref: other}", 1), map[string]any{"size": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := Render(t.Context(), input(with(files{"templates/crd.yaml": c.definition, "templates/a.yaml": object + "spec: " + c.spec + "\n"})))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rendered.Objects[0].Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
