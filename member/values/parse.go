package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/member/openapi"
)

// The limits of what is kept of one kind: a member writes its schemas as it likes.
const (
	mostParts   = 100_000
	mostPattern = 4096 // bytes
)

// element is the part of a schema of OpenAPI that is read.
type element struct {
	Ref        string                       `json:"$ref"`
	Type       any                          `json:"type"`
	Properties map[string]*element          `json:"properties"`
	Required   []string                     `json:"required"`
	Additional *openapi.Additional[element] `json:"additionalProperties"`
	Items      *element                     `json:"items"`
	AllOf      []*element                   `json:"allOf"`
	AnyOf      []*element                   `json:"anyOf"`
	OneOf      []*element                   `json:"oneOf"`
	Not        *element                     `json:"not"`
	Default    json.RawMessage              `json:"default"`

	Enum             []json.RawMessage `json:"enum"`
	Pattern          string            `json:"pattern"`
	Minimum          *float64          `json:"minimum"`
	Maximum          *float64          `json:"maximum"`
	ExclusiveMinimum bool              `json:"exclusiveMinimum"`
	ExclusiveMaximum bool              `json:"exclusiveMaximum"`
	MultipleOf       *float64          `json:"multipleOf"`
	MinLength        *int64            `json:"minLength"`
	MaxLength        *int64            `json:"maxLength"`
	MinItems         *int64            `json:"minItems"`
	MaxItems         *int64            `json:"maxItems"`
	UniqueItems      bool              `json:"uniqueItems"`
	MinProperties    *int64            `json:"minProperties"`
	MaxProperties    *int64            `json:"maxProperties"`

	Preserve bool `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded bool `json:"x-kubernetes-embedded-resource"`
	Either   bool `json:"x-kubernetes-int-or-string"`
}

// Parse reads the schema of one kind from an OpenAPI v3 document of its group and version.
func Parse(raw []byte, gvk schema.GroupVersionKind) (*Schema, error) {
	components, name, err := openapi.Read(raw, gvk)
	if err != nil {
		return nil, err
	}
	p := &parser{components: components, named: map[string]*Schema{}}
	root := p.component(name, 0)
	if p.err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", gvk, p.err)
	}
	return root, nil
}

// parser reads the components that one kind needs, each once.
type parser struct {
	components openapi.Components
	named      map[string]*Schema
	parts      int
	err        error
}

// component reads a named schema; while it is being read, parts of it may already point to it. What says object and
// names no field is how native types say that they hold anything.
func (p *parser) component(name string, depth int) *Schema {
	if known, ok := p.named[name]; ok {
		return known
	}
	raw, ok := p.components[name]
	if !ok {
		return nil
	}
	out := &Schema{open: true}
	p.named[name] = out
	var e element
	if err := json.Unmarshal(raw, &e); err != nil {
		p.fail(fmt.Errorf("component %q: %w", name, err))
		return nil
	}
	if read := p.read(&e, depth+1, false); read != nil {
		*out = *read
	}
	if len(out.names) == 0 && out.values == nil {
		out.open = true
	}
	return out
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// read reduces an element; nil takes every value. An alternative speaks of values whose fields others declare.
func (p *parser) read(e *element, depth int, alternative bool) *Schema {
	if e == nil || p.err != nil || depth > openapi.MostDepth {
		return nil
	}
	if e.Ref != "" {
		return p.component(openapi.Referred(e.Ref), depth)
	}
	if len(e.AllOf) == 1 && e.Type == nil && e.Properties == nil && e.Items == nil && len(e.AnyOf)+len(e.OneOf) == 0 && !e.Either {
		return p.read(e.AllOf[0], depth+1, alternative) // a reference with a default or a description
	}
	if p.parts++; p.parts > mostParts {
		p.fail(fmt.Errorf("it has more than %d parts", mostParts))
		return nil
	}
	s := &Schema{kinds: kindsOf(e), bounds: boundsOf(e), enum: enumOf(e.Enum), items: p.read(e.Items, depth+1, alternative)}
	if e.Pattern != "" && len(e.Pattern) <= mostPattern {
		s.pattern = &pattern{text: e.Pattern}
	}
	p.object(s, e, depth, alternative)
	s.all, s.any, s.one = p.list(e.AllOf, depth), p.list(e.AnyOf, depth), p.list(e.OneOf, depth)
	if e.Not != nil {
		s.not = p.read(e.Not, depth+1, true)
	}
	return s
}

func (p *parser) list(elements []*element, depth int) []*Schema {
	var out []*Schema
	for _, e := range elements {
		out = append(out, p.read(e, depth+1, true))
	}
	return out
}

func (p *parser) object(s *Schema, e *element, depth int, alternative bool) {
	parts := map[string]*Schema{}
	for name, property := range e.Properties {
		parts[name] = p.read(property, depth+1, alternative)
	}
	if e.Embedded { // a whole object: what every object has is known of it
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			parts[name] = nil
		}
	}
	// Only what says that it is an object and lists its fields has no others.
	s.open = alternative || e.Preserve || e.Type != "object"
	for _, other := range slices.Concat(e.AllOf, e.AnyOf, e.OneOf) {
		s.open = s.open || other != nil && (other.Ref != "" || other.Additional != nil)
	}
	if e.Additional != nil {
		s.open = s.open || e.Additional.Allowed
		s.values = p.read(e.Additional.Element, depth+1, alternative)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		s.names = append(s.names, unique.Make(name).Value())
		s.parts = append(s.parts, parts[name])
	}
	for _, name := range e.Required {
		if property := e.Properties[name]; property == nil || property.Default == nil {
			s.required = append(s.required, unique.Make(name).Value())
		}
	}
	slices.Sort(s.required)
}

func kindsOf(e *element) kind {
	if e.Either {
		return isInteger | isString
	}
	switch e.Type {
	case "object":
		return isObject
	case "array":
		return isArray
	case "string":
		return isString
	case "integer":
		return isInteger
	case "number":
		return isNumber
	case "boolean":
		return isBoolean
	}
	return 0
}

func boundsOf(e *element) *bounds {
	b := bounds{
		least: e.Minimum, most: e.Maximum, aboveLeast: e.ExclusiveMinimum, belowMost: e.ExclusiveMaximum, multipleOf: e.MultipleOf,
		shortest: e.MinLength, longest: e.MaxLength, fewestItems: e.MinItems, mostItems: e.MaxItems, unique: e.UniqueItems,
		fewestFields: e.MinProperties, mostFields: e.MaxProperties,
	}
	if b == (bounds{}) {
		return nil
	}
	return &b
}

// enumOf are the values as JSON is written here.
func enumOf(values []json.RawMessage) []string {
	var out []string
	for _, raw := range values {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		var v any
		if decoder.Decode(&v) != nil {
			continue
		}
		if text, err := json.Marshal(v); err == nil {
			out = append(out, unique.Make(string(text)).Value())
		}
	}
	return out
}
