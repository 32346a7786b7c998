// Package openapi stores the schema of one kind and compares objects with it. It finds fields that are not in the
// schema, and values that violate it.
//
// The schema comes from the OpenAPI v3 document that an API server publishes for the group and version, both for
// built-in and custom kinds. The same check therefore works for hub objects and for their copies on members.
//
//   - Equal parts of a schema are stored once, and descriptions are dropped.
//   - The check reports no fault where the schema accepts any value. A null is always accepted. Formats of strings and
//     rules in CEL are left to the server, because the check must never refuse a valid object.
//   - The checks skip apiVersion, kind and metadata, which are the same for every kind.
//
// The package sends no requests; member/discovery caches the schemas.
package openapi

import (
	"slices"
)

// Schema describes the valid values at one place of an object. A nil Schema accepts every value. Equal parts of schemas
// are stored once, and a schema may contain itself. A parsed Schema never changes.
type Schema struct {
	types types // allowed types; 0 allows every type
	// open is true if the value may have undeclared fields. values is the schema of these fields. If values is nil,
	// undeclared fields may have any value.
	open  bool
	names []string  // names of the fields, sorted
	parts []*Schema // schemas of the fields, in the order of names
	// fallbacks are the defaults of the fields as JSON, in the order of names. A field without a default has "". fallbacks
	// is nil if no field has a default.
	fallbacks []string
	values    *Schema
	items     *Schema
	rules     *rules // nil if there are no rules
}

// rules are the requirements on a value beyond its type and fields.
type rules struct {
	required []string
	enum     []string // the allowed values, as JSON
	pattern  string   // a regular expression; empty if there is none
	bounds   *bounds
	others   *others
	identity *identity // identity of the entries of a list; nil if duplicates are allowed
}

// others are the schemas in allOf (all), anyOf (any), oneOf (one) and not. A value must match all schemas in allOf, at
// least one in anyOf and exactly one in oneOf. It must not match the schema in not.
type others struct {
	all, any, one []*Schema
	not           *Schema
}

// bounds are the limits of a number, of a text, and of the size of a list or a map. The fields have the same names as
// in OpenAPI.
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

// field returns the schema of a field. It returns false if the schema does not declare the field.
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

// accepts reports whether the schema accepts values of this type.
func (s *Schema) accepts(t types) bool { return s.types == 0 || s.types&t != 0 }
