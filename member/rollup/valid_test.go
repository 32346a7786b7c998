package rollup

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

const keyed = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], properties: {a: {type: string}, b: {type: integer}}}"

// theServers returns the errors that the API server's validation finds in a value.
func theServers(t test, p *apiextensionsv1.JSONSchemaProps, value any) (faults []string) {
	t.Helper()
	server, err := newValidator(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range server.Validate(value).Errors {
		faults = append(faults, fault.Error())
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(p, &internal, nil); err != nil {
		t.Fatal(err)
	}
	own, err := structuralschema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	in := &structuralschema.Structural{Generic: structuralschema.Generic{Type: "object"}, Properties: map[string]structuralschema.Structural{"v": *own}}
	object := map[string]any{"v": runtime.DeepCopyJSONValue(value)}
	for _, fault := range listtype.ValidateListSetsAndMaps(nil, in, object) {
		faults = append(faults, fault.Error())
	}
	return append(faults, pruning.PruneWithOptions(object, in, false, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
}

func TestWhatTheServerRefusesIsRefused(t *testing.T) {
	schemas := []string{
		"{type: integer, format: int32, minimum: 0, maximum: 5}", "{type: integer}", "{type: number, minimum: 0.5}", "{type: boolean}", "{type: string, minLength: 1, maxLength: 2}",
		"{type: string, enum: [a, b]}", "{type: string, pattern: '^[a-c]+$'}", "{type: string, pattern: '(?!a)'}", "{type: string, format: date-time}", "{type: string, nullable: true}",
		"{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", "{x-kubernetes-int-or-string: true, pattern: '^[a-c]$'}",
		"{type: array, minItems: 1, maxItems: 2, items: {type: string}}", "{type: object, required: [a], properties: {a: {type: string}, b: {type: integer}}}",
		"{type: object, maxProperties: 1, additionalProperties: {type: integer}}", "{type: string, format: ipv4}", "{type: integer, multipleOf: 2}",
		"{type: string, oneOf: [{enum: [a]}, {enum: [b]}]}", "{type: string, not: {enum: [a]}}",
		"{type: array, x-kubernetes-list-type: set, items: {type: string}}", "{type: array, x-kubernetes-list-type: set, items: {type: string}, not: {maxItems: 0}}",
		keyed + "}", keyed + ", not: {maxItems: 0}}", "{type: object, properties: {a: {type: string}}, not: {maxProperties: 0}}",
		"{type: object, not: {maxProperties: 0}, properties: {a: {type: object, additionalProperties: {type: object, properties: {b: {type: integer}}}}}}",
	}
	scalar := rapid.OneOf(
		rapid.Map(rapid.Int64Range(-1, 7), func(i int64) any { return i }), rapid.Map(rapid.SampledFrom([]float64{0.25, 2.5}), func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "abc", "ß", "2026-01-01T00:00:00Z", "soon", "10.0.0.1"}), func(s string) any { return s }), rapid.Just[any](nil),
	)
	list := func(of *rapid.Generator[any]) *rapid.Generator[any] {
		return rapid.Map(rapid.SliceOfN(of, 0, 3), func(s []any) any { return s })
	}
	object := func(of *rapid.Generator[any]) *rapid.Generator[any] {
		return rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), of, 0, 2), func(m map[string]any) any { return m })
	}
	anything := rapid.OneOf(scalar, list(scalar), object(scalar), list(object(scalar)), object(object(object(scalar))))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(schemas).Draw(t, "schema")
		var p apiextensionsv1.JSONSchemaProps
		if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		value := anything.Draw(t, "value")
		ours, theirs := newNode(&p, maxNesting).refuses(value), theServers(t, &p, value)
		// The API server accepts some wrong values, such as a list as a date-time. The hub's check may be stricter, but must
		// not accept more.
		if ours == nil && len(theirs) > 0 {
			data, _ := json.Marshal(value)
			t.Fatalf("%s for %s: ours %v, the server's %v", data, text, ours, theirs)
		}
	})
}

func TestTheShapeOfAValueCountsWhateverElseTheSchemaSays(t *testing.T) {
	const (
		alternatives = ", not: {enum: [{}]}}"
		set          = "{type: array, x-kubernetes-list-type: set, items: {type: string}" + alternatives
		object       = "{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}" + alternatives
	)
	defaulted := strings.Replace(keyed, "required: [a], properties: {a: {type: string}", "properties: {a: {type: string, default: x}", 1)
	tests := map[string]struct {
		schema, value, want string
	}{
		"a set":                          {schema: set, value: "[a, b]"},
		"an entry twice":                 {schema: set, value: "[a, b, a]", want: "an entry is duplicated"},
		"entries with keys":              {schema: keyed + alternatives, value: "[{a: x, b: 1}, {a: z, b: 1}]"},
		"keys twice":                     {schema: keyed + alternatives, value: "[{a: x, b: 1}, {a: x, b: 2}]", want: "an entry is duplicated"},
		"a key that has a default":       {schema: defaulted + alternatives, value: "[{b: 1}, {a: z}]"},
		"a key that is the default":      {schema: defaulted + alternatives, value: "[{b: 1}, {a: x}]", want: "an entry is duplicated"},
		"fields of the schema":           {schema: object, value: "{a: {b: x}}"},
		"a field that is in no schema":   {schema: object, value: "{c: x}", want: "c is not a field of the schema"},
		"further down":                   {schema: object, value: "{a: {c: x}}", want: "a: c is not a field of the schema"},
		"in a list":                      {schema: keyed + alternatives, value: "[{a: x, c: 1}]", want: "[0]: c is not a field of the schema"},
		"a field where any is allowed":   {schema: "{type: object, x-kubernetes-preserve-unknown-fields: true" + alternatives, value: "{c: x}"},
		"what every object has":          {schema: "{type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: string}}}", value: "{apiVersion: v1, kind: A, metadata: {name: a}, spec: x}"},
		"what not every object has":      {schema: "{type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: string}}}", value: "{apiVersion: v1, kind: A, metadata: {name: a}, status: x}", want: "status is not a field of the schema"},
		"a list is no address":           {schema: "{type: string, format: ipv4}", value: "[{a: 1}]", want: "it is of another type"},
		"entries twice in a list of any": {schema: "{type: array, items: {type: string}" + alternatives, value: "[a, a]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var p apiextensionsv1.JSONSchemaProps
			if err := yaml.UnmarshalStrict([]byte(tc.schema), &p); err != nil {
				t.Fatal(err)
			}
			var value any
			if err := yaml.Unmarshal([]byte(tc.value), &value); err != nil {
				t.Fatal(err)
			}
			n := newNode(&p, maxNesting)
			if n.validator == nil {
				t.Fatal("the schema says no more than what nearly all do")
			}
			got := ""
			if err := n.refuses(native(value)); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
