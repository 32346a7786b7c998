//go:build !race

package openapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
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
		reported := int64(0)
		took := heap.Kept(func() any {
			var kept []*Schema
			for i := range many {
				kept = append(kept, parse(i))
				reported += kept[i].Size()
			}
			return kept
		})
		const noise = 8 << 10 // what the runtime and the test itself keep
		if took > reported+noise {
			t.Fatalf("%d schemas take %d bytes, and say that they take %d", many, took, reported)
		}
	})
}

// patterns draws a regular expression.
func patterns(t *rapid.T, depth int) string {
	atoms := []string{"x", "[a-z0-9]", "[^x]", ".", `\p{L}`, `\pN`, "(?i:straße)", "^", "$", `\b`, "[[:alpha:]]", strings.Repeat("literal", 20)}
	if depth == 0 {
		return rapid.SampledFrom(atoms).Draw(t, "atom")
	}
	var out strings.Builder
	for range rapid.IntRange(1, 4).Draw(t, "parts") {
		part := "(?:" + patterns(t, depth-1) + ")"
		out.WriteString(rapid.SampledFrom([]string{"", "|"}).Draw(t, "between"))
		out.WriteString(part + rapid.SampledFrom([]string{"", "", "*", "+", "?", "{3}", "{0,20}", "{200}", "*?"}).Draw(t, "repeat"))
	}
	return out.String()
}

func TestACompiledPatternKeepsNoMoreThanItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := patterns(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil || compiledSize(parsed) > maxPatternBytes {
			return
		}
		const many = 20
		took := heap.Kept(func() any {
			var kept []*regexp.Regexp
			for range many {
				re := compile(text)
				re.MatchString("xxxx literal Straße 7")
				kept = append(kept, re)
			}
			return kept
		})
		const noise = 16 << 10 // what the runtime and the test itself keep
		if reported := many * compiledSize(parsed); took > reported+noise {
			t.Fatalf("%d times the pattern %q take %d bytes, and say that they take %d", many, text, took, reported)
		}
	})
}

func TestTheLargestPatternsOfAHostileMemberKeepLittle(t *testing.T) {
	largest := func(i int) string { // classes of many characters are the largest states
		return fmt.Sprintf(`^%04d\p{L}{1,20}$`, i)
	}
	took := heap.Kept(func() any {
		for i := range 4 * maxPatterns {
			if matches(largest(i), "web") {
				t.Fatalf("pattern %d is not checked", i)
			}
		}
		return compiled
	})
	if most := int64(maxPatterns * maxPatternBytes); took > most {
		t.Errorf("%d patterns keep %d bytes, more than %d", 4*maxPatterns, took, most)
	}
	t.Logf("%d bytes", took)
}
