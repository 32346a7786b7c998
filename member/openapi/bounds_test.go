//go:build !race

package openapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/hanse-dev/hanse/test/heap"
)

var hostile = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Widget"}

// schemas draws an OpenAPI schema. Each call of text draws another text.
func schemas(t *rapid.T, depth int, text func(string) string) map[string]any {
	s := map[string]any{"type": rapid.SampledFrom([]string{"object", "array", "string", "integer", "odd"}).Draw(t, "type"), "description": text("description")}
	if rapid.Bool().Draw(t, "pattern") {
		s["pattern"] = text("pattern")
	}
	if rapid.Bool().Draw(t, "enum") {
		s["enum"] = []any{text("enum"), map[string]any{text("field"): text("value")}, 7}
	}
	if rapid.Bool().Draw(t, "bounds") {
		s["minimum"], s["maximum"], s["maxLength"], s["minItems"] = 1.5, rapid.Float64Range(1, 1e9).Draw(t, "maximum"), 7, 8
	}
	if depth == 0 {
		return s
	}
	properties, required := map[string]any{}, []any{}
	for range rapid.IntRange(0, 6).Draw(t, "properties") {
		name := text("name")
		properties[name] = schemas(t, depth-1, text)
		if rapid.Bool().Draw(t, "required") {
			required = append(required, name)
		}
	}
	s["properties"], s["required"] = properties, required
	switch rapid.IntRange(0, 5).Draw(t, "more") {
	case 0:
		s["items"] = schemas(t, depth-1, text)
		s["x-kubernetes-list-type"], s["x-kubernetes-list-map-keys"] = "map", []any{text("key"), text("key")}
	case 1:
		s["additionalProperties"] = schemas(t, depth-1, text)
	case 2:
		s[rapid.SampledFrom([]string{"allOf", "anyOf", "oneOf"}).Draw(t, "alternatives")] = []any{schemas(t, depth-1, text), schemas(t, depth-1, text)}
	case 3:
		s["not"] = schemas(t, depth-1, text)
	}
	return s
}

func TestASchemaKeepsNoMoreOfAnyDocumentThanItSays(t *testing.T) {
	const many = 10
	rapid.Check(t, func(t *rapid.T) {
		texts := 0
		root := schemas(t, 2, func(what string) string {
			texts++
			return fmt.Sprintf("NNN-%d-%s", texts, strings.Repeat("x", rapid.SampledFrom([]int{0, 5, 30, 300, 2000}).Draw(t, what)))
		})
		root["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": hostile.Group, "version": hostile.Version, "kind": hostile.Kind}}
		document, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": map[string]any{"Widget": root}}})
		if err != nil {
			t.Fatal(err)
		}
		parse := func(i int) *Schema {
			s, err := Parse([]byte(strings.ReplaceAll(string(document), "NNN", fmt.Sprintf("%03d", i))), hostile) // texts that are not shared
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		parse(many) // fills the caches of encoding/json
		said := int64(0)
		took := heap.Kept(func() any {
			var kept []*Schema
			for i := range many {
				kept = append(kept, parse(i))
				said += kept[i].Size()
			}
			return kept
		})
		const noise = 8 << 10 // what the runtime and the test itself keep
		if took > said+noise {
			t.Fatalf("%d schemas take %d bytes, and say that they take %d", many, took, said)
		}
	})
}
