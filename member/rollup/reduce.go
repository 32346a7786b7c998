package rollup

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// report is the value of one target for a field with a merge rule.
type report struct {
	cluster string
	value   any  // nil if the target has no value
	current bool // whether the value is about the desired content
}

// reduced describes the field of the hub object that gets the merged value.
type reduced struct {
	list  bool // whether the schema requires a list
	words severity
}

// A reducer computes one value from the values of all clusters of a binding. The values are sorted by cluster. ok is
// false if the reducer cannot compute a value.
type reducer func(values []report, f reduced) (value any, ok bool)

// reducers has the reducers by name. CEL expressions are missing, because NewRules compiles them.
var reducers = map[hubv1.Reducer]reducer{
	hubv1.ReducerSum:    sumOf,
	hubv1.ReducerMin:    func(values []report, _ reduced) (any, bool) { return extreme(values, -1) },
	hubv1.ReducerMax:    func(values []report, _ reduced) (any, bool) { return extreme(values, 1) },
	hubv1.ReducerAll:    func(values []report, _ reduced) (any, bool) { return decided(values, false) },
	hubv1.ReducerAny:    func(values []report, _ reduced) (any, bool) { return decided(values, true) },
	hubv1.ReducerWorst:  worst,
	hubv1.ReducerLatest: func(values []report, _ reduced) (any, bool) { return latest(values, 1) },
	hubv1.ReducerFirst:  first,
	hubv1.ReducerJoin:   join,
}

// reduce merges a field with the reducer that the placement's rule names. The field is left out while the value of at
// least one cluster is not known.
func (m *merger) reduce(path, name string, n *node) (any, outcome) {
	reduce := m.rules.reducers[path]
	if reduce == nil {
		return nil, omitted // the rule's expression is invalid
	}
	values := make([]report, 0, len(m.parts))
	known := false
	for _, p := range m.parts {
		value, ok := p.at(path)
		if !ok {
			return nil, omitted
		}
		known = known || value != nil
		values = append(values, report{cluster: p.row.Name, value: value, current: p.current()})
	}
	if !known {
		return nil, silent
	}
	f := reduced{list: n.kind == "array", words: severities}
	if own, ok := severityOf(m.schema.kind, name, n); ok && m.place.path == "" {
		f.words = own
	}
	value, ok := reduce(values, f)
	if !ok {
		return nil, omitted
	}
	return native(value), merged
}

// at returns the value at a path in the status of the cluster's copy. The value is nil if the status has none. ok is
// false if the hub does not know the value: the hub has not requested the path from the member yet, or the value did
// not fit into the row.
func (p part) at(path string) (value any, ok bool) {
	if value, ok := p.named[path]; ok {
		return value, true
	}
	if p.lost.Has(health.LostNamed) {
		return nil, false
	}
	value = p.whole
	for _, segment := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		object, _ := value.(map[string]any)
		value = object[unescape.Replace(segment)]
	}
	switch value.(type) {
	case string, bool, float64: // needs no conversion, unlike a map or a list
		return value, true
	}
	// The value is known to be absent only if the cluster has no copy. Otherwise, the copy may have a value that the row
	// does not have.
	return nil, p.row.UID == "" && p.row.Observed == nil
}

// given returns the values of the clusters that have a value.
func given(values []report) []any {
	var out []any
	for _, v := range values {
		if v.value != nil {
			out = append(out, v.value)
		}
	}
	return out
}

// as converts all values with the function read. It returns false if one value cannot be converted, or if there are no
// values.
func as[T any](values []any, read func(any) (T, bool)) ([]T, bool) {
	out := make([]T, 0, len(values))
	for _, v := range values {
		t, ok := read(v)
		if !ok {
			return nil, false
		}
		out = append(out, t)
	}
	return out, len(out) > 0
}

func number(value any) (float64, bool) {
	f, ok := value.(float64)
	return f, ok
}

func moment(value any) (time.Time, bool) {
	text, _ := value.(string)
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// quantity parses a quantity such as 10Gi, or a plain number.
func quantity(value any) (resource.Quantity, bool) {
	text, ok := value.(string)
	if f, isNumber := value.(float64); isNumber {
		text, ok = strconv.FormatFloat(f, 'f', -1, 64), true
	}
	// maxBytes is the maximum length of the text of a quantity, in bytes. A text with an exponent is refused, because a
	// sum with it may be very long: the sum of 1e20000 and 1Gi has 20,001 digits.
	const maxBytes = 32
	if !ok || len(text) > maxBytes || strings.ContainsAny(strings.TrimSuffix(strings.TrimSuffix(text, "E"), "Ei"), "eE") {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

func sumOf(values []report, _ reduced) (any, bool) {
	if numbers, ok := as(given(values), number); ok {
		total := 0.0
		for _, f := range numbers {
			total += f
		}
		return total, total < maxCount && total > -maxCount
	}
	quantities, ok := as(given(values), quantity)
	if !ok {
		return nil, false
	}
	total := quantities[0].DeepCopy()
	for _, q := range quantities[1:] {
		total.Add(q)
	}
	return total.String(), true
}

// extreme returns the smallest value if sign is -1, and the largest if sign is 1. It returns false if the values are
// not all numbers, all times or all quantities.
func extreme(values []report, sign int) (any, bool) {
	all := given(values)
	if numbers, ok := as(all, number); ok {
		if sign < 0 {
			return slices.Min(numbers), true
		}
		return slices.Max(numbers), true
	}
	if v, ok := latest(values, sign); ok {
		return v, true
	}
	quantities, ok := as(all, quantity)
	if !ok {
		return nil, false
	}
	best := quantities[0]
	for _, q := range quantities[1:] {
		if sign*q.Cmp(best) > 0 {
			best = q
		}
	}
	return best.String(), true
}

// latest returns the latest of the times if sign is 1, and the earliest if sign is -1. It returns false if a value is
// no time.
func latest(values []report, sign int) (any, bool) {
	all := given(values)
	times, ok := as(all, moment)
	if !ok {
		return nil, false
	}
	best := 0
	for i := range times {
		if sign*times[i].Compare(times[best]) > 0 {
			best = i
		}
	}
	return all[best], true
}

// decided merges booleans. If one up-to-date copy has the value `alone`, the result is this value. If all copies have
// the opposite value, the result is the opposite value. ok is false if a missing value, or a value of an outdated copy,
// could change the result.
func decided(values []report, alone bool) (any, bool) {
	silent := false
	for _, v := range values {
		b, ok := v.value.(bool)
		switch {
		case v.value == nil || !v.current:
			silent = true
		case !ok:
			return nil, false
		case b == alone:
			return alone, true
		}
	}
	return !alone, !silent
}

// worst returns the worst word of all clusters, by the words' ranks from best to worst. A cluster without a word, or
// with an outdated copy, counts as the word Unknown. ok is false if the rank of a word is not known.
func worst(values []report, f reduced) (any, bool) {
	words := map[string]bool{}
	for _, v := range values {
		word, _ := v.value.(string)
		if word == "" || !v.current {
			word = f.words.unknown
		}
		words[word] = true
	}
	word, ok := f.words.worst(words)
	return word, ok
}

func first(values []report, _ reduced) (any, bool) {
	all := given(values)
	return all[0], true
}

// maxJoinedBytes is the maximum size in bytes of a result of the reducer Join.
const maxJoinedBytes = 1024

// join returns the distinct values of all clusters, sorted as text. If the values are lists, it returns the distinct
// items of these lists. The result is a list if the schema wants one, and otherwise a text with commas.
func join(values []report, f reduced) (any, bool) {
	distinct := map[string]any{}
	for _, v := range given(values) {
		entries, isList := v.([]any)
		if !isList {
			entries = []any{v}
		}
		for _, e := range entries {
			switch e.(type) {
			case string, bool, float64:
				distinct[textOf(e)] = e
			default:
				return nil, false
			}
		}
	}
	texts := slices.Sorted(maps.Keys(distinct))
	if joined := strings.Join(texts, ", "); !f.list {
		return joined, len(joined) <= maxJoinedBytes
	}
	list := make([]any, 0, len(texts))
	size := 0
	for _, t := range texts {
		list, size = append(list, distinct[t]), size+len(t)
	}
	return list, size <= maxJoinedBytes
}

func textOf(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(data)
}
