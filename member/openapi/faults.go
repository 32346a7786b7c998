package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// types is a set of JSON types, one bit for each type.
type types uint8

const (
	isObject types = 1 << iota
	isArray
	isString
	isInteger
	isNumber
	isBoolean
)

// These limits bound the work of one check, because a member may publish any schema.
const (
	maxFaults = 64
	maxSteps  = 1 << 20
	maxLevels = 256
)

// Faults returns the values of an object that violate the schema, in the order of their paths. It does not check the
// status, because the hub does not write it. A required field may be missing if it has a default.
func (s *Schema) Faults(object map[string]any) []Fault {
	if s == nil {
		return nil
	}
	c := &checker{}
	c.whole(s, object)
	return c.found()
}

// FaultsAt returns the faults of a value at a JSON pointer of an object. partial is true if the value is merged into an
// existing value. A partial value may lack required fields. If the schema accepts any value there, the value has no
// faults.
func (s *Schema) FaultsAt(pointer string, value any, partial bool) []Fault {
	c := &checker{partial: partial}
	for i, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if s == nil || i == 0 && everywhere[step] {
			return nil
		}
		part, known := s.at(step)
		c.path = append(c.path, place{key: step, declared: s.declares(step)})
		if !known {
			c.fault(Undeclared, nil)
			return c.found()
		}
		s = part
	}
	if len(c.path) == 0 {
		object, _ := value.(map[string]any)
		if s != nil {
			c.whole(s, object)
		}
		return c.found()
	}
	c.value(s, value)
	return c.found()
}

// at returns the schema one step below. It returns false if the schema has no such field. A number may be an index of a
// list or a key of a map.
func (s *Schema) at(step string) (*Schema, bool) {
	if s.types == isArray || s.items != nil {
		return s.items, true
	}
	return s.field(step)
}

// everywhere has the top-level fields that the check of an object skips, because objects of all kinds have them.
var everywhere = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "status": true}

// checker checks one object against a schema, and collects the faults.
type checker struct {
	path    []place
	faults  []Fault
	steps   int
	partial bool
	// quiet is above 0 while a value is compared with an alternative, which is one schema of an anyOf, oneOf or not.
	// Faults are then not collected, but only counted in failed.
	quiet, failed int
}

// place is one step of a path. declared is true if the schema names the step.
type place struct {
	key      string
	declared bool
}

func (c *checker) found() []Fault {
	slices.SortStableFunc(c.faults, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	return c.faults
}

func (c *checker) fault(message string, value any) {
	if c.quiet > 0 {
		c.failed++
		return
	}
	if len(c.faults) >= maxFaults {
		return
	}
	var path, declared strings.Builder
	for _, step := range c.path {
		text := escaped(step.key)
		path.WriteString(text)
		if !step.declared {
			text = "/*"
		}
		declared.WriteString(text)
	}
	c.faults = append(c.faults, Fault{Path: path.String(), Declared: declared.String(), Message: message, Value: Shown(value)})
}

// done reports whether the check can end, because it has reached a limit. While an alternative is checked (one schema
// of an anyOf, oneOf or not), the check can also end after the first fault. An alternative that was not checked
// completely because of a limit counts as matching.
func (c *checker) done() bool {
	c.steps++
	return c.steps > maxSteps || len(c.path) > maxLevels || len(c.faults) >= maxFaults || c.quiet > 0 && c.failed > 0
}

// whole checks an object, except its apiVersion, kind, metadata and status.
func (c *checker) whole(s *Schema, object map[string]any) {
	c.object(s, object, true)
	if s.rules != nil {
		c.rules(s.rules, object)
	}
}

func (c *checker) value(s *Schema, value any) {
	if s == nil || value == nil || c.done() {
		return
	}
	if is := typeOf(value); is != 0 && !s.accepts(is) {
		c.fault("must be "+s.types.String(), value)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		c.object(s, v, false)
	case []any:
		for i, item := range v {
			if c.done() {
				return
			}
			c.path = append(c.path, place{key: fmt.Sprint(i)})
			c.value(s.items, item)
			c.path = c.path[:len(c.path)-1]
		}
	}
	if s.rules != nil {
		c.rules(s.rules, value)
	}
}

// rules checks the requirements on a value itself. Its fields and items are checked elsewhere.
func (c *checker) rules(r *rules, value any) {
	if len(r.enum) > 0 {
		if raw, err := json.Marshal(value); err == nil && !slices.Contains(r.enum, string(raw)) {
			c.fault("must be one of "+oneOf(r.enum), value)
		}
	}
	if r.bounds != nil {
		c.bounds(r.bounds, value)
	}
	if text, ok := value.(string); ok && !matches(r.pattern, text) {
		c.fault("must match "+r.pattern, text)
	}
	if r.others != nil {
		c.others(r.others, value)
	}
	if list, ok := value.([]any); ok && r.identity != nil {
		c.apart(r.identity, list)
	}
}

func (c *checker) bounds(b *bounds, value any) {
	switch v := value.(type) {
	case map[string]any:
		c.count(b.MinProperties, b.MaxProperties, len(v), "fields")
	case []any:
		c.count(b.MinItems, b.MaxItems, len(v), "items")
		if b.UniqueItems && !distinct(v) {
			c.fault("must not have duplicate items", nil)
		}
	case string:
		c.length(b, v)
	case int64:
		c.number(b, float64(v), value)
	case float64:
		c.number(b, v, value)
	}
}

// object checks the fields of a map. If whole is true, the map is a whole object, and object skips its apiVersion,
// kind, metadata and status.
func (c *checker) object(s *Schema, object map[string]any, whole bool) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if whole && everywhere[name] {
			continue
		}
		c.path = append(c.path, place{key: name, declared: s.declares(name)})
		if part, known := s.field(name); known {
			c.value(part, object[name])
		} else {
			c.fault(Undeclared, nil)
		}
		c.path = c.path[:len(c.path)-1]
	}
	if c.partial || s.rules == nil {
		return
	}
	for _, name := range s.rules.required {
		if _, ok := object[name]; !ok && !(whole && everywhere[name]) {
			c.path = append(c.path, place{key: name, declared: true})
			c.fault("is required", nil)
			c.path = c.path[:len(c.path)-1]
		}
	}
}

func distinct(list []any) bool {
	seen := map[string]bool{}
	for _, item := range list {
		raw, err := json.Marshal(item)
		if err != nil || seen[string(raw)] {
			return err != nil
		}
		seen[string(raw)] = true
	}
	return true
}

func (c *checker) length(b *bounds, text string) {
	n := int64(utf8.RuneCountInString(text))
	if b.MinLength != nil && n < *b.MinLength {
		c.fault(fmt.Sprintf("must have at least %d characters", *b.MinLength), text)
	}
	if b.MaxLength != nil && n > *b.MaxLength {
		c.fault(fmt.Sprintf("must have at most %d characters", *b.MaxLength), text)
	}
}

func (c *checker) number(b *bounds, n float64, value any) {
	switch minimum, maximum, step := b.Minimum, b.Maximum, b.MultipleOf; {
	case minimum != nil && (n < *minimum || b.ExclusiveMinimum && n == *minimum):
		c.fault(limit(b.ExclusiveMinimum, "above", "at least", *minimum), value)
	case maximum != nil && (n > *maximum || b.ExclusiveMaximum && n == *maximum):
		c.fault(limit(b.ExclusiveMaximum, "below", "at most", *maximum), value)
	case step != nil && *step > 0 && n/(*step) != math.Trunc(n/(*step)):
		c.fault(fmt.Sprintf("must be a multiple of %v", *step), value)
	}
}

func limit(strict bool, beyond, upTo string, n float64) string {
	if !strict {
		beyond = upTo
	}
	return "must be " + beyond + " " + asJSON(n)
}

func asJSON(n float64) string {
	raw, err := json.Marshal(n)
	if err != nil {
		return fmt.Sprint(n)
	}
	return string(raw)
}

func (c *checker) count(minimum, maximum *int64, n int, what string) {
	if minimum != nil && int64(n) < *minimum && !c.partial {
		c.fault(fmt.Sprintf("must have at least %d %s", *minimum, what), nil)
	}
	if maximum != nil && int64(n) > *maximum {
		c.fault(fmt.Sprintf("must have at most %d %s", *maximum, what), nil)
	}
}

// others checks a value against the schemas in allOf, anyOf, oneOf and not. For a partial value it checks only allOf,
// because the others mostly define which fields belong together.
func (c *checker) others(o *others, value any) {
	for _, part := range o.all {
		c.value(part, value)
	}
	if c.partial {
		return
	}
	if len(o.any) > 0 && !slices.ContainsFunc(o.any, func(a *Schema) bool { return c.fits(a, value) }) {
		c.fault("must fit one of the alternatives of the schema", value)
	}
	if len(o.one) > 0 {
		fitting := 0
		for _, a := range o.one {
			if c.fits(a, value) {
				fitting++
			}
		}
		if fitting != 1 {
			c.fault(fmt.Sprintf("must fit exactly one of the alternatives of the schema, but fits %d", fitting), value)
		}
	}
	if o.not != nil && c.fits(o.not, value) {
		c.fault("must not match the schema under not", value)
	}
}

// fits reports whether the value has no fault with an alternative.
func (c *checker) fits(s *Schema, value any) bool {
	trial := &checker{quiet: 1, steps: c.steps, path: slices.Clone(c.path)}
	trial.value(s, value)
	c.steps = trial.steps
	return trial.failed == 0
}

// String returns a text such as "an integer or a string".
func (t types) String() string {
	var out []string
	for i, name := range []string{"an object", "a list", "a string", "an integer", "a number", "a boolean"} {
		bit := types(1) << i
		if t&bit != 0 && !(bit == isInteger && t&isNumber != 0) {
			out = append(out, name)
		}
	}
	return strings.Join(out, " or ")
}

// typeOf returns the types of a value. An integer has also the type number.
func typeOf(value any) types {
	switch v := value.(type) {
	case map[string]any:
		return isObject
	case []any:
		return isArray
	case string:
		return isString
	case bool:
		return isBoolean
	case int64:
		return isInteger | isNumber
	case float64:
		if v == math.Trunc(v) {
			return isInteger | isNumber
		}
		return isNumber
	}
	return 0
}

// oneOf returns a text with the values, or with the first 8 values if there are more.
func oneOf(values []string) string {
	const maxNamed = 8
	if len(values) <= maxNamed {
		return strings.Join(values, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(values[:maxNamed], ", "), len(values)-maxNamed)
}
