package openapi

import (
	"encoding/json"
	"maps"
	"slices"
)

// Default is a value of an object that equals the default of its field.
type Default struct {
	Path  Path
	Value string // as JSON
}

// Defaults returns the values of an object that equal the defaults of the schema, sorted by name: scalars, and empty
// maps and lists. It does not return values in metadata.
func (s *Schema) Defaults(object map[string]any) []Default {
	if s == nil {
		return nil
	}
	var found defaults
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name != "apiVersion" && name != "kind" && name != "metadata" && name != "status" {
			found.field(s, name, object[name], nil)
		}
	}
	return found.found
}

// Default returns the default of a field as JSON, or an empty text if it has none. declared is false if the schema does
// not have the field.
func (s *Schema) Default(path Path) (value string, declared bool) {
	var above map[string]any
	for _, step := range path {
		switch {
		case s == nil:
			return "", true // every value is accepted
		case !step.Field:
			s, value, above = s.items, "", nil
		default:
			part, known := s.field(step.Name)
			if !known {
				return "", false
			}
			value = s.fallback(step.Name, above)
			s, above = part, fieldsOf(value)
		}
	}
	return value, true
}

// fallback returns the default of a field as JSON, or an empty text. above is the default of the map with the field, or
// nil.
func (s *Schema) fallback(name string, above map[string]any) string {
	if v, ok := above[name]; ok {
		return jsonOf(v)
	}
	if i, ok := slices.BinarySearch(s.names, name); ok && s.fallbacks != nil {
		return s.fallbacks[i]
	}
	return ""
}

// fieldsOf returns the fields of a map, which is given as JSON. It returns nil for other values.
func fieldsOf(text string) map[string]any {
	var out map[string]any
	if text == "" || text[0] != '{' || json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}

func jsonOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	for _, text := range enumOf([]json.RawMessage{raw}) {
		return text
	}
	return ""
}

// defaults collects the values of an object that equal the defaults.
type defaults struct {
	at    Path
	found []Default
}

func (d *defaults) field(s *Schema, name string, value any, above map[string]any) {
	d.at = append(d.at, Step{Name: name, Field: true})
	fallback := s.fallback(name, above)
	part, _ := s.field(name)
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 {
			d.fields(part, v, fieldsOf(fallback))
		} else if fallback == "{}" {
			d.add(fallback)
		}
	case []any:
		if len(v) > 0 {
			d.items(part, v)
		} else if fallback == "[]" {
			d.add(fallback)
		}
	default:
		if fallback != "" && jsonOf(value) == fallback {
			d.add(fallback)
		}
	}
	d.at = d.at[:len(d.at)-1]
}

func (d *defaults) fields(s *Schema, value, above map[string]any) {
	if s == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		d.field(s, name, value[name], above)
	}
}

func (d *defaults) items(s *Schema, list []any) {
	if s == nil || s.items == nil {
		return
	}
	for i, item := range list {
		if m, ok := item.(map[string]any); ok {
			d.at = append(d.at, Step{Index: i})
			d.fields(s.items, m, nil)
			d.at = d.at[:len(d.at)-1]
		}
	}
}

func (d *defaults) add(value string) {
	d.found = append(d.found, Default{Path: slices.Clone(d.at), Value: value})
}
