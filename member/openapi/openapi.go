// Package openapi stores the schema of one kind and compares objects with it: which of their fields the schema lacks,
// and which of their values violate it.
//
// The schema comes from the OpenAPI v3 document that an API server publishes for the group and version, for built-in
// and custom kinds alike. So one check serves the hub's objects and their copies on members.
//
//   - Equal parts of a schema are stored once, and descriptions are dropped.
//   - A place that the schema leaves open has no faults: it is better that the server refuses an object than that this
//     check refuses a valid one. A null is always accepted. Only the server checks formats of strings and rules in CEL.
//   - The checks skip apiVersion, kind and metadata, which are the same for every kind.
//
// It sends no requests; member/served caches the schemas.
package openapi

import (
	"regexp"
	"slices"
	"sync"
)

// Schema describes the value at one place. Nil accepts every value. Equal parts are shared, and a schema may contain
// itself. A parsed Schema does not change.
type Schema struct {
	types types // allowed types; 0 means every type
	// open is true if undeclared fields are accepted, too. They are checked against values if values is set.
	open   bool
	names  []string  // names of the fields, sorted
	parts  []*Schema // schemas of the fields, in the order of names
	values *Schema
	items  *Schema
	rules  *rules // nil: none
}

// rules are the requirements on a value beyond its type and fields.
type rules struct {
	required []string
	enum     []string // as JSON
	pattern  *pattern
	bounds   *bounds
	others   *others
	identity *identity // of the entries of a list
}

// others are schemas of which the value must match all, any, exactly one, or not that one.
type others struct {
	all, any, one []*Schema
	not           *Schema
}

// bounds of a number, a text, a list and a map, in the notation of OpenAPI.
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
	re   *regexp.Regexp // nil if it is invalid
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

// takes reports whether values of this type are accepted.
func (s *Schema) takes(t types) bool { return s.types == 0 || s.types&t != 0 }
