package openapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/member/openapi"
)

var gadget = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Gadget"}

// withProperties returns an OpenAPI document of the kind Gadget with these properties. others are further named
// schemas.
func withProperties(properties, others string) []byte {
	if others != "" {
		others = "," + others
	}
	return fmt.Appendf(nil, `{"openapi":"3.0.0","paths":{"/x":{"get":{"description":"not read"}}},"components":{"schemas":{
		"com.example.Gadget":{"type":"object","properties":{%s},
			"x-kubernetes-group-version-kind":[{"group":"shop.example.com","kind":"Gadget","version":"v1"}]},
		"com.example.GadgetList":{"type":"object","properties":{"items":{"type":"array"}},
			"x-kubernetes-group-version-kind":[{"group":"shop.example.com","kind":"GadgetList","version":"v1"}]}%s}}}`, properties, others)
}

const (
	closed    = `"spec":{"type":"object","properties":{"size":{"type":"integer"},"deep":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	list      = `"spec":{"type":"object","properties":{"parts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}}}}`
	preserved = `"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"deep":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	mapped    = `"spec":{"type":"object","additionalProperties":{"type":"object","properties":{"name":{"type":"string"}}}}`
	recursive = `"spec":{"allOf":[{"$ref":"#/components/schemas/com.example.Props"}],"default":{}}`
	props     = `"com.example.Props":{"type":"object","properties":{"title":{"type":"string"},"items":{"$ref":"#/components/schemas/com.example.Props"},
		"properties":{"type":"object","additionalProperties":{"$ref":"#/components/schemas/com.example.Props"}}}}`
)

func TestUnknown(t *testing.T) {
	tests := map[string]struct {
		properties, others string
		object             string
		want               []string
	}{
		"declared fields are known, with a null in their place, too": {
			properties: closed, object: `{"spec":{"size":1,"deep":{"name":null}}}`,
		},
		"the metadata, apiVersion and kind are not looked into": {
			properties: closed, object: `{"apiVersion":"a/v1","kind":"K","metadata":{"name":"x","labels":{"a":"b"},"odd":1},"spec":{}}`,
		},
		"fields at the top and below are found, of an unknown field not its parts": {
			properties: closed, object: `{"data":{"a":1},"spec":{"colour":{"r":1,"g":2},"deep":{"age":3,"name":"n"}}}`,
			want: []string{".data", ".spec.colour", ".spec.deep.age"},
		},
		"a null for a field that is not known counts": {
			properties: closed, object: `{"spec":{"colour":null}}`, want: []string{".spec.colour"},
		},
		"items are looked into, each": {
			properties: list, object: `{"spec":{"parts":[{"name":"a"},{"name":"b","age":1},null,"text",[{"x":1}]]}}`, want: []string{".spec.parts[1].age"},
		},
		"another shape than the declared one is the server's to refuse": {
			properties: list + `,` + strings.Replace(closed, "spec", "more", 1),
			object:     `{"spec":{"parts":{"name":{"x":1}}},"more":{"size":{"x":1},"deep":[{"x":1}]}}`,
		},
		"what is preserved is known, and below it what is declared is looked into": {
			properties: preserved, object: `{"spec":{"anything":{"goes":1},"deep":{"age":1}}}`, want: []string{".spec.deep.age"},
		},
		"any key of a map is known, and its values are looked into": {
			properties: mapped, object: `{"spec":{"a":{"name":"x"},"b c":{"age":1},"":{"age":1}}}`, want: []string{`.spec[""].age`, `.spec["b c"].age`},
		},
		"any value may be in a map of anything": {
			properties: `"spec":{"type":"object","additionalProperties":true},"data":{"type":"object","additionalProperties":{}}`,
			object:     `{"spec":{"a":{"b":1}},"data":{"a":{"b":1}}}`,
		},
		"an object that declares no field keeps none": {
			properties: `"spec":{"type":"object"},"data":{"type":"object","additionalProperties":false}`,
			object:     `{"spec":{"a":1},"data":{"b":1}}`, want: []string{".data.b", ".spec.a"},
		},
		"a native type that declares no field holds anything": {
			properties: `"spec":{"$ref":"#/components/schemas/raw"},"data":{"type":"array","items":{"allOf":[{"$ref":"#/components/schemas/raw"}],"default":{}}}`,
			others:     `"raw":{"type":"object","description":"RawExtension"}`, object: `{"spec":{"a":{"b":1}},"data":[{"a":1}]}`,
		},
		"int-or-string and what has no type are not looked into": {
			properties: `"spec":{"type":"object","properties":{"port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},"any":{}}}`,
			object:     `{"spec":{"port":{"a":1},"any":{"a":1}}}`,
		},
		"of an embedded object what every object has is known": {
			properties: `"spec":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"data":{"type":"object","properties":{}}}}`,
			object:     `{"spec":{"apiVersion":"v1","kind":"K","metadata":{"name":"x","odd":1},"data":{"a":1},"more":1}}`,
			want:       []string{".spec.data.a", ".spec.more"},
		},
		"an embedded object that is preserved may hold anything": {
			properties: `"spec":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`,
			object:     `{"spec":{"apiVersion":"v1","kind":"K","metadata":{"name":"x"},"spec":{"a":1}}}`,
		},
		"what alternatives declare is known": {
			properties: `"spec":{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"properties":{"b":{"type":"string"}}},{"required":["a"]}]}`,
			object:     `{"spec":{"a":"1","b":"2","c":"3"}}`, want: []string{".spec.c"},
		},
		"a schema that contains itself is followed as deep as the object goes": {
			properties: recursive, others: props,
			object: `{"spec":{"title":"t","items":{"odd":1,"items":{"title":"x"}},"properties":{"a":{"properties":{"b":{"odd":1}}}}}}`,
			want:   []string{".spec.items.odd", ".spec.properties.a.properties.b.odd"},
		},
		"a reference to nothing, or in a circle, may be anything": {
			properties: `"spec":{"$ref":"#/components/schemas/none"},"data":{"$ref":"#/components/schemas/a"}`,
			others:     `"a":{"$ref":"#/components/schemas/b"},"b":{"$ref":"#/components/schemas/a"}`, object: `{"spec":{"a":1},"data":{"a":1}}`,
		},
		"a kind without a schema of its own may hold anything": {object: `{"spec":{"a":1}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := openapi.Parse(withProperties(tt.properties, tt.others), gadget)
			if err != nil {
				t.Fatal(err)
			}
			object := objectOf(t, tt.object)
			unknown := s.Unknown(object.Object)
			var got []string
			for _, path := range unknown {
				got = append(got, path.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("unknown fields (-want +got):\n%s", diff)
			}
			if left := s.Unknown(openapi.Without(object, unknown).Object); len(left) > 0 {
				t.Errorf("without them, %v are unknown", left)
			}
			if diff := cmp.Diff(objectOf(t, tt.object), object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

func objectOf(t *testing.T, raw string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(raw), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWithoutTakesOutExactlyWhatWasFound(t *testing.T) {
	s, err := openapi.Parse(withProperties(list, ""), gadget)
	if err != nil {
		t.Fatal(err)
	}
	object := objectOf(t, `{"metadata":{"name":"x"},"spec":{"odd":1,"parts":[{"name":"a","odd":1},{"odd":{"x":1}},{"name":"c"}]}}`)
	got := openapi.Without(object, s.Unknown(object.Object))
	if diff := cmp.Diff(objectOf(t, `{"metadata":{"name":"x"},"spec":{"parts":[{"name":"a"},{},{"name":"c"}]}}`), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASchemaThatIsNestedTooDeepIsOpenThere(t *testing.T) {
	const deep = 2000
	properties := strings.Repeat(`"a":{"type":"object","properties":{`, deep) + strings.Repeat(`}}`, deep)
	s, err := openapi.Parse(withProperties(properties, ""), gadget)
	if err != nil {
		t.Fatal(err)
	}
	object := objectOf(t, strings.Repeat(`{"a":`, deep+1)+`1`+strings.Repeat(`}`, deep+1))
	if got := s.Unknown(object.Object); len(got) > 0 {
		t.Errorf("%d fields are unknown", len(got))
	}
}

func FuzzUnknown(f *testing.F) {
	for _, properties := range []string{closed, list, preserved, mapped, recursive, `"spec":{"$ref":"#/components/schemas/com.example.Gadget"}`} {
		f.Add(properties, props, `{"spec":{"a":[{"b":{"":[1,null]}}],"parts":[{"name":"x","y":1}],"items":{"items":{"z":{}}}}}`)
	}
	f.Fuzz(func(t *testing.T, properties, others, raw string) {
		s, err := openapi.Parse(withProperties(properties, others), gadget)
		if err != nil {
			return
		}
		object := &unstructured.Unstructured{}
		if json.Unmarshal([]byte(raw), &object.Object) != nil {
			return
		}
		unknown := s.Unknown(object.Object)
		for _, path := range unknown {
			if path.String() == "" {
				t.Error("a path to nowhere")
			}
		}
		if left := s.Unknown(openapi.Without(object, unknown).Object); len(left) > 0 {
			t.Errorf("without %v, %v are unknown", unknown, left)
		}
	})
}
