package openapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"unique"
)

// identity tells what identifies an item of a list with the x-kubernetes-list-type map or set: the values of its key
// fields, or the whole item if keys is empty. Server-side apply refuses duplicate items. A create of a built-in kind
// accepts them.
type identity struct{ keys []key }

// key is a key field of an item. fallback is its default as JSON, or empty if it has no default.
type key struct{ name, fallback string }

// identityOf returns the identity of a list's items. The result is nil if the list may have duplicate items.
func (p *parser) identityOf(e *element, depth int) *identity {
	switch {
	case e.ListType == "set":
		return &identity{}
	case e.ListType != "map" || len(e.ListKeys) == 0:
		return nil
	}
	defaults := p.defaults(e.Items, depth)
	id := &identity{}
	for _, name := range e.ListKeys {
		id.keys = append(id.keys, key{unique.Make(name).Value(), defaults[name]})
	}
	return id
}

// defaults returns the default values of the fields of a list's items, as JSON, by field name. e is the schema of the
// items.
func (p *parser) defaults(e *element, depth int) map[string]string {
	switch {
	case e == nil || depth > maxDepth:
		return nil
	case e.Ref != "":
		return p.namedDefaults(componentName(e.Ref), depth)
	case e.refers():
		return p.defaults(e.AllOf[0], depth+1)
	}
	found := map[string]string{}
	for name, property := range e.Properties {
		if property == nil || property.Default == nil {
			continue
		}
		for _, text := range enumOf([]json.RawMessage{property.Default}) {
			found[name] = text
		}
	}
	return found
}

// namedDefaults returns the default values of the fields of a named schema. It decodes each schema once.
func (p *parser) namedDefaults(name string, depth int) map[string]string {
	if found, ok := p.fallbacks[name]; ok {
		return found
	}
	p.fallbacks[name] = nil // the schema may refer to itself
	var named element
	if json.Unmarshal(p.components[name], &named) == nil {
		p.fallbacks[name] = p.defaults(&named, depth+1)
	}
	return p.fallbacks[name]
}

// fault returns the message for an item whose identity another item of the list has, too.
func (i *identity) fault() string {
	if len(i.keys) == 0 {
		return "must differ from the entries before it"
	}
	names := make([]string, len(i.keys))
	for n, k := range i.keys {
		names[n] = k.name
	}
	return "must have another " + strings.Join(names, " or ") + " than the entries before it"
}

// of returns the text that identifies an item in its list. value is the scalar that identifies the item, or nil if
// several values do. ok is false if the item lacks a key.
func (i *identity) of(entry any) (id string, value any, ok bool) {
	if len(i.keys) == 0 {
		raw, err := json.Marshal(entry)
		return string(raw), entry, err == nil
	}
	fields, _ := entry.(map[string]any)
	var values []string
	for _, k := range i.keys {
		text := k.fallback
		if v, there := fields[k.name]; there {
			raw, err := json.Marshal(v)
			if err != nil {
				return "", nil, false
			}
			text, value = string(raw), v
		}
		if text == "" {
			return "", nil, false
		}
		values = append(values, text)
	}
	if len(values) > 1 {
		value = nil
	}
	return strings.Join(values, " "), value, true
}

// apart reports a fault for each duplicate item of a list.
func (c *checker) apart(i *identity, list []any) {
	seen := make(map[string]bool, len(list))
	for n, entry := range list {
		if c.done() {
			return
		}
		id, value, ok := i.of(entry)
		if !ok {
			continue
		}
		if seen[id] {
			c.path = append(c.path, place{key: strconv.Itoa(n)})
			c.fault(i.fault(), value)
			c.path = c.path[:len(c.path)-1]
		}
		seen[id] = true
	}
}
