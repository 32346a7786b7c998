package rollup

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hanse-dev/hanse/member/health"
)

// largestCount is the last whole number that JSON can tell from its neighbours.
const largestCount = 1 << 53

// absent is the outcome of a field that no target has: some may have lost it.
func (m *merger) absent(name string, by health.Loss) outcome {
	if m.mayLack(name, by) {
		return omitted
	}
	return silent
}

// mayLack is true if a target may have a value that did not fit its projection.
func (m *merger) mayLack(name string, by health.Loss) bool {
	return slices.ContainsFunc(m.parts, func(p part) bool { return p.observed[name] == nil && p.lost >= by })
}

func (m *merger) sum(name string, n *node) (any, outcome) {
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
		return nil, m.absent(name, health.LostNumbers)
	case m.mayLack(name, health.LostNumbers), total > n.maximum, math.Abs(total) >= largestCount:
		return nil, omitted
	}
	return int64(total), merged
}

// amount is the sum of quantities, as counts of the same status are sums.
func (m *merger) amount(name string) (any, outcome) {
	var values []report
	for _, p := range m.parts {
		if value, ok := p.observed[name]; ok {
			values = append(values, report{cluster: p.row.Name, value: value, current: p.current()})
		}
	}
	if len(values) == 0 {
		return nil, m.absent(name, health.LostStrings)
	}
	total, ok := sumOf(values, reduced{})
	if !ok || m.mayLack(name, health.LostStrings) {
		return nil, omitted
	}
	return native(total), merged
}

// quantities is true for a field that has a text such as 40Gi on a cluster.
func (m *merger) quantities(name string) bool {
	return slices.ContainsFunc(m.parts, func(p part) bool {
		text, _ := p.observed[name].(string)
		_, ok := quantity(text)
		return ok && strings.HasSuffix(text, "i")
	})
}

// countOf reads a whole number, or the text of one where the schema has int-or-string.
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

// boolean is the common value. Where members differ, or not all have reported, the hub's spec says what a required one
// is.
func (m *merger) boolean(name string) (any, outcome) {
	value, how := m.equal(name)
	if how == merged || m.path != "" || !slices.Contains(m.node.required, name) || !m.schema.specBooleans[name] {
		return value, how
	}
	asked, _ := m.spec[name].(bool)
	return asked, merged
}

// equal is the value that every target has. It is used at the top only: further down, values are often equal by chance.
func (m *merger) equal(name string) (any, outcome) {
	if m.path != "" {
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
		return nil, m.absent(name, health.LostStrings)
	case known < len(m.parts):
		return nil, omitted // the others may say something else
	}
	return native(common), merged
}

// time is the first or last of the times that the members report.
func (m *merger) time(name string, n *node, wins func(a, b time.Time) bool) (any, outcome) {
	var (
		best time.Time
		text string
	)
	if m.mayLack(name, health.LostStrings) {
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
			return m.equal(name) // such as expires: never
		}
		// The same time in another zone is another text: whose it is must not depend on the order of the members.
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
	return m.path == "" && health.WordsOf(m.schema.kind, name) != nil
}

// phase is the worst word, if the hub knows what all words of the field mean. One that has not reported counts as
// Unknown if there is such a word, and hides the phase if not.
func (m *merger) phase(name string, n *node) (any, outcome) {
	kind := m.schema.kind
	if m.path != "" {
		kind.Kind = "" // the table speaks of fields of the status itself
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
		return nil, m.absent(name, health.LostStrings)
	}
	worst, ok := severity.worst(words)
	if !ok || !n.allows(worst) {
		return nil, omitted
	}
	return worst, merged
}

// observedGeneration is the hub's generation once every target has it and its operator has seen it; until then what was
// said last. It is there only if the status of every cluster that has reported has one: a controller that does not say
// it has not seen it.
func (m *merger) observedGeneration(name string, n *node) (any, outcome) {
	if !m.everyPart(func(p part) bool { return p.observed[name] != nil || p.lost >= health.LostNumbers }) {
		return nil, m.absent(name, health.LostNumbers)
	}
	return m.generationIn(n, m.before[name])
}

func (m *merger) generationIn(n *node, before any) (any, outcome) {
	said, ok := generation(before)
	if ok && (said > m.generation || said < 0) {
		ok = false // of an earlier object of that name, or a default for nothing
	}
	if m.observed && len(m.parts) > 0 {
		said, ok = m.generation, true
	}
	switch {
	case !ok:
		return nil, silent
	case n.kind == "string":
		return strconv.FormatInt(said, 10), merged
	case n.countable():
		return said, merged
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

// native turns the whole numbers of decoded JSON into those of objects.
func native(value any) any {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < largestCount {
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
