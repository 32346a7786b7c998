package openapi_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanse-dev/hanse/member/openapi"
)

const (
	defaulted = `"spec":{"type":"object","properties":{
		"cdi":{"type":"object","default":{"mode":"auto"},"properties":{"enabled":{"type":"boolean","default":false},"mode":{"type":"string","default":"manual"}}},
		"size":{"type":"integer","default":3},"none":{"type":"string"},"tags":{"type":"array","default":[],"items":{"type":"string"}},
		"parts":{"type":"array","items":{"type":"object","properties":{"weight":{"type":"integer","default":1},"name":{"type":"string"}}}},
		"named":{"allOf":[{"$ref":"#/components/schemas/com.example.Named"}],"default":{}}}}`
	named = `"com.example.Named":{"type":"object","properties":{"policy":{"type":"string","default":"Always"}}}`
)

func TestValuesThatEqualTheDefaultsAreFound(t *testing.T) {
	t.Parallel()
	schema, err := openapi.Parse(withProperties(defaulted, named), gadget)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		object string
		want   []string
	}{
		"scalars":                     {`{"spec":{"size":3,"none":"","cdi":{"enabled":false}}}`, []string{".spec.cdi.enabled=false", ".spec.size=3"}},
		"other values":                {`{"spec":{"size":4,"cdi":{"enabled":true}}}`, nil},
		"the default of the map wins": {`{"spec":{"cdi":{"mode":"auto"}}}`, []string{`.spec.cdi.mode="auto"`}},
		"not the default in a map with a default of its own": {`{"spec":{"cdi":{"mode":"manual"}}}`, nil},
		"values in items":           {`{"spec":{"parts":[{"name":"a","weight":2},{"name":"b","weight":1}]}}`, []string{".spec.parts[1].weight=1"}},
		"an empty list":             {`{"spec":{"tags":[]}}`, []string{".spec.tags=[]"}},
		"values of a named schema":  {`{"spec":{"named":{"policy":"Always"}}}`, []string{`.spec.named.policy="Always"`}},
		"an empty map":              {`{"spec":{"named":{}}}`, []string{".spec.named={}"}},
		"values of undeclared maps": {`{"spec":{"other":{"size":3}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var object map[string]any
			if err := json.Unmarshal([]byte(tt.object), &object); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range schema.Defaults(object) {
				got = append(got, d.Path.String()+"="+d.Value)
				if value, declared := schema.Default(d.Path); value != d.Value || !declared {
					t.Errorf("the default of %s is %q, declared %t", d.Path, value, declared)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDefaultOfAField(t *testing.T) {
	t.Parallel()
	field := func(names ...string) (p openapi.Path) {
		for _, n := range names {
			p = append(p, openapi.Step{Name: n, Field: true})
		}
		return p
	}
	for name, tt := range map[string]struct {
		properties string
		path       openapi.Path
		value      string
		declared   bool
	}{
		"a field with a default":    {defaulted, field("spec", "size"), "3", true},
		"a field without a default": {defaulted, field("spec", "none"), "", true},
		"a field that is missing":   {closed, field("spec", "deep", "age"), "", false},
		"a field of any map":        {preserved, field("spec", "other"), "", true},
		"a field of an item":        {defaulted, append(append(field("spec", "parts"), openapi.Step{Index: 7}), openapi.Step{Name: "weight", Field: true}), "1", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, err := openapi.Parse(withProperties(tt.properties, named), gadget)
			if err != nil {
				t.Fatal(err)
			}
			if value, declared := schema.Default(tt.path); value != tt.value || declared != tt.declared {
				t.Errorf("%q, declared %t, want %q, %t", value, declared, tt.value, tt.declared)
			}
		})
	}
	if value, declared := (*openapi.Schema)(nil).Default(field("spec")); value != "" || !declared {
		t.Error("a schema that is not known lacks a field")
	}
}
