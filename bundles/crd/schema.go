package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

type props = apiextensionsv1.JSONSchemaProps

// use is the value that one live object has in a field. The comparison of two schemas needs the uses of each field,
// because only a change of a used field blocks.
type use struct {
	object int // index of the object
	value  any
}

// schemaWalk compares the old and the new schema of one version, field by field.
type schemaWalk struct {
	*checker
	version     string
	validations validationSet
}

// schemas compares the schemas of a version that both definitions have. was and is are this version in the old and the
// new definition.
func (c *checker) schemas(was, is *apiextensionsv1.CustomResourceDefinitionVersion) error {
	set, err := crdify()
	if err != nil {
		return err
	}
	var uses []use
	for _, i := range c.sent[was.Name] {
		uses = append(uses, use{i, withoutStatus(c.all[i].Content.Object)})
	}
	w := schemaWalk{checker: c, version: was.Name, validations: set}
	w.field(schemaOf(was), schemaOf(is), "", uses)
	return nil
}

// schemaOf returns the schema of a version. It returns an empty schema for a version without a schema.
func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *props {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return &props{}
	}
	return v.Schema.OpenAPIV3Schema
}

func withoutStatus(object map[string]any) map[string]any {
	out := maps.Clone(object)
	delete(out, "status")
	return out
}

// field compares the old and the new schema of a field, and of all fields below it. uses are the values of the field in
// live objects. The library crdify gets each field alone, because crdify cannot distinguish a field with the name
// "items" from the items of a list.
func (w *schemaWalk) field(was, is *props, path string, uses []use) {
	own, ownIs := *was, *is
	own.Properties, ownIs.Properties = nil, nil
	if was.Items != nil && is.Items != nil && was.Items.Schema != nil && is.Items.Schema != nil {
		own.Items, ownIs.Items = nil, nil
		w.field(was.Items.Schema, is.Items.Schema, path+"/*", items(uses))
	}
	w.keys(was, is, path, uses, &own, &ownIs)
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		below, values := was.Properties[name], named(uses, name)
		if now, ok := is.Properties[name]; ok {
			w.field(&below, &now, path+step(name), values)
		} else if is.AdditionalProperties != nil && is.AdditionalProperties.Schema != nil {
			w.field(&below, is.AdditionalProperties.Schema, path+step(name), values)
		} else if is.AdditionalProperties == nil && !ptr.Deref(is.XPreserveUnknownFields, false) {
			w.removed(path+step(name), values)
		}
	}
	for _, change := range w.validations.compare(&own, &ownIs) {
		// A changed default is only a warning, because it does not affect objects that set the field.
		w.found(change.rule, path, change.message, uses, change.rule != "default")
	}
}

// keys compares the old and the new schema of the values of a map. own and ownIs are copies of was and is without their
// properties. keys removes additionalProperties from own and ownIs if it has compared them, so that the caller does not
// compare them again.
func (w *schemaWalk) keys(was, is *props, path string, uses []use, own, ownIs *props) {
	had, has := was.AdditionalProperties, is.AdditionalProperties
	switch {
	case had != nil && had.Schema != nil && has != nil && has.Schema != nil:
		w.field(had.Schema, has.Schema, path+"/*", undeclared(uses, was))
	case had != nil && (had.Allows || had.Schema != nil) && has == nil:
		if !ptr.Deref(is.XPreserveUnknownFields, false) {
			w.removed(path+"/*", undeclared(uses, was))
		}
	case had == nil && !ptr.Deref(was.XPreserveUnknownFields, false):
		// The old definition declares no additional keys. A new definition that accepts such keys breaks no object.
	default:
		return
	}
	own.AdditionalProperties, ownIs.AdditionalProperties = nil, nil
}

// removed adds a warning for a removed field that no live object sets. A removed field that a live object sets is found
// by the function dropped.
func (w *schemaWalk) removed(path string, uses []use) {
	if len(uses) == 0 && path != "/apiVersion" && path != "/kind" && path != "/metadata" && !strings.HasPrefix(path, "/metadata/") {
		w.found(RuleFieldRemoved, path, "the field is removed", nil, false)
	}
}

func (w *schemaWalk) found(rule, path, message string, uses []use, blocks bool) {
	var objects []int
	for _, u := range uses {
		objects = append(objects, u.object)
	}
	w.add(Finding{Rule: rule, Path: path, Version: w.version, Message: message}, blocks && len(uses) > 0, objects)
}

func items(uses []use) []use {
	var out []use
	for _, u := range uses {
		list, _ := u.value.([]any)
		for _, value := range list {
			out = append(out, use{u.object, value})
		}
	}
	return out
}

func named(uses []use, name string) []use {
	var out []use
	for _, u := range uses {
		fields, _ := u.value.(map[string]any)
		if value, ok := fields[name]; ok {
			out = append(out, use{u.object, value})
		}
	}
	return out
}

// undeclared returns the values that live objects have under keys that the schema s does not declare as fields.
func undeclared(uses []use, s *props) []use {
	var out []use
	for _, u := range uses {
		fields, _ := u.value.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if _, ok := s.Properties[name]; !ok {
				out = append(out, use{u.object, fields[name]})
			}
		}
	}
	return out
}

// validationSet has the validations of the library crdify that compare the schemas of one field.
type validationSet struct {
	names       sets.Set[string]
	comparators []validations.Comparator[props]
}

// crdify returns the validations of the library crdify. Their settings ignore changes that only make the schema accept
// more objects.
var crdify = sync.OnceValues(func() (validationSet, error) {
	registry := validations.NewRegistry()
	for _, register := range []func(validations.Registry){
		property.RegisterDefault, property.RegisterDescription, property.RegisterEnum, property.RegisterMaximum,
		property.RegisterMaxItems, property.RegisterMaxLength, property.RegisterMaxProperties, property.RegisterMinimum,
		property.RegisterMinItems, property.RegisterMinLength, property.RegisterMinProperties, property.RegisterNullable,
		property.RegisterPattern, property.RegisterRequired, property.RegisterType,
	} {
		register(registry)
	}
	settings := map[string]map[string]any{
		"enum":     {"additionPolicy": "Allow"},
		"nullable": {"additionPolicy": "Allow"},
		"pattern":  {"removalPolicy": "Allow"},
	}
	out := validationSet{names: sets.New(registry.Registered()...)}
	for _, name := range sets.List(out.names) {
		v, err := registry.Validation(name, settings[name])
		if err != nil {
			return validationSet{}, fmt.Errorf("configuring the validation %s of crdify: %w", name, err)
		}
		v.SetEnforcement(config.EnforcementPolicyError)
		if name == "description" {
			v.SetEnforcement(config.EnforcementPolicyNone)
		}
		out.comparators = append(out.comparators, validations.ComparatorsForValidations[props](v)...)
	}
	return out, nil
})

type change struct{ rule, message string }

// unhandled is the name that crdify gives to differences that none of its validations compares.
const unhandled = "unhandled"

// compare returns the incompatible changes between the old and the new schema of a field. It does not look at the
// fields below this field.
func (s validationSet) compare(was, is *props) []change {
	clearHarmless(was, is)
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	before, after := parts(was), parts(is)
	var out []change
	for _, r := range validations.CompareProperties(was, is, config.EnforcementPolicyError, s.comparators...) {
		if len(r.Errors) == 0 {
			continue
		}
		if r.Name != unhandled {
			out = append(out, change{r.Name, describe(r.Name, before[r.Name], after[r.Name])})
			continue
		}
		names := sets.KeySet(before).Union(sets.KeySet(after)).Difference(s.names)
		for _, name := range sets.List(names) {
			if before[name] != after[name] {
				out = append(out, change{name, describe(name, before[name], after[name])})
			}
		}
	}
	return out
}

// clearHarmless removes from both schemas the parts whose change cannot make a stored object invalid, such as
// descriptions. was is the schema before the change, and is the schema after it. clearHarmless also removes all CEL
// rules, except the rules that only the schema after the change has, because crdify does not compare CEL rules.
func clearHarmless(was, is *props) {
	for _, s := range []*props{was, is} {
		s.ID, s.Schema, s.Title, s.Description, s.Example, s.ExternalDocs = "", "", "", "", nil, nil
	}
	var added apiextensionsv1.ValidationRules
	for _, r := range is.XValidations {
		if !slices.ContainsFunc(was.XValidations, func(old apiextensionsv1.ValidationRule) bool { return old.Rule == r.Rule }) {
			added = append(added, apiextensionsv1.ValidationRule{Rule: r.Rule})
		}
	}
	was.XValidations, is.XValidations = nil, added
	if is.Format == "" {
		was.Format = ""
	}
	if ptr.Deref(is.XPreserveUnknownFields, false) {
		was.XPreserveUnknownFields, is.XPreserveUnknownFields = nil, nil
	}
}

// parts returns the parts of a schema by their names, such as "maxLength". Each part is a JSON text.
func parts(s *props) map[string]string {
	raw, err := json.Marshal(s)
	if err != nil { // a default or an enum is invalid JSON
		return map[string]string{unhandled: err.Error()}
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return map[string]string{unhandled: err.Error()}
	}
	out := map[string]string{}
	for name, part := range all {
		out[name] = string(part)
	}
	return out
}

func describe(name, was, is string) string {
	const maxRunes = 100
	was, is = hubv1.CutMessage(was, maxRunes), hubv1.CutMessage(is, maxRunes)
	switch {
	case was == "" && is == "":
		return name + " changes"
	case was == "":
		return name + " is new: " + is
	case is == "":
		return name + " is removed: it was " + was
	}
	return name + " changes from " + was + " to " + is
}

// step returns a key as one step of a JSON pointer, with the slash before it.
func step(key string) string { return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
