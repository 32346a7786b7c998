package rollup

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func TestWhatTheServerRefusesIsRefused(t *testing.T) {
	schemas := []string{
		"{type: integer, format: int32, minimum: 0, maximum: 5}", "{type: integer}", "{type: number, minimum: 0.5}", "{type: boolean}", "{type: string, minLength: 1, maxLength: 2}",
		"{type: string, enum: [a, b]}", "{type: string, pattern: '^[a-c]+$'}", "{type: string, pattern: '(?!a)'}", "{type: string, format: date-time}", "{type: string, nullable: true}",
		"{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", "{x-kubernetes-int-or-string: true, pattern: '^[a-c]$'}",
		"{type: array, minItems: 1, maxItems: 2, items: {type: string}}", "{type: object, required: [a], properties: {a: {type: string}, b: {type: integer}}}",
		"{type: object, maxProperties: 1, additionalProperties: {type: integer}}", "{type: string, format: ipv4}", "{type: integer, multipleOf: 2}",
		"{type: string, oneOf: [{enum: [a]}, {enum: [b]}]}", "{type: string, not: {enum: [a]}}",
	}
	scalar := rapid.OneOf(
		rapid.Map(rapid.Int64Range(-1, 7), func(i int64) any { return i }), rapid.Map(rapid.SampledFrom([]float64{0.25, 2.5}), func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "abc", "ß", "2026-01-01T00:00:00Z", "soon", "10.0.0.1"}), func(s string) any { return s }), rapid.Just[any](nil),
	)
	anything := rapid.OneOf(scalar, rapid.Map(rapid.SliceOfN(scalar, 0, 3), func(s []any) any { return s }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), scalar, 0, 2), func(m map[string]any) any { return m }))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(schemas).Draw(t, "schema")
		var p apiextensionsv1.JSONSchemaProps
		if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		server, err := newValidator(&p)
		if err != nil {
			t.Fatal(err)
		}
		value := anything.Draw(t, "value")
		ours, theirs := newNode(&p, maxNesting).refuses(value), server.Validate(value).Errors
		// The server lets a list pass as a date-time; ours may be the stricter one.
		if ours == nil && len(theirs) > 0 {
			data, _ := json.Marshal(value)
			t.Fatalf("%s for %s: ours %v, the server's %v", data, text, ours, theirs)
		}
	})
}
