package openapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/hanse-dev/hanse/member/openapi"
)

// withSpec returns an OpenAPI document of the kind Gadget, whose field spec has the given schema. others are further
// named schemas.
func withSpec(specification, others string) []byte {
	if others != "" {
		others = "," + others
	}
	return fmt.Appendf(nil, `{"components":{"schemas":{
		"com.example.Gadget":{"type":"object","required":["spec"],"properties":{"apiVersion":{"type":"string"},"spec":%s},
			"x-kubernetes-group-version-kind":[{"group":"shop.example.com","kind":"Gadget","version":"v1"}]}%s}}}`, specification, others)
}

const (
	valid = `{"type":"object","required":["size","mode"],"properties":{
		"size":{"type":"integer","minimum":0,"maximum":9},"ratio":{"type":"number","exclusiveMinimum":true,"minimum":0,"multipleOf":0.5},
		"mode":{"type":"string","enum":["Slow","Fast"],"default":"Slow"},"level":{"type":"integer","enum":[1,2]},
		"name":{"type":"string","minLength":2,"maxLength":4,"pattern":"^[a-z]+$"},"on":{"type":"boolean"},
		"port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
		"tags":{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true,"items":{"type":"string","maxLength":3}},
		"limits":{"type":"object","maxProperties":2,"additionalProperties":{"type":"integer","maximum":5}},
		"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"depth":{"type":"integer"}}},
		"either":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]},
		"never":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"not":{"required":["a","b"]}}}}`
	native = `{"type":"object","properties":{"quantity":{"allOf":[{"$ref":"#/components/schemas/Quantity"}],"default":{}},
		"raw":{"$ref":"#/components/schemas/Raw"},"child":{"$ref":"#/components/schemas/Node"}}}`
	natives = `"Quantity":{"oneOf":[{"type":"string"},{"type":"number"}]},"Raw":{"type":"object","description":"RawExtension"},
		"Node":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"next":{"$ref":"#/components/schemas/Node"}}}`
)

func TestFaults(t *testing.T) {
	tests := map[string]struct {
		schema, others string
		spec           string
		want           []string
		// ours is true if the check finds an undeclared field, which the library of the API server accepts.
		ours bool
	}{
		"what is declared is taken": {schema: valid, spec: `{"size":3,"ratio":1.5,"mode":"Fast","level":2,"name":"ab","on":true,"tags":["a","b"],"limits":{"x":5},"either":{"a":"1"},"never":{"a":"1"}}`},
		"another type":              {schema: valid, spec: `{"size":"three","on":"yes","tags":{"a":1}}`, want: []string{`/spec/on must be a boolean, not "yes"`, `/spec/size must be an integer, not "three"`, `/spec/tags must be a list`}},
		"bounds of numbers": {
			schema: valid, spec: `{"size":10,"ratio":0,"limits":{"a":6}}`,
			want: []string{`/spec/limits/a must be at most 5, not 6`, `/spec/ratio must be above 0, not 0`, `/spec/size must be at most 9, not 10`},
		},
		"a multiple":                          {schema: valid, spec: `{"size":1,"ratio":0.7}`, want: []string{`/spec/ratio must be a multiple of 0.5, not 0.7`}},
		"a whole number is an integer":        {schema: valid, spec: `{"size":3.0,"mode":"Slow"}`},
		"half a number is none":               {schema: valid, spec: `{"size":3.5}`, want: []string{`/spec/size must be an integer, not 3.5`}},
		"words and numbers of a list":         {schema: valid, spec: `{"size":1,"mode":"fast","level":3}`, want: []string{`/spec/level must be one of 1, 2, not 3`, `/spec/mode must be one of "Slow", "Fast", not "fast"`}},
		"length and pattern":                  {schema: valid, spec: `{"size":1,"name":"A"}`, want: []string{`/spec/name must have at least 2 characters, not "A"`, `/spec/name must match ^[a-z]+$, not "A"`}},
		"characters, not bytes":               {schema: strings.ReplaceAll(valid, `"^[a-z]+$"`, `"."`), spec: `{"size":1,"mode":"Slow","name":"äöüß"}`},
		"what is required, unless defaulted":  {schema: valid, spec: `{}`, want: []string{`/spec/size is required`}, ours: true},
		"an integer or a string":              {schema: valid, spec: `{"size":1,"port":true}`, want: []string{`/spec/port must be a string or an integer, not true`}},
		"lists":                               {schema: valid, spec: `{"size":1,"tags":["abcd","b","b"]}`, want: []string{`/spec/tags must have at most 2 items`, `/spec/tags must not have duplicate items`, `/spec/tags/0 must have at most 3 characters, not "abcd"`}},
		"maps":                                {schema: valid, spec: `{"size":1,"limits":{"a":1,"b":2,"c":3}}`, want: []string{`/spec/limits must have at most 2 fields`}},
		"a field that is not declared":        {schema: valid, spec: `{"size":1,"colour":"red"}`, want: []string{`/spec/colour is not a field of the schema`}, ours: true},
		"what is preserved is free":           {schema: valid, spec: `{"size":1,"free":{"any":{"x":1},"depth":"d"}}`, want: []string{`/spec/free/depth must be an integer, not "d"`}},
		"exactly one of two":                  {schema: valid, spec: `{"size":1,"either":{"a":"1","b":"2"}}`, want: []string{`/spec/either must fit exactly one of the alternatives of the schema, but fits 2`}},
		"none of two":                         {schema: valid, spec: `{"size":1,"never":{"a":"1","b":"2"}}`, want: []string{`/spec/never must not match the schema under not`}},
		"null is taken":                       {schema: valid, spec: `{"size":null,"mode":null,"tags":null}`, ours: true},
		"native types":                        {schema: native, others: natives, spec: `{"quantity":"1Gi","raw":{"a":{"b":1}},"child":{"id":1,"next":{"id":2}}}`, ours: true},
		"native types with another value":     {schema: native, others: natives, spec: `{"quantity":true,"child":{"id":1,"next":{"id":"x"}}}`, want: []string{`/spec/child/next/id must be an integer, not "x"`, `/spec/quantity must fit exactly one of the alternatives of the schema, but fits 0, not true`}, ours: true},
		"a reference to nothing takes all":    {schema: `{"$ref":"#/components/schemas/none"}`, spec: `{"a":1}`, ours: true},
		"a pattern that cannot be read":       {schema: `{"type":"string","pattern":"(?!a)"}`, spec: `"a"`, ours: true},
		"keys with signs are written as such": {schema: `{"type":"object","additionalProperties":{"type":"integer"}}`, spec: `{"a/b~c":"x"}`, want: []string{`/spec/a~1b~0c must be an integer, not "x"`}},
		"a long value is cut":                 {schema: `{"type":"integer"}`, spec: `"` + strings.Repeat("x", 100) + `"`, want: []string{`/spec must be an integer, not "` + strings.Repeat("x", 63) + `...`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := openapi.Parse(withSpec(tt.schema, tt.others), gadget)
			if err != nil {
				t.Fatal(err)
			}
			object := map[string]any{"apiVersion": 7, "metadata": map[string]any{"odd": true}, "spec": parsed(t, tt.spec)}
			got := written(s.Faults(object))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.ours {
				return
			}
			if refused := refusedByTheOracle(t, tt.schema, object["spec"]); refused != (len(got) > 0) {
				t.Errorf("the oracle says that it is refused: %t", refused)
			}
		})
	}
}

// refusedByTheOracle reports whether the library that API servers use to check custom resources refuses the value.
func refusedByTheOracle(t *testing.T, raw string, value any) bool {
	t.Helper()
	var s spec.Schema
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatal(err)
	}
	return !validate.NewSchemaValidator(&s, nil, "spec", strfmt.Default).Validate(value).IsValid()
}

func written(faults []openapi.Fault) []string {
	var out []string
	for _, f := range faults {
		out = append(out, f.String())
	}
	return out
}

func parsed(t *testing.T, raw string) any {
	t.Helper()
	var v any
	if err := utiljson.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWhatAPatchSetsIsCheckedWithoutTheObject(t *testing.T) {
	tests := map[string]struct {
		pointer, value string
		partial        bool
		want           []string
	}{
		"a value that is taken":               {pointer: "/spec/size", value: `3`},
		"one that is not":                     {pointer: "/spec/size", value: `"three"`, want: []string{`/spec/size must be an integer, not "three"`}},
		"a field that is not declared":        {pointer: "/spec/sice/x", value: `3`, want: []string{`/spec/sice is not a field of the schema`}},
		"an item at the end of a list":        {pointer: "/spec/tags/-", value: `1`, want: []string{`/spec/tags/- must be a string, not 1`}},
		"an item of a list":                   {pointer: "/spec/tags/0", value: `"toolong"`, want: []string{`/spec/tags/0 must have at most 3 characters, not "toolong"`}},
		"a whole value lacks what is missing": {pointer: "/spec", value: `{}`, want: []string{`/spec/size is required`}},
		"a partial one does not":              {pointer: "/spec", value: `{"mode":"x"}`, partial: true, want: []string{`/spec/mode must be one of "Slow", "Fast", not "x"`}},
		"a merge patch of the whole object":   {pointer: "", value: `{"metadata":{"labels":{"a":1}},"spec":{"size":99,"name":null}}`, partial: true, want: []string{`/spec/size must be at most 9, not 99`}},
		"nothing is said of metadata":         {pointer: "/metadata/labels/a", value: `1`},
		"nothing is said below what is free":  {pointer: "/spec/free/a/b", value: `1`},
	}
	s, err := openapi.Parse(withSpec(valid, ""), gadget)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, written(s.FaultsAt(tt.pointer, parsed(t, tt.value), tt.partial))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFaultShowsOnlyTextsOfThePolicyOrTheSchema(t *testing.T) {
	s, err := openapi.Parse(withSpec(valid, ""), gadget)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ spec, literals, want string }{
		"a key and a value that are not literals": {spec: `{"size":1,"limits":{"s3cr3t":77}}`, literals: `{}`, want: `/spec/limits/* must be at most 5`},
		"a key that is one":                       {spec: `{"size":1,"limits":{"a/b":77}}`, literals: `{"a/b":1}`, want: `/spec/limits/a~1b must be at most 5`},
		"a value that is one":                     {spec: `{"size":1,"limits":{"s3cr3t":77}}`, literals: `[77]`, want: `/spec/limits/* must be at most 5, not 77`},
		"a step of a pointer":                     {spec: `{"size":1,"limits":{"a/b":77}}`, literals: `{"path":"/spec/limits/a~1b"}`, want: `/spec/limits/a~1b must be at most 5`},
		"an index":                                {spec: `{"size":1,"tags":["a","toolong"]}`, literals: `{}`, want: `/spec/tags/* must have at most 3 characters`},
		"a field that is not declared":            {spec: `{"size":1,"s3cr3t":1}`, literals: `{}`, want: `/spec/* is not a field of the schema`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			faults := s.Faults(map[string]any{"spec": parsed(t, tt.spec)})
			if len(faults) != 1 {
				t.Fatalf("faults %v, want one", faults)
			}
			if got := faults[0].Redacted(openapi.Literals([]byte(tt.literals))).String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Server-side apply refuses duplicate entries of a list, but a create accepts them.
func TestAnEntryThatIsThereTwiceIsAFault(t *testing.T) {
	const (
		port = `{"type":"object","required":["number"],"properties":{"number":{"type":"integer"},"protocol":{"type":"string","default":"TCP"},"name":{"type":"string"}}}`
		spec = `{"type":"object","properties":{
			"env":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}},
				"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]},
			"ports":{"type":"array","items":{"allOf":[{"$ref":"#/components/schemas/Port"}],"default":{}},
				"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["number","protocol"]},
			"own":{"type":"array","items":` + port + `,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["number","protocol"]},
			"tags":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
			"args":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"atomic"},
			"loop":{"type":"array","items":{"$ref":"#/components/schemas/Loop"},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]}}}`
		named = `"Port":` + port + `,"Loop":{"allOf":[{"$ref":"#/components/schemas/Loop"}]}`
	)
	s, err := openapi.Parse(withSpec(spec, named), gadget)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		spec string
		want []string
	}{
		"names that differ":                         {spec: `{"env":[{"name":"A","value":"1"},{"name":"B","value":"1"}]}`},
		"a name twice":                              {spec: `{"env":[{"name":"A","value":"1"},{"name":"B"},{"name":"A","value":"2"}]}`, want: []string{`/spec/env/2 must have another name than the entries before it, not "A"`}},
		"a name three times":                        {spec: `{"env":[{"name":"A"},{"name":"A"},{"name":"A"}]}`, want: []string{`/spec/env/1 must have another name than the entries before it, not "A"`, `/spec/env/2 must have another name than the entries before it, not "A"`}},
		"an entry without a key is not compared":    {spec: `{"env":[{"value":"1"},{"value":"1"},null,null]}`},
		"a port under two names, by the default":    {spec: `{"ports":[{"number":80,"name":"a"},{"number":80,"name":"b","protocol":"TCP"}]}`, want: []string{`/spec/ports/1 must have another number or protocol than the entries before it`}},
		"the same in a schema without a reference":  {spec: `{"own":[{"number":80,"name":"a"},{"number":80.0,"name":"b"}]}`, want: []string{`/spec/own/1 must have another number or protocol than the entries before it`}},
		"a port of two protocols":                   {spec: `{"ports":[{"number":80},{"number":80,"protocol":"UDP"}]}`},
		"a value of a set twice":                    {spec: `{"tags":["a","b","a"]}`, want: []string{`/spec/tags/2 must differ from the entries before it, not "a"`}},
		"an atomic list may have a value twice":     {spec: `{"args":["a","a"]}`},
		"entries of a schema that refers to itself": {spec: `{"loop":[{"name":"a"},{"name":"a"}]}`, want: []string{`/spec/loop/1 must have another name than the entries before it, not "a"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, written(s.Faults(map[string]any{"spec": parsed(t, tt.spec)}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a merge patch sets a whole list", func(t *testing.T) {
		patch := parsed(t, `{"spec":{"env":[{"name":"A"},{"name":"A"}]}}`)
		if got := written(s.FaultsAt("", patch, true)); len(got) != 1 {
			t.Errorf("faults %v, want one", got)
		}
	})
}

func TestACostlySchemaEnds(t *testing.T) {
	node := `"Node":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/Node"}},
		"anyOf":[{"properties":{"next":{"$ref":"#/components/schemas/Node"}}},{"properties":{"next":{"$ref":"#/components/schemas/Node"}}},{"required":["x"]}]}`
	s, err := openapi.Parse(withSpec(`{"$ref":"#/components/schemas/Node"}`, node), gadget)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	for range 100 {
		object = map[string]any{"next": object}
	}
	s.Faults(map[string]any{"spec": object})
}

func FuzzFaults(f *testing.F) {
	for _, s := range []string{valid, native, `{"$ref":"#/components/schemas/Node"}`} {
		f.Add(s, natives, `{"size":1,"tags":["a",{}],"child":{"next":{"next":[null]}},"limits":{"":1e300}}`, "/spec/tags/0")
	}
	f.Fuzz(func(t *testing.T, s, others, raw, pointer string) {
		parsed, err := openapi.Parse(withSpec(s, others), gadget)
		if err != nil {
			return
		}
		var value any
		if utiljson.Unmarshal([]byte(raw), &value) != nil {
			return
		}
		parsed.Faults(map[string]any{"spec": value})
		parsed.FaultsAt(pointer, value, true)
	})
}
