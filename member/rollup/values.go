package rollup

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/member/health"
)

// maxCount is the limit of merged numbers. JSON readers with float64 numbers would round larger ones.
const maxCount = 1 << 53

// absent returns the outcome of the merge for a field that has no value in any row. The outcome is the constant omitted
// if the size limit may have removed a copy's value from its row, and the constant silent otherwise. `by` are the
// groups of values to which the field may belong.
func (m *merger) absent(name string, by health.Loss) outcome {
	if m.mayLack(name, by) {
		return omitted
	}
	return silent
}

// mayLack reports whether the value of a copy may be missing because it did not fit into the copy's row. `by` are the
// groups of values to which the field may belong.
func (m *merger) mayLack(name string, by health.Loss) bool {
	return slices.ContainsFunc(m.parts, func(p part) bool { return p.observed[name] == nil && p.lost.Has(by) })
}

func (m *merger) sum(name string, n *node) (any, outcome) {
	by := health.LossOf(name)
	if m.place.path != "" {
		by = health.LostCounts // all numbers in nested values are in this group
	}
	var total float64
	known := false
	for _, p := range m.parts {
		value, ok := p.observed[name]
		if !ok {
			continue
		}
		count, ok := countOf(value, n)
		if !ok {
			return nil, omitted
		}
		total, known = total+count, true
	}
	switch {
	case !known:
		return nil, m.absent(name, by)
	case m.mayLack(name, by), total > n.maximum, math.Abs(total) >= maxCount:
		return nil, omitted
	}
	m.sumOfReported()
	return int64(total), merged
}

// sumOfReported notes the clusters that a sum leaves out, because their copies have no status. A cluster without a copy
// adds nothing to a sum, and a status without the field may mean zero.
func (m *merger) sumOfReported() {
	for _, p := range m.parts {
		if len(p.whole) == 0 && p.row.UID != "" {
			m.uncounted[p.row.Name] = true
		}
	}
}

// nameUncounted adds the clusters that sums leave out to the names of what was left out. It names at most three.
func (m *merger) nameUncounted() {
	names := slices.Sorted(maps.Keys(m.uncounted))
	if len(names) == 0 {
		return
	}
	text := "the numbers of " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	m.leftOut = append(m.leftOut, text)
}

// amount returns the sum of the quantities of all copies, such as 40Gi.
func (m *merger) amount(name string) (any, outcome) {
	var values []report
	for _, p := range m.parts {
		if value, ok := p.observed[name]; ok {
			values = append(values, report{cluster: p.row.Name, value: value, current: p.current()})
		}
	}
	if len(values) == 0 {
		return nil, m.absent(name, health.LossOf(name))
	}
	total, ok := sumOf(values, reduced{})
	if !ok || m.mayLack(name, health.LossOf(name)) {
		return nil, omitted
	}
	m.sumOfReported()
	return native(total), merged
}

// quantities reports whether the field of any copy has a quantity with a binary suffix, such as 40Gi.
func (m *merger) quantities(name string) bool {
	return slices.ContainsFunc(m.parts, func(p part) bool {
		text, _ := p.observed[name].(string)
		_, ok := quantity(text)
		return ok && strings.HasSuffix(text, "i")
	})
}

// countOf returns a value as a whole number. It parses a string only if the schema says int-or-string. It returns false
// if the value is no whole number.
func countOf(value any, n *node) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, v == math.Trunc(v)
	case string:
		i, err := strconv.ParseInt(v, 10, 32)
		return float64(i), err == nil && n.kind == intOrString
	}
	return 0, false
}

// boolean returns the value of the field if it is the same in all copies. Otherwise, a top-level field that the schema
// requires gets the value of the boolean field with the same name in the hub object's spec. Any other field has no
// merged value.
func (m *merger) boolean(name string) (any, outcome) {
	value, how := m.equal(name)
	if how == merged || m.place.path != "" || !slices.Contains(m.place.node.required, name) || !m.schema.specBooleans[name] {
		return value, how
	}
	asked, _ := m.spec[name].(bool)
	return asked, merged
}

// equal returns the value of the field if it is the same in all copies. It is used only at the top level of the status,
// because deeper values are often equal by chance.
func (m *merger) equal(name string) (any, outcome) {
	if m.place.path != "" {
		return nil, omitted
	}
	var common any
	known := 0
	for _, p := range m.parts {
		v, ok := p.observed[name]
		if !ok {
			continue
		}
		switch v.(type) {
		case string, bool, float64:
		default:
			return nil, omitted
		}
		if known > 0 && v != common {
			return nil, omitted
		}
		common, known = v, known+1
	}
	switch {
	case known == 0:
		return nil, m.absent(name, health.LossOf(name)|health.LostBooleans)
	case known < len(m.parts):
		return nil, omitted // targets that have not reported may have other values
	}
	return native(common), merged
}

// time returns one of the times in the statuses of all copies, for example the earliest. The function wins reports
// whether the time a takes precedence over the time b.
func (m *merger) time(name string, n *node, wins func(a, b time.Time) bool) (any, outcome) {
	var (
		best time.Time
		text string
	)
	if m.mayLack(name, health.LossOf(name)) {
		return nil, omitted
	}
	for _, p := range m.parts {
		s, ok := p.observed[name].(string)
		if !ok {
			continue
		}
		t, err := time.Parse(time.RFC3339, s)
		switch {
		case err == nil:
		case n.format == "date-time":
			return nil, omitted
		default:
			return m.equal(name) // the field may have texts, as in "expires: never"
		}
		// The same time may be written in different time zones. Then the first text in alphabetical order wins, so that the
		// order of the targets does not matter.
		if text == "" || wins(t, best) || (t.Equal(best) && s < text) {
			best, text = t, s
		}
	}
	if text == "" {
		return nil, silent
	}
	return text, merged
}

func (m *merger) knowsWords(name string) bool {
	return m.place.path == "" && health.WordsOf(m.schema.kind, name) != nil
}

// hasWords reports whether the hub knows the rank of each word that the schema's enum allows in the field.
func (m *merger) hasWords(name string, n *node) bool {
	_, ok := severityOf(schema.GroupKind{Group: m.schema.kind.Group}, name, n)
	return ok
}

// lastWords merges a required field with words that the method phase cannot merge: the hub does not know each word, or
// the schema does not have the word Unknown for a cluster that does not answer. It returns the worst of the last words
// of all copies. An unknown word counts as the word Unknown. ok is false if several unknown words are the worst, if no
// word is known, or if a copy has no word and the others have only good ones.
func (m *merger) lastWords(name string, n *node) (word string, ok bool) {
	if m.mayLack(name, health.LossOf(name)) {
		return "", false
	}
	words := map[string]bool{}
	silent := false
	for _, p := range m.parts {
		if word, _ := p.observed[name].(string); word != "" {
			words[word] = true
		} else {
			silent = true
		}
	}
	worst, rank, ok := worstOf(m.schema.kind, name, words)
	return worst, ok && n.allows(worst) && !(silent && rank == 0)
}

// phase merges a field whose values are words with a rank from best to worst, such as phase: Ready. It returns the
// worst value of all copies. If a copy has no value, lacks the wanted content, or is on an unreachable cluster, its
// value counts as Unknown. The field is left out if the hub does not know all ranks, or if the field cannot be Unknown.
func (m *merger) phase(name string, n *node) (any, outcome) {
	kind := m.schema.kind
	if m.place.path != "" {
		kind.Kind = "" // the words of a kind apply only to top-level fields of the status
	}
	severity, ok := severityOf(kind, name, n)
	if !ok {
		return nil, omitted
	}
	words := map[string]bool{}
	known := false
	for _, p := range m.parts {
		word, _ := p.observed[name].(string)
		known = known || word != ""
		if word == "" || !p.current() {
			word = severity.unknown
		}
		words[word] = true
	}
	if !known {
		return nil, m.absent(name, health.LossOf(name))
	}
	worst, ok := severity.worst(words)
	if !ok || !n.allows(worst) {
		return nil, omitted
	}
	return worst, merged
}

// observedGeneration returns the hub object's generation, if all copies have this generation and the operator on each
// member has observed it. Until then, it returns the last merged value. It leaves the field out if the status of a copy
// does not have this field, because the hub then cannot know what the operator has observed.
func (m *merger) observedGeneration(name string, n *node) (any, outcome) {
	if !m.everyPart(func(p part) bool { return p.observed[name] != nil }) {
		return nil, m.absent(name, health.LostCounts)
	}
	return m.generationIn(n, m.place.before[name])
}

func (m *merger) generationIn(n *node, before any) (any, outcome) {
	reported, ok := generation(before)
	if ok && (reported > m.generation || reported < 0) {
		ok = false // the generation of an earlier object of this name, or a default
	}
	if m.observed && len(m.parts) > 0 {
		reported, ok = m.generation, true
	}
	switch {
	case !ok:
		return nil, silent
	case n.kind == "string":
		return strconv.FormatInt(reported, 10), merged
	case n.countable():
		return reported, merged
	}
	return nil, omitted
}

func generation(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// native converts whole numbers of decoded JSON from float64 to int64, because unstructured objects have int64.
func native(value any) any {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < maxCount {
			return int64(v)
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, native(e))
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = native(e)
		}
		return out
	}
	return value
}
