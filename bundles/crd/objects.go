package crd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// objects checks the live objects that are sent at one version, which both definitions serve. was and is are this
// version in the old and the new definition.
func (c *checker) objects(ctx context.Context, was, is *apiextensionsv1.CustomResourceDefinitionVersion) error {
	if len(c.sent[was.Name]) == 0 || c.sameFor(was, is) {
		return nil
	}
	after, err := newServer(c.after, is)
	if err != nil {
		return fmt.Errorf("reading the schema of version %s: %w", is.Name, err)
	}
	before, err := newServer(c.before, was)
	if err != nil {
		before = &server{} // an invalid old definition counts as one that accepts every object
	}
	for _, i := range c.sent[was.Name] {
		if err := c.object(ctx, i, was.Name, before, after); err != nil {
			return err
		}
	}
	return nil
}

// sameFor reports whether both definitions treat the objects of a version in the same way: they accept the same objects
// and remove the same fields. If so, these objects need no check.
func (c *checker) sameFor(was, is *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	old, now := storageOf(c.before), storageOf(c.after)
	sameStorage := old == nil && now == nil || old != nil && now != nil && equality.Semantic.DeepEqual(old.Schema, now.Schema)
	return sameStorage && equality.Semantic.DeepEqual(was.Schema, is.Schema) &&
		c.before.Spec.PreserveUnknownFields == c.after.Spec.PreserveUnknownFields && strategyOf(c.before) == strategyOf(c.after)
}

func (c *checker) object(ctx context.Context, i int, version string, before, after *server) error {
	content := withoutStatus(c.all[i].Content.Object)
	dropped(before.stored(content), after.stored(content), place{schema: before.schema}, func(p place) {
		c.add(Finding{
			Rule: RuleFieldRemoved, Path: p.declared, Version: version, Message: p.shown() + " is dropped, because the field is removed",
		}, true, []int{i})
	})
	faults, err := after.faults(ctx, content)
	if err != nil || len(faults) == 0 {
		return err
	}
	if old, err := before.faults(ctx, content); err != nil || len(old) > 0 {
		return err
	}
	for _, f := range faults {
		c.add(Finding{Rule: f.rule, Path: f.place.declared, Version: version, Message: f.place.shown() + " " + f.message}, true, []int{i})
	}
	return nil
}

// server checks objects of one version in the same way as an API server with this definition. The zero value accepts
// every object unchanged.
type server struct {
	schema    *structuralschema.Structural
	validator validation.SchemaValidator
	rules     func() *cel.Validator
	// pruned are the schemas by which an API server removes undeclared fields before it stores an object. One is the
	// schema of the version. The other is the schema of the storage version, unless a webhook converts the objects.
	pruned []*structuralschema.Structural
}

func newServer(crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) (*server, error) {
	props, schema, err := readSchema(version)
	if err != nil || schema == nil {
		return &server{}, err
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	s := &server{schema: schema, validator: validator}
	s.rules = sync.OnceValue(func() *cel.Validator { return cel.NewValidator(schema, true, celconfig.PerCallLimit) })
	if crd.Spec.PreserveUnknownFields {
		return s, nil
	}
	s.pruned = append(s.pruned, schema)
	storage := storageOf(crd)
	if storage == nil || storage.Name == version.Name || strategyOf(crd) != string(apiextensionsv1.NoneConverter) {
		return s, nil
	}
	_, stored, err := readSchema(storage)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of the storage version %s: %w", storage.Name, err)
	}
	if stored != nil {
		s.pruned = append(s.pruned, stored)
	}
	return s, nil
}

// readSchema returns the schema of a version in two forms. Both are nil for a version without a schema.
func readSchema(version *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.JSONSchemaProps, *structuralschema.Structural, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, nil, nil
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, nil, err
	}
	schema, err := structuralschema.NewStructural(props)
	return props, schema, err
}

// stored returns the fields of an object that remain after an API server has pruned and stored it. It does not change
// content.
func (s *server) stored(content map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(content)
	for _, schema := range s.pruned {
		pruning.Prune(out, schema, true)
	}
	return out
}

// fault is a value in an object that a definition refuses.
type fault struct {
	rule, message string
	place         place
}

// faults returns the values that the schema, or the types of its lists, refuse. Only if there are none, faults
// evaluates the CEL rules of the schema, and returns the values that these rules refuse.
func (s *server) faults(ctx context.Context, content map[string]any) ([]fault, error) {
	if s.schema == nil {
		return nil, nil
	}
	taken := runtime.DeepCopyJSON(content)
	if len(s.pruned) > 0 {
		pruning.Prune(taken, s.schema, true)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(taken, s.schema)
	defaulting.Default(taken, s.schema)
	rule, errs := RuleObject, validation.ValidateCustomResource(nil, taken, s.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.schema, taken)...)
	if len(errs) == 0 {
		rule = RuleExpression
		errs, _ = s.rules().Validate(ctx, nil, s.schema, taken, nil, celconfig.RuntimeCELCostBudget)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("evaluating the rules: %w", err)
		}
	}
	var out []fault
	for _, err := range errs {
		out = append(out, fault{rule: rule, message: reason(err), place: find(err.Field, taken, s.schema)})
	}
	return out, nil
}

// reason returns the text of a validation error. It leaves out the value of the object.
func reason(err *field.Error) string {
	const maxRunes = 200
	text := err.Detail
	if _, after, ok := strings.Cut(text, " in body "); ok { // kube-openapi's texts begin with the path
		text = after
	}
	switch err.Type {
	case field.ErrorTypeRequired:
		text = strings.TrimSuffix("is required: "+text, ": ")
	case field.ErrorTypeNotSupported:
		text = "has a value that is not supported: " + text
	case field.ErrorTypeDuplicate:
		text = "has the key or the value of another item of the list, which the new definition allows only once"
	case field.ErrorTypeTypeInvalid: // the text ends with the value
		text, _, _ = strings.Cut(text, ": ")
	case field.ErrorTypeInvalid:
		if !strings.HasPrefix(text, "should ") && !strings.HasPrefix(text, "must ") {
			text = "is refused: " + text
		}
	}
	return hubv1.CutMessage(text, maxRunes)
}

// dropped calls found for each field that the object was has and the object is lacks. at is the position of both values
// in the whole object.
func dropped(was, is any, at place, found func(place)) {
	switch was := was.(type) {
	case map[string]any:
		now, _ := is.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(was)) {
			if value, ok := now[name]; ok {
				dropped(was[name], value, at.key(name), found)
			} else {
				found(at.key(name))
			}
		}
	case []any:
		now, _ := is.([]any)
		for i := range min(len(was), len(now)) {
			dropped(was[i], now[i], at.index(i), found)
		}
	}
}

// place is a position in an object. path is its JSON pointer, and declared is this pointer with "*" for any index or
// key of a map.
type place struct {
	path, declared string
	// schema is the schema of the value at this position. It is nil if the schema is not known.
	schema *structuralschema.Structural
}

func (p place) shown() string {
	if p.path == "" {
		return "the object"
	}
	return hubv1.CutMessage(p.path, 200)
}

func (p place) index(i int) place {
	next := place{path: p.path + "/" + strconv.Itoa(i), declared: p.declared + "/*"}
	if p.schema != nil {
		next.schema = p.schema.Items
	}
	return next
}

func (p place) key(name string) place {
	next := place{path: p.path + step(name), declared: p.declared + step(name)}
	if p.schema == nil {
		return next
	}
	if below, ok := p.schema.Properties[name]; ok {
		next.schema = &below
	} else if more := p.schema.AdditionalProperties; more != nil {
		next.declared, next.schema = p.declared+"/*", more.Structural
	}
	return next
}

// find returns the position in an object that the path of a validation error names, such as spec.hours[0].start or
// spec.labels[a.b]. A key may contain dots and brackets. To recognise such a key, find looks for it in the object.
func find(path string, object any, schema *structuralschema.Structural) place {
	at := place{schema: schema}
	for rest := strings.TrimPrefix(path, "."); rest != "" && rest != "<nil>"; {
		name, after := nextStep(rest, object)
		switch value := object.(type) {
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(value) {
				return at
			}
			at, object = at.index(i), value[i]
		default:
			fields, _ := value.(map[string]any)
			at, object = at.key(name), fields[name]
		}
		rest = after
	}
	return at
}

// nextStep returns the first key or index in the path of a validation error, and the rest of the path. value is the
// value to which the path belongs.
func nextStep(path string, value any) (name, rest string) {
	opening, closing := "", ""
	if strings.HasPrefix(path, "[") {
		opening, closing = "[", "]"
	}
	known := false
	fields, _ := value.(map[string]any)
	for key := range fields {
		after, ok := strings.CutPrefix(path, opening+key+closing)
		if ok && (after == "" || after[0] == '.' || after[0] == '[') && (!known || len(key) > len(name)) {
			name, rest, known = key, after, true
		}
	}
	if !known {
		end := len(path)
		if i := strings.IndexAny(path[len(opening):], ".[]"); i >= 0 {
			end = i + len(opening)
		}
		name, rest = path[len(opening):end], strings.TrimPrefix(path[end:], closing)
	}
	return name, strings.TrimPrefix(rest, ".")
}
