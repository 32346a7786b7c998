package fields

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/member/openapi"
)

// mostFields are kept of one kind: a member writes its schemas as it likes.
const mostFields = 50_000

// element is the part of a schema of OpenAPI that is read.
type element struct {
	Ref        string                       `json:"$ref"`
	Type       any                          `json:"type"`
	Properties map[string]*element          `json:"properties"`
	Additional *openapi.Additional[element] `json:"additionalProperties"`
	Items      *element                     `json:"items"`
	AllOf      []*element                   `json:"allOf"`
	AnyOf      []*element                   `json:"anyOf"`
	OneOf      []*element                   `json:"oneOf"`
	Preserve   bool                         `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded   bool                         `json:"x-kubernetes-embedded-resource"`
	Either     bool                         `json:"x-kubernetes-int-or-string"`
}

// Parse reads the schema of one kind from an OpenAPI v3 document of its group and version. Parts of the document that
// the kind does not need are not read.
func Parse(raw []byte, gvk schema.GroupVersionKind) (*Schema, error) {
	components, name, err := openapi.Read(raw, gvk)
	if err != nil {
		return nil, err
	}
	p := &parser{components: components, named: map[string]*component{}, shared: map[string]*Schema{}}
	root := p.component(name, 0)
	if p.err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", gvk, p.err)
	}
	if root == nil {
		root = &Schema{open: true} // it says nothing, or allows everything
	}
	return root, nil
}

// parser reads the components that one kind needs, each once.
type parser struct {
	components openapi.Components
	named      map[string]*component
	// shared has every part by what is in it, so that equal parts are kept once.
	shared map[string]*Schema
	fields int
	err    error
}

// component is a named schema. While it is being read, parts of it may already point to it.
type component struct {
	schema  *Schema
	pointed bool
	done    bool
}

// component reads a named schema. What says object and names no field is how native types say that they hold anything.
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
	read := p.read(&e, depth+1)
	if read != nil && len(read.names) == 0 && read.values == nil && read.items == nil {
		read = nil
	}
	switch {
	case !c.pointed:
		c.schema = read
	case read != nil:
		*c.schema = *read // else it stays open: it says nothing but that it contains itself
	}
	c.done = true
	return c.schema
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// read reduces an element. Nil is a value that is not looked into.
func (p *parser) read(e *element, depth int) *Schema {
	switch {
	case e == nil || p.err != nil || e.Either || depth > openapi.MostDepth:
		return nil
	case e.Ref != "":
		return p.component(openapi.Referred(e.Ref), depth)
	case e.Properties == nil && e.Additional == nil && e.Items == nil && e.Type == nil:
		if len(e.AllOf) == 1 && len(e.AnyOf) == 0 && len(e.OneOf) == 0 {
			return p.read(e.AllOf[0], depth+1) // a reference with a default or a description
		}
		return nil
	case e.Items != nil:
		if items := p.read(e.Items, depth+1); items != nil {
			return p.share(Schema{items: items})
		}
		return nil
	case e.Type == "object" || e.Properties != nil || e.Additional != nil:
		return p.object(e, depth)
	}
	return nil
}

func (p *parser) object(e *element, depth int) *Schema {
	parts := map[string]*Schema{}
	for name, property := range e.Properties {
		parts[name] = p.read(property, depth+1)
	}
	s := Schema{open: e.Preserve}
	for _, alternative := range slices.Concat(e.AllOf, e.AnyOf, e.OneOf) {
		if alternative == nil {
			continue
		}
		s.open = s.open || alternative.Ref != "" || alternative.Additional != nil
		for name := range alternative.Properties {
			if _, ok := parts[name]; !ok {
				parts[name] = nil
			}
		}
	}
	if e.Embedded { // a whole object: what every object has is known of it
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			parts[name] = nil
		}
	}
	if e.Additional != nil && e.Additional.Allowed {
		if s.values = p.read(e.Additional.Element, depth+1); s.values == nil {
			s.open = true
		}
	}
	if s.open && s.values == nil && !slices.ContainsFunc(slices.Collect(maps.Values(parts)), func(part *Schema) bool { return part != nil }) {
		return nil // nothing in it can be unknown
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		s.names = append(s.names, unique.Make(name).Value())
		s.parts = append(s.parts, parts[name])
	}
	return p.share(s)
}

// share returns the one that is equal to s, if there is one.
func (p *parser) share(s Schema) *Schema {
	s.names, s.parts = slices.Clip(s.names), slices.Clip(s.parts)
	key := fmt.Sprintf("%q %v %t %p %p", s.names, s.parts, s.open, s.values, s.items)
	if known := p.shared[key]; known != nil {
		return known
	}
	if p.fields += len(s.names) + 1; p.fields > mostFields {
		p.fail(fmt.Errorf("it has more than %d fields", mostFields))
		return nil
	}
	p.shared[key] = &s
	return &s
}
