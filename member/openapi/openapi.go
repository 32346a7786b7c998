// Package openapi keeps the schema of one kind and compares objects with it: which of their fields the schema lacks,
// and which of their values violate it.
//
// The schema is the one that an API server publishes in the OpenAPI v3 document of the kind's group and version, for
// built-in kinds and for custom ones alike. So one check serves the hub's objects and their copies on members.
//   - Parts of a schema that are equal are kept once, and descriptions are not kept.
//   - A place that the schema leaves open has no faults: it is better to let the server refuse an object than to refuse
//     a valid one. A null is accepted everywhere. Only the server checks formats of strings and rules in CEL.
//   - The checks do not look into apiVersion, kind and metadata, which are the same for every kind.
//
// It talks to no server; member/served keeps the schemas.
package openapi

import (
	"regexp"
	"slices"
	"sync"
)

// Schema describes the value at one place. Nil accepts every value. Equal parts are shared, and a schema may contain
// itself. A parsed Schema does not change.
type Schema struct {
	types types // any of them; 0 is every type
	// open is true if unnamed fields are accepted, too. They are compared with values if values is set.
	open   bool
	names  []string  // of the fields, sorted
	parts  []*Schema // of the fields, in the order of names
	values *Schema
	items  *Schema
	rules  *rules // nil: none
}

// rules are the demands on a value beyond its type and fields.
type rules struct {
	required []string
	enum     []string // as JSON
	pattern  *pattern
	bounds   *bounds
	others   *others
	identity *identity // of the entries of a list
}

// others are schemas of which the value has to fit all, any, exactly one, or not that one.
type others struct {
	all, any, one []*Schema
	not           *Schema
}

// bounds of a number, a text, a list and a map, as OpenAPI writes them.
type bounds struct {
	Minimum          *float64 `json:"minimum,omitempty"`
	Maximum          *float64 `json:"maximum,omitempty"`
	ExclusiveMinimum bool     `json:"exclusiveMinimum,omitempty"`
	ExclusiveMaximum bool     `json:"exclusiveMaximum,omitempty"`
	MultipleOf       *float64 `json:"multipleOf,omitempty"`
	MinLength        *int64   `json:"minLength,omitempty"`
	MaxLength        *int64   `json:"maxLength,omitempty"`
	MinItems         *int64   `json:"minItems,omitempty"`
	MaxItems         *int64   `json:"maxItems,omitempty"`
	UniqueItems      bool     `json:"uniqueItems,omitempty"`
	MinProperties    *int64   `json:"minProperties,omitempty"`
	MaxProperties    *int64   `json:"maxProperties,omitempty"`
}

// pattern is compiled when it is first needed.
type pattern struct {
	text string
	once sync.Once
	re   *regexp.Regexp // nil if it cannot be read
}

func (p *pattern) matches(s string) bool {
	p.once.Do(func() { p.re, _ = regexp.Compile(p.text) })
	return p.re == nil || p.re.MatchString(s)
}

// field returns the schema of a field; false if there is no such field.
func (s *Schema) field(name string) (*Schema, bool) {
	if i, ok := slices.BinarySearch(s.names, name); ok {
		return s.parts[i], true
	}
	return s.values, s.open
}

func (s *Schema) declares(name string) bool {
	_, ok := slices.BinarySearch(s.names, name)
	return ok
}

// takes reports whether values of this type may be taken.
func (s *Schema) takes(t types) bool { return s.types == 0 || s.types&t != 0 }
