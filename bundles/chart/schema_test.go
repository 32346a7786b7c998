package chart

import (
	"fmt"
	"strings"
	"testing"
)

// Each schema allows a text for image.tag, and has this rule in another place of the same document.
func TestSchemaMayReferToItself(t *testing.T) {
	const tag = `{"type": "string"}`
	schema := func(draft, tag, more string) string {
		return fmt.Sprintf(`{"$schema": %q, "properties": {"image": {"properties": {"tag": %s}}}, %s}`, draft, tag, more)
	}
	const (
		draft04 = "http://json-schema.org/draft-04/schema#"
		draft07 = "http://json-schema.org/draft-07/schema#"
		d2019   = "https://json-schema.org/draft/2019-09/schema"
		d2020   = "https://json-schema.org/draft/2020-12/schema"
		newest  = "http://json-schema.org/schema#"
	)
	for name, text := range map[string]string{
		"draft-04, definitions": schema(draft04, `{"$ref": "#/definitions/tag"}`, `"definitions": {"tag": `+tag+`}`),
		"draft-07, definitions": schema(draft07, `{"$ref": "#/definitions/tag"}`, `"definitions": {"tag": `+tag+`}`),
		"draft-07, all of the document is a reference, as in cert-manager": `{"$schema": "` + draft07 + `", "$ref": "#/$defs/helm-values",
			"$defs": {"helm-values": {"properties": {"image": {"$ref": "#/$defs/helm-values.image"}}},
			"helm-values.image": {"properties": {"tag": {"$ref": "#/$defs/helm-values.image.tag"}}}, "helm-values.image.tag": ` + tag + `}}`,
		"draft-07, an $id that is a name":               schema(draft07, `{"$ref": "#tag"}`, `"definitions": {"tag": {"$id": "#tag", "type": "string"}}`),
		"draft-07, the document has a URL":              schema(draft07, `{"$ref": "#/definitions/tag"}`, `"$id": "https://example.com/app.json", "definitions": {"tag": `+tag+`}`),
		"draft-07, a reference by the document's URL":   schema(draft07, `{"$ref": "https://example.com/app.json#/definitions/tag"}`, `"$id": "https://example.com/app.json", "definitions": {"tag": `+tag+`}`),
		"draft-07, a reference by the document's name":  schema(draft07, `{"$ref": "app.json#/definitions/tag"}`, `"$id": "app.json", "definitions": {"tag": `+tag+`}`),
		"draft-07, a reference by the name of the file": schema(draft07, `{"$ref": "values.schema.json#/definitions/tag"}`, `"definitions": {"tag": `+tag+`}`),
		"2019-09, $defs":                                 schema(d2019, `{"$ref": "#/$defs/tag"}`, `"$defs": {"tag": `+tag+`}`),
		"2019-09, an anchor":                             schema(d2019, `{"$ref": "#tag"}`, `"$defs": {"tag": {"$anchor": "tag", "type": "string"}}`),
		"2020-12, $defs":                                 schema(d2020, `{"$ref": "#/$defs/tag"}`, `"$defs": {"tag": `+tag+`}`),
		"2020-12, an anchor":                             schema(d2020, `{"$ref": "#tag"}`, `"$defs": {"tag": {"$anchor": "tag", "type": "string"}}`),
		"2020-12, a dynamic anchor":                      schema(d2020, `{"$dynamicRef": "#tag"}`, `"$defs": {"tag": {"$dynamicAnchor": "tag", "type": "string"}}`),
		"2020-12, a part of the document that has a URL": schema(d2020, `{"$ref": "tag"}`, `"$id": "https://example.com/app", "$defs": {"tag": {"$id": "tag", "type": "string"}}`),
		"no certain draft":                               schema(newest, `{"$ref": "#/definitions/tag"}`, `"definitions": {"tag": `+tag+`}`),
	} {
		t.Run(name, func(t *testing.T) {
			in := input(with(files{"values.schema.json": text, "templates/a.yaml": configMap("a", "{{ .Values.image.tag }}")}))
			in.Values = []map[string]any{{"image": map[string]any{"tag": "v1"}}}
			out, err := Render(t.Context(), in)
			if err != nil || len(out.Objects) != 1 {
				t.Fatalf("%d objects, %v", len(out.Objects), err)
			}
			in.Values = []map[string]any{{"image": map[string]any{"tag": 7}}}
			const wants = "the values do not fit values.schema.json of app: image.tag: got number, want string"
			if _, err := Render(t.Context(), in); err == nil || !strings.HasSuffix(err.Error(), wants) {
				t.Errorf("got %v, want %s", err, wants)
			}
		})
	}
}

func TestAKeyThatTheSchemaForbidsHasAPath(t *testing.T) {
	for name, text := range map[string]string{
		"a schema of one piece": `{"properties": {"image": {"properties": {"labels": {"propertyNames": {"pattern": "^[a-z]+$"}}}}}}`,
		"a schema in $defs": `{"properties": {"image": {"allOf": [{"$ref": "#/$defs/properties"}]}},
			"$defs": {"properties": {"properties": {"labels": {"propertyNames": {"pattern": "^[a-z]+$"}}}}}}`,
	} {
		in := input(with(files{"values.schema.json": text}))
		in.Values = []map[string]any{{"image": map[string]any{"labels": map[string]any{"A": 1}}}}
		const wants = "the values do not fit values.schema.json of app: image.labels: the key \"A\": 'A' does not match pattern '^[a-z]+$'"
		if _, err := Render(t.Context(), in); err == nil || !strings.HasSuffix(err.Error(), wants) {
			t.Errorf("%s: got %v, want %s", name, err, wants)
		}
	}
}
