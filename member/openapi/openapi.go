// Package openapi finds the schema of one kind in the OpenAPI v3 document that an API server publishes for a group and
// version. What is read of it is up to whoever asks: member/fields keeps names, member/values what values may be.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNoSchema means that the document has no schema of the kind.
var ErrNoSchema = errors.New("the document has no schema of the kind")

// MostDepth is how deep a schema is read: whoever publishes it writes it as they like.
const MostDepth = 200

// Components are the named schemas of a document. They are decoded one by one, by those who need them.
type Components map[string]json.RawMessage

// Read returns the components of a document, and the name of the one that is the schema of the kind. The error is
// ErrNoSchema, or says that the document cannot be read.
func Read(raw []byte, gvk schema.GroupVersionKind) (all Components, kind string, err error) {
	var document struct {
		Components struct {
			Schemas Components `json:"schemas"`
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

// Referred is the name of the component that a $ref leads to.
func Referred(ref string) string { return strings.TrimPrefix(ref, "#/components/schemas/") }

// Additional is a value of additionalProperties: a schema, or true or false.
type Additional[E any] struct {
	// Allowed is false for false alone.
	Allowed bool
	// Element is nil if no schema is given.
	Element *E
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Additional[E]) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &a.Allowed); err == nil {
		return nil
	}
	a.Allowed = true
	return json.Unmarshal(raw, &a.Element)
}
