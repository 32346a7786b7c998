package rollup

import (
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// misshapen returns an error for values that the validation library allows, but server-side apply refuses. These are an
// undeclared field, a list with duplicate items, and a list or object in place of a string with a format.
func misshapen(p *apiextensionsv1.JSONSchemaProps, value any) error {
	switch v := value.(type) {
	case []any:
		if p.Type != "" && p.Type != "array" {
			return errType
		}
		if err := distinct(p, v); err != nil {
			return err
		}
		for i, e := range v {
			if p.Items == nil || p.Items.Schema == nil {
				break
			}
			if err := misshapen(p.Items.Schema, e); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case map[string]any:
		if p.Type != "" && p.Type != "object" {
			return errType
		}
		for name, e := range v {
			field := declared(p, name)
			switch {
			case field != nil:
				if err := misshapen(field, e); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			case !takesAny(p, name):
				return undeclared(name)
			}
		}
	}
	return nil
}

// declared returns the schema of an object's field, or of a map's values. It is nil if the schema p does not declare
// the field.
func declared(p *apiextensionsv1.JSONSchemaProps, name string) *apiextensionsv1.JSONSchemaProps {
	if field, ok := p.Properties[name]; ok {
		return &field
	}
	if p.AdditionalProperties != nil {
		return p.AdditionalProperties.Schema
	}
	return nil
}

// takesAny reports whether an object may have a field of this name although its schema does not declare the field.
func takesAny(p *apiextensionsv1.JSONSchemaProps, name string) bool {
	embedded := p.XEmbeddedResource && (name == "apiVersion" || name == "kind" || name == "metadata")
	return embedded || p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields || p.AdditionalProperties != nil && p.AdditionalProperties.Allows
}

func undeclared(name string) error { return fmt.Errorf("%s is not a field of the schema", name) }

// distinct returns an error for a list with duplicate items or keys. It returns nil for a list type that allows
// duplicates.
func distinct(p *apiextensionsv1.JSONSchemaProps, list []any) error {
	if p.XListType == nil || *p.XListType == "atomic" {
		return nil
	}
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		if *p.XListType == "map" {
			var ok bool
			if e, ok = keysOf(p, e); !ok {
				return errors.New("an entry has no key")
			}
		}
		text, err := json.Marshal(e)
		if err != nil || seen[string(text)] {
			return errors.New("an entry is duplicated")
		}
		seen[string(text)] = true
	}
	return nil
}

// keysOf returns the values of the key fields of an item in a list of maps. A missing key field has its default value.
// ok is false if it has no default.
func keysOf(p *apiextensionsv1.JSONSchemaProps, e any) (keys []any, ok bool) {
	entry, _ := e.(map[string]any)
	for _, key := range p.XListMapKeys {
		value, has := entry[key]
		if !has && p.Items != nil && p.Items.Schema != nil {
			if d := p.Items.Schema.Properties[key].Default; d != nil {
				value, has = json.RawMessage(d.Raw), true
			}
		}
		if !has {
			return nil, false
		}
		keys = append(keys, value)
	}
	return keys, true
}
