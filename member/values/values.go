// Package values says which values of an object the schema of its kind does not take: the type, enum, bounds, length,
// pattern, required fields, fields that are not declared, and alternatives.
//
// The schema is the one that an API server publishes, in the OpenAPI v3 document of the kind's group and version, for
// built-in kinds and for custom ones alike. So the same check serves what is to be on the hub and what is to be on a
// member.
//   - What a schema leaves open counts as right: it is better to let a server refuse than to refuse in its place. Null
//     is taken everywhere, formats of strings and the rules of a definition that are written in CEL are the server's to
//     judge.
//   - The metadata, apiVersion and kind are the same for every kind, and the status is not written: they are not looked
//     into.
//   - A required field that has a default is not missing.
//
// It is apart from member/fields, which every object that is written is compared with: this is asked only about objects
// that override policies changed, and its schemas are several times as large.
//
// It talks to no server; member/served keeps the schemas.
package values

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// kind of a value, as a bit.
type kind uint8

const (
	isObject kind = 1 << iota
	isArray
	isString
	isInteger
	isNumber
	isBoolean
)

// Schema is what is known of the value at one place. Nil takes every value. Parts that are equal may be shared, and a
// schema may contain itself.
type Schema struct {
	kinds kind // any of them; 0 is every kind

	names    []string  // of the fields, sorted
	parts    []*Schema // of the fields, in the order of names
	required []string
	// open is true if fields that are not named are taken, too. They are compared with values if that is set.
	open   bool
	values *Schema
	items  *Schema

	enum          []string // as JSON
	pattern       *pattern
	bounds        *bounds
	all, any, one []*Schema
	not           *Schema
}

// bounds of a number, a text, a list and a map. Nil is none.
type bounds struct {
	least, most              *float64
	aboveLeast, belowMost    bool
	shortest, longest        *int64
	fewestItems, mostItems   *int64
	fewestFields, mostFields *int64
	multipleOf               *float64
	unique                   bool
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

// mostFaults are found in one object, mostSteps are made: a schema that somebody else wrote may be as costly as it
// likes.
const (
	mostFaults = 64
	mostSteps  = 1 << 20
	mostLevels = 256
)

// Faults returns what is wrong in an object, in the order of its paths.
func (s *Schema) Faults(object map[string]any) []Fault {
	if s == nil {
		return nil
	}
	c := &checker{}
	c.object(s, object, true)
	return c.found()
}

// FaultsAt returns what is wrong with a value at a JSON pointer, whatever else is in the object. What the value lacks
// is not wrong if it is partial: it is to be merged into one that has it. Nothing is said of places that the schema
// does not look into.
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
			c.object(s, object, true)
		}
		return c.found()
	}
	c.value(s, value)
	return c.found()
}

// at is the schema one step below; false if there is no such field. A list is not told from a map by a step that is a
// number.
func (s *Schema) at(step string) (*Schema, bool) {
	if s.kinds == isArray || s.items != nil {
		return s.items, true
	}
	if i, ok := slices.BinarySearch(s.names, step); ok {
		return s.parts[i], true
	}
	return s.values, s.open || s.kinds&isObject == 0
}

func (s *Schema) declares(name string) bool {
	_, ok := slices.BinarySearch(s.names, name)
	return ok
}

// everywhere are the fields of a whole object that are not looked into.
var everywhere = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "status": true}

// checker walks an object along a schema.
type checker struct {
	path    []place
	faults  []Fault
	steps   int
	partial bool
	// quiet is above 0 while an alternative is tried: then faults are counted alone.
	quiet, failed int
}

// place is a step of a path, which the schema names or not.
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
	if len(c.faults) >= mostFaults {
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

// done says whether the walk has found or cost enough. An alternative that could not be tried to its end counts as
// right.
func (c *checker) done() bool {
	c.steps++
	return c.steps > mostSteps || len(c.path) > mostLevels || len(c.faults) >= mostFaults || c.quiet > 0 && c.failed > 0
}

func (c *checker) value(s *Schema, value any) {
	if s == nil || value == nil || c.done() {
		return
	}
	if is := kindOf(value); is != 0 && s.kinds != 0 && s.kinds&is == 0 {
		c.fault("must be "+s.kinds.String(), value)
		return
	}
	if len(s.enum) > 0 {
		if raw, err := json.Marshal(value); err == nil && !slices.Contains(s.enum, string(raw)) {
			c.fault("must be one of "+oneOf(s.enum), value)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		c.object(s, v, false)
	case []any:
		c.list(s, v)
	case string:
		c.text(s, v)
	case int64:
		c.number(s.bounds, float64(v), value)
	case float64:
		c.number(s.bounds, v, value)
	}
	c.alternatives(s, value)
}

// object checks a map. Of a whole one the fields that every object has are left out.
func (c *checker) object(s *Schema, object map[string]any, whole bool) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if whole && everywhere[name] {
			continue
		}
		c.path = append(c.path, place{key: name, declared: s.declares(name)})
		if i, ok := slices.BinarySearch(s.names, name); ok {
			c.value(s.parts[i], object[name])
		} else if !s.open {
			c.fault(Undeclared, object[name])
		} else {
			c.value(s.values, object[name])
		}
		c.path = c.path[:len(c.path)-1]
	}
	if !c.partial {
		for _, name := range s.required {
			if _, ok := object[name]; !ok && !(whole && everywhere[name]) {
				c.path = append(c.path, place{key: name, declared: true})
				c.fault("is required", nil)
				c.path = c.path[:len(c.path)-1]
			}
		}
	}
	if b := s.bounds; b != nil {
		c.count(b.fewestFields, b.mostFields, len(object), "fields")
	}
	if whole {
		c.alternatives(s, object)
	}
}

func (c *checker) list(s *Schema, list []any) {
	for i, item := range list {
		if c.done() {
			return
		}
		c.path = append(c.path, place{key: fmt.Sprint(i)})
		c.value(s.items, item)
		c.path = c.path[:len(c.path)-1]
	}
	b := s.bounds
	if b == nil {
		return
	}
	c.count(b.fewestItems, b.mostItems, len(list), "items")
	if b.unique && !distinct(list) {
		c.fault("must have no item twice", nil)
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

func (c *checker) text(s *Schema, text string) {
	if b := s.bounds; b != nil && (b.shortest != nil || b.longest != nil) {
		n := int64(utf8.RuneCountInString(text))
		if b.shortest != nil && n < *b.shortest {
			c.fault(fmt.Sprintf("must have at least %d characters", *b.shortest), text)
		}
		if b.longest != nil && n > *b.longest {
			c.fault(fmt.Sprintf("must have at most %d characters", *b.longest), text)
		}
	}
	if s.pattern != nil && !s.pattern.matches(text) {
		c.fault("must match "+s.pattern.text, text)
	}
}

func (c *checker) number(b *bounds, n float64, value any) {
	if b == nil {
		return
	}
	switch {
	case b.least != nil && (n < *b.least || b.aboveLeast && n == *b.least):
		c.fault(limit(b.aboveLeast, "above", "at least", *b.least), value)
	case b.most != nil && (n > *b.most || b.belowMost && n == *b.most):
		c.fault(limit(b.belowMost, "below", "at most", *b.most), value)
	case b.multipleOf != nil && *b.multipleOf > 0 && n/(*b.multipleOf) != math.Trunc(n/(*b.multipleOf)):
		c.fault(fmt.Sprintf("must be a multiple of %v", *b.multipleOf), value)
	}
}

func limit(strict bool, beyond, upTo string, n float64) string {
	if !strict {
		beyond = upTo
	}
	return "must be " + beyond + " " + plain(n)
}

func plain(n float64) string {
	raw, err := json.Marshal(n)
	if err != nil {
		return fmt.Sprint(n)
	}
	return string(raw)
}

func (c *checker) count(least, most *int64, n int, what string) {
	if least != nil && int64(n) < *least && !c.partial {
		c.fault(fmt.Sprintf("must have at least %d %s", *least, what), nil)
	}
	if most != nil && int64(n) > *most {
		c.fault(fmt.Sprintf("must have at most %d %s", *most, what), nil)
	}
}

// alternatives checks what a schema says about the value in other schemas. What is partial is not compared with them:
// they are mostly about which fields go together.
func (c *checker) alternatives(s *Schema, value any) {
	for _, part := range s.all {
		c.value(part, value)
	}
	if c.partial {
		return
	}
	if len(s.any) > 0 && !slices.ContainsFunc(s.any, func(a *Schema) bool { return c.takes(a, value) }) {
		c.fault("must fit one of the alternatives of the schema", value)
	}
	if len(s.one) > 0 {
		fitting := 0
		for _, a := range s.one {
			if c.takes(a, value) {
				fitting++
			}
		}
		if fitting != 1 {
			c.fault(fmt.Sprintf("must fit exactly one of the alternatives of the schema, fits %d", fitting), value)
		}
	}
	if s.not != nil && c.takes(s.not, value) {
		c.fault("must not be what the schema rules out", value)
	}
}

// takes says whether an alternative takes the value.
func (c *checker) takes(s *Schema, value any) bool {
	trial := &checker{quiet: 1, steps: c.steps, path: slices.Clone(c.path)}
	trial.value(s, value)
	c.steps = trial.steps
	return trial.failed == 0
}

// String is such as "an integer or a string".
func (k kind) String() string {
	var out []string
	for i, name := range []string{"an object", "a list", "a string", "an integer", "a number", "a boolean"} {
		bit := kind(1) << i
		if k&bit != 0 && !(bit == isInteger && k&isNumber != 0) {
			out = append(out, name)
		}
	}
	return strings.Join(out, " or ")
}

// kindOf a value; an integer is a number, too.
func kindOf(value any) kind {
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

// oneOf lists values, the first of them if they are many.
func oneOf(values []string) string {
	const most = 8
	if len(values) <= most {
		return strings.Join(values, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(values[:most], ", "), len(values)-most)
}
