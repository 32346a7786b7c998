package openapi

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Step is one step from a value to a part of it. If Field is true, it leads to the field Name, otherwise to the item
// Index of a list. Name may be empty: such a field cannot be declared, but an object may have it.
type Step struct {
	Name  string
	Index int
	Field bool
}

// Path has the steps from an object to a field.
type Path []Step

// String returns a text such as .spec.containers[0].image.
func (p Path) String() string {
	var out strings.Builder
	for _, s := range p {
		switch {
		case !s.Field:
			out.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case plain(s.Name):
			out.WriteString("." + s.Name)
		default:
			out.WriteString("[" + strconv.Quote(s.Name) + "]")
		}
	}
	return out.String()
}

func plain(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '$' {
			return false
		}
	}
	return name != ""
}

// Unknown returns the fields of an object that are not in the schema, sorted by name. It does not return the fields
// inside an unknown field.
func (s *Schema) Unknown(object map[string]any) []Path {
	if s == nil {
		return nil
	}
	var found finder
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			found.field(s, name, object[name])
		}
	}
	return found.unknown
}

type finder struct {
	at      Path
	unknown []Path
}

func (f *finder) field(s *Schema, name string, value any) {
	f.at = append(f.at, Step{Name: name, Field: true})
	if part, known := s.field(name); known {
		f.value(part, value)
	} else {
		f.unknown = append(f.unknown, slices.Clone(f.at))
	}
	f.at = f.at[:len(f.at)-1]
}

// value searches a value for unknown fields, if the value has the type that the schema requires.
func (f *finder) value(s *Schema, value any) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if !s.accepts(isObject) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f.field(s, name, v[name])
		}
	case []any:
		for i, item := range v {
			f.at = append(f.at, Step{Index: i})
			f.value(s.items, item)
			f.at = f.at[:len(f.at)-1]
		}
	}
}

// Without returns a copy of an object without the given fields, which Unknown has found in it.
func Without(object *unstructured.Unstructured, unknown []Path) *unstructured.Unstructured {
	out := object.DeepCopy()
	for _, path := range unknown {
		drop(out.Object, path)
	}
	return out
}

func drop(value any, path Path) {
	for i, s := range path {
		switch v := value.(type) {
		case map[string]any:
			if i == len(path)-1 {
				delete(v, s.Name)
				return
			}
			value = v[s.Name]
		case []any:
			value = v[s.Index]
		}
	}
}
