package rollup

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// refuses returns an error if the schema does not allow a value, and nil if it does. It does not evaluate the CEL rules
// of the schema, which only the API server checks.
//
// The API server's validation library builds new validators for each value, which takes 0.2 ms for a small status.
// Therefore refuses uses the library only for schemas with unusual rules, together with misshapen, which finds what the
// library misses. For all other schemas, it uses the method compare.
func (n *node) refuses(value any) error {
	if n.validator == nil {
		return n.compare(value)
	}
	v, err := n.validator()
	if err != nil {
		return err
	}
	if faults := v.Validate(value).Errors; len(faults) > 0 {
		return faults[0]
	}
	return misshapen(n.props, value)
}

func newValidator(p *apiextensionsv1.JSONSchemaProps) (validation.SchemaValidator, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(p, &internal, nil); err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	v, _, err := validation.NewSchemaValidator(&internal)
	return v, err
}

var plainFormats = []string{"", "int32", "int64", "date-time"}

// plain reports whether the method compare can check all rules of a schema.
func plain(p *apiextensionsv1.JSONSchemaProps) bool {
	alternatives := len(p.AllOf) + len(p.OneOf) + len(p.AnyOf)
	if p.XIntOrString {
		alternatives -= len(p.AnyOf) // int-or-string declares its two types with anyOf
	}
	text := func(e apiextensionsv1.JSON) bool { return bytes.HasPrefix(e.Raw, []byte(`"`)) }
	return (p.Type != "" || p.XIntOrString) && alternatives == 0 && p.Not == nil && p.MultipleOf == nil && !p.ExclusiveMinimum && !p.ExclusiveMaximum &&
		!p.UniqueItems && !p.XEmbeddedResource && slices.Contains(plainFormats, p.Format) && !slices.ContainsFunc(p.Enum, func(e apiextensionsv1.JSON) bool { return !text(e) })
}

var errType = errors.New("it is of another type")

func (n *node) compare(value any) error {
	switch v := value.(type) {
	case string:
		return n.compareText(v)
	case int64:
		return n.compareNumber(float64(v), true)
	case float64:
		return n.compareNumber(v, false)
	case bool:
		if n.kind == "boolean" {
			return nil
		}
	case []any:
		return n.compareList(v)
	case map[string]any:
		return n.compareObject(v)
	case nil:
		if n.props.Nullable {
			return nil
		}
	}
	return errType
}

func (n *node) compareText(v string) error {
	length := int64(utf8.RuneCountInString(v))
	switch {
	case n.kind != "string" && n.kind != intOrString:
		return errType
	case !n.allows(v):
		return fmt.Errorf("%q is not allowed", v)
	case !within(length, n.props.MinLength, n.props.MaxLength):
		return fmt.Errorf("it has %d characters", length)
	}
	// API servers refuse a time whose hour has one digit. The Go package time accepts it, so that it is checked here.
	if n.format == "date-time" && !strfmt.IsDateTime(v) {
		return fmt.Errorf("%q is not a time", v)
	}
	return nil
}

func (n *node) compareNumber(v float64, whole bool) error {
	switch {
	case n.kind != "number" && !(whole && n.countable()):
		return errType
	case len(n.enum) > 0, n.props.Minimum != nil && v < *n.props.Minimum, n.props.Maximum != nil && v > *n.props.Maximum:
		return fmt.Errorf("%v is not allowed", v)
	case n.format == "int32" && (v > math.MaxInt32 || v < math.MinInt32):
		return fmt.Errorf("%v is too large", v)
	}
	return nil
}

func (n *node) compareList(v []any) error {
	switch {
	case n.kind != "array":
		return errType
	case !within(int64(len(v)), n.props.MinItems, n.props.MaxItems):
		return fmt.Errorf("it has %d entries", len(v))
	}
	if err := distinct(n.props, v); err != nil {
		return err
	}
	for i, e := range v {
		if n.items == nil {
			return errType
		}
		if err := n.items.refuses(e); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func (n *node) compareObject(v map[string]any) error {
	switch {
	case n.kind != "object":
		return errType
	case !within(int64(len(v)), n.props.MinProperties, n.props.MaxProperties):
		return fmt.Errorf("it has %d fields", len(v))
	}
	for _, name := range n.required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s is required", name)
		}
	}
	for name, e := range v {
		field := n.properties[name]
		if field == nil {
			field = n.items
		}
		switch {
		case field != nil:
			if err := field.refuses(e); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		case !takesAny(n.props, name):
			return undeclared(name)
		}
	}
	return nil
}

func within(n int64, minimum, maximum *int64) bool {
	return (minimum == nil || n >= *minimum) && (maximum == nil || n <= *maximum)
}
