package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNoSchema means that the OpenAPI document has no schema for the kind.
var ErrNoSchema = errors.New("the document has no schema of the kind")

// ErrTooManyFields means that the schema of the kind is too large to be kept.
var ErrTooManyFields = fmt.Errorf("the schema has more than %d fields, so the hub does not check the fields of such objects", maxFields)

// These limits bound the schema of one kind, because a member may publish any schema.
const (
	maxDepth         = 200
	maxFields        = 50_000
	maxPatternLength = 4096 // bytes
)

// element has the parts of an OpenAPI schema that this package reads.
type element struct {
	bounds
	combined
	extensions

	Ref        string              `json:"$ref"`
	Type       any                 `json:"type"`
	Properties map[string]*element `json:"properties"`
	Required   []string            `json:"required"`
	Additional *additional         `json:"additionalProperties"`
	Items      *element            `json:"items"`
	Default    json.RawMessage     `json:"default"`
	Enum       []json.RawMessage   `json:"enum"`
	Pattern    string              `json:"pattern"`
}

// combined has the parts of a schema that combine other schemas.
type combined struct {
	AllOf []*element `json:"allOf"`
	AnyOf []*element `json:"anyOf"`
	OneOf []*element `json:"oneOf"`
	Not   *element   `json:"not"`
}

// branches returns the schemas in allOf, anyOf and oneOf, which may declare further fields of the value.
func (c *combined) branches() []*element { return slices.Concat(c.AllOf, c.AnyOf, c.OneOf) }

// extensions has the x-kubernetes extensions of a schema.
type extensions struct {
	Preserve bool     `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded bool     `json:"x-kubernetes-embedded-resource"`
	Either   bool     `json:"x-kubernetes-int-or-string"`
	ListType string   `json:"x-kubernetes-list-type"`
	ListKeys []string `json:"x-kubernetes-list-map-keys"`
}

// additional is the value of additionalProperties, which is either a schema or a boolean.
type additional struct {
	allowed bool // false only if additionalProperties is false
	element *element
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &a.allowed); err == nil {
		return nil
	}
	a.allowed = true
	return json.Unmarshal(raw, &a.element)
}

// Parse reads the schema of one kind from an OpenAPI v3 document of its group and version. It decodes only the parts of
// the document that the kind needs.
func Parse(raw []byte, gvk schema.GroupVersionKind) (*Schema, error) {
	components, name, err := find(raw, gvk)
	if err != nil {
		return nil, err
	}
	p := &parser{
		components: components, named: map[string]*component{}, schemas: map[string]*Schema{}, rules: map[string]*rules{},
		fallbacks: map[string]map[string]string{},
	}
	root := p.component(name, 0)
	if p.err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", gvk, p.err)
	}
	if root == nil {
		root = &Schema{open: true} // the reference leads to no schema, so every value is accepted
	}
	return root, nil
}

// find returns the named schemas of a document, and the name of the kind's schema.
func find(raw []byte, gvk schema.GroupVersionKind) (all map[string]json.RawMessage, kind string, err error) {
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, "", fmt.Errorf("reading an OpenAPI document: %w", err)
	}
	for name, raw := range document.Components.Schemas {
		var e struct {
			Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		if json.Unmarshal(raw, &e) == nil && slices.Contains(e.Kinds, gvk) {
			return document.Components.Schemas, name, nil
		}
	}
	return nil, "", fmt.Errorf("%w %s", ErrNoSchema, gvk)
}

// parser parses the named schemas of an OpenAPI document that one kind needs, each schema once.
type parser struct {
	components map[string]json.RawMessage
	named      map[string]*component
	schemas    map[string]*Schema           // by their content
	rules      map[string]*rules            // by their content
	fallbacks  map[string]map[string]string // default values of the fields of named schemas
	fields     int
	err        error
}

// component is a named schema of the document. Schemas may be recursive, so that other schemas may refer to it before
// it is completely parsed.
type component struct {
	schema  *Schema
	pointed bool
	done    bool
}

// component parses a named schema. If a built-in type has no fields, such as RawExtension, its schema accepts any
// value.
func (p *parser) component(name string, depth int) *Schema {
	if c := p.named[name]; c != nil {
		c.pointed = c.pointed || !c.done
		return c.schema
	}
	raw, ok := p.components[name]
	if !ok {
		return nil
	}
	c := &component{schema: &Schema{open: true}}
	p.named[name] = c
	var e element
	if err := json.Unmarshal(raw, &e); err != nil {
		p.fail(fmt.Errorf("component %q: %w", name, err))
		return nil
	}
	e.Preserve = e.Preserve || len(e.Properties) == 0 && !e.Embedded && (e.Additional == nil || e.Additional.element == nil)
	read := p.read(&e, depth+1, false)
	switch {
	case !c.pointed:
		c.schema = read
	case read != nil:
		*c.schema = *read // a schema that only refers to itself stays open
	}
	c.done = true
	return c.schema
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// read converts an element to a schema. The result is nil if every value is accepted. alternative is true for a schema
// in allOf, anyOf, oneOf or not. An alternative accepts undeclared fields, because other schemas of the same value may
// declare them.
func (p *parser) read(e *element, depth int, alternative bool) *Schema {
	switch {
	case e == nil || p.err != nil || depth > maxDepth:
		return nil
	case e.Ref != "":
		return p.component(componentName(e.Ref), depth)
	case e.refers():
		return p.read(e.AllOf[0], depth+1, alternative)
	}
	s := Schema{types: typesOf(e), items: p.read(e.Items, depth+1, alternative), rules: p.rulesOf(e, depth)}
	p.object(&s, e, depth, alternative)
	return p.share(s)
}

// componentName returns the name of the schema to which a reference points.
func componentName(reference string) string {
	return strings.TrimPrefix(reference, "#/components/schemas/")
}

// refers reports whether the element, which is an OpenAPI schema, is only a reference in allOf. API servers write a
// reference in this form if it has a default or a description.
func (e *element) refers() bool {
	return len(e.AllOf) == 1 && len(e.AnyOf)+len(e.OneOf) == 0 && e.Type == nil && e.Properties == nil && e.Additional == nil &&
		e.Items == nil && !e.Either
}

func (p *parser) object(s *Schema, e *element, depth int, alternative bool) {
	parts := map[string]*Schema{}
	for name, property := range e.Properties {
		parts[name] = p.read(property, depth+1, alternative)
	}
	// A schema accepts undeclared fields unless its type is object.
	s.open = alternative || e.Preserve || e.Type != "object"
	for _, other := range e.branches() {
		if other == nil {
			continue
		}
		s.open = s.open || other.Ref != "" || other.Additional != nil
		for name := range other.Properties {
			if _, ok := parts[name]; !ok {
				parts[name] = nil
			}
		}
	}
	if e.Embedded { // an embedded object has the fields of every object
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			parts[name] = nil
		}
	}
	if e.Additional != nil {
		s.open = s.open || e.Additional.allowed
		s.values = p.read(e.Additional.element, depth+1, alternative)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		s.names = append(s.names, unique.Make(name).Value())
		s.parts = append(s.parts, parts[name])
	}
	for i, name := range s.names {
		property := e.Properties[name]
		if property == nil || property.Default == nil {
			continue
		}
		if s.fallbacks == nil {
			s.fallbacks = make([]string, len(s.names))
		}
		for _, text := range enumOf([]json.RawMessage{property.Default}) {
			s.fallbacks[i] = text
		}
	}
}

// rulesOf returns the rules of an OpenAPI schema (element): the requirements on a value beyond its type and fields. It
// returns nil if the element has no rules. Equal rules are stored once.
func (p *parser) rulesOf(e *element, depth int) *rules {
	var r rules
	for _, name := range e.Required {
		if property := e.Properties[name]; property == nil || property.Default == nil {
			r.required = append(r.required, unique.Make(name).Value())
		}
	}
	slices.Sort(r.required)
	r.enum = enumOf(e.Enum)
	if e.Pattern != "" && len(e.Pattern) <= maxPatternLength {
		r.pattern = e.Pattern
	}
	if b := e.bounds; b != (bounds{}) {
		r.bounds = &b // b is a copy, so that e does not stay in memory
	}
	if len(e.branches()) > 0 || e.Not != nil {
		r.others = &others{all: p.list(e.AllOf, depth), any: p.list(e.AnyOf, depth), one: p.list(e.OneOf, depth)}
		if e.Not != nil {
			r.others.not = p.read(e.Not, depth+1, true)
		}
	}
	r.identity = p.identityOf(e, depth)
	return p.shareRules(r)
}

func (p *parser) shareRules(r rules) *rules {
	if r.required == nil && r.enum == nil && r.pattern == "" && r.bounds == nil && r.others == nil && r.identity == nil {
		return nil
	}
	limits, err := json.Marshal(r.bounds)
	if err != nil {
		p.fail(err)
		return nil
	}
	key := fmt.Sprintf("%q %q %q %s %v %q", r.required, r.enum, r.pattern, limits, r.others, r.identity)
	if known := p.rules[key]; known != nil {
		return known
	}
	r.required, r.enum = slices.Clip(r.required), slices.Clip(r.enum)
	p.rules[key] = &r
	return &r
}

func (p *parser) list(elements []*element, depth int) []*Schema {
	var out []*Schema
	for _, e := range elements {
		out = append(out, p.read(e, depth+1, true))
	}
	return out
}

// share returns the stored schema that equals s. If there is none, it stores s and returns it.
func (p *parser) share(s Schema) *Schema {
	s.names, s.parts = slices.Clip(s.names), slices.Clip(s.parts)
	key := fmt.Sprintf("%d %t %q %v %q %p %p %p", s.types, s.open, s.names, s.parts, s.fallbacks, s.values, s.items, s.rules)
	if known := p.schemas[key]; known != nil {
		return known
	}
	if p.fields += len(s.names) + 1; p.fields > maxFields {
		p.fail(ErrTooManyFields)
		return nil
	}
	p.schemas[key] = &s
	return &s
}

func typesOf(e *element) types {
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

// enumOf returns the allowed values as JSON, in the same form as function Shown.
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
