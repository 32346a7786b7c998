// Package fields finds in an object what a server's schema of its kind does not have, and so would refuse or drop
// without a word.
//
// A schema is read from the OpenAPI v3 document of the kind's group and version, and only what the question needs is
// kept: the names of fields, and where any name is allowed. Values, types and required fields are the server's to
// judge. What a schema leaves open counts as known: it is better to let a server refuse than to refuse in its place.
//
// It talks to no server; member/served keeps the schemas.
package fields

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Schema is what is known of the value at one place. Nil stands for a value that is not looked into: a scalar, or
// anything. Parts that are equal are shared, and a schema may contain itself.
type Schema struct {
	names []string  // of the fields, sorted
	parts []*Schema // of the fields, in the order of names
	// open is true if fields that are not named are kept, too. They are not looked into.
	open bool
	// values is of the fields that are not named, if they are looked into; items is of the items of a list.
	values, items *Schema
}

// field returns the schema of a field; false if it is not known.
func (s *Schema) field(name string) (*Schema, bool) {
	if i, ok := slices.BinarySearch(s.names, name); ok {
		return s.parts[i], true
	}
	return s.values, s.open || s.values != nil
}

// Step is one step from a value to a part of it: into the field Name, or, if that is empty, to the item Index of a
// list. A field that has no name cannot be declared, but may be sent: it has Field set.
type Step struct {
	Name  string
	Index int
	Field bool
}

// Path leads from an object to a field.
type Path []Step

// String is such as .spec.containers[0].image.
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

// Unknown returns the fields of an object that the schema of its kind does not have, in the order of their names; of a
// field that is not known not its parts. The metadata is the same for every kind, and is not looked into.
func Unknown(s *Schema, object map[string]any) []Path {
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

// value looks into a value as far as it has the shape that the schema says.
func (f *finder) value(s *Schema, value any) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if s.items != nil {
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

// Without returns a copy of an object without the fields that Unknown found in it.
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
