package rollup

import (
	"maps"
	"slices"
	"strings"

	"github.com/hanse-dev/hanse/member/health"
)

// maxEntries is the maximum size of a merged map or list. A larger one is left out, because its entries come from
// members.
const maxEntries = 64

// into returns the merger for the object in a field, or in one entry of a list or map. before is the last merged value
// of this object. inner returns the object of one target.
func (m *merger) into(name string, n *node, before map[string]any, inner func(part int) map[string]any) *merger {
	sub := *m
	sub.path, sub.node, sub.leftOut, sub.before = m.path+"/"+escape.Replace(name), n, nil, before
	sub.parts = make([]part, 0, len(m.parts))
	for i, p := range m.parts {
		observed := inner(i)
		switch {
		case observed != nil:
			p.lost = min(p.lost, health.LostStrings) // a report drops nested values as a whole, except strings
		case p.lost >= health.LostNested:
			p.lost = health.LostNamed
		default:
			p.lost = health.LostNothing
		}
		p.observed = observed
		sub.parts = append(sub.parts, p)
	}
	return &sub
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// intoField returns the merger for an object or a map in a field.
func (m *merger) intoField(name string, n *node) *merger {
	inner := func(holder map[string]any) map[string]any {
		object, _ := holder[name].(map[string]any)
		return object
	}
	return m.into(name, n, inner(m.before), func(part int) map[string]any { return inner(m.parts[part].observed) })
}

// take returns the result of a nested merger. It adds the fields that were left out there to those of m.
func (m *merger) take(name string, sub *merger) (map[string]any, outcome) {
	if !sub.reported() {
		return nil, silent
	}
	out, missing := sub.fields()
	switch {
	case len(missing) > 0, len(out) == 0 && len(sub.leftOut) > 0:
		return nil, omitted
	case len(out) == 0:
		return nil, silent
	}
	for _, left := range sub.leftOut {
		m.leaveOut(name + "." + left)
	}
	return out, merged
}

// reported reports whether any target has a value for this object, or may have lost it.
func (m *merger) reported() bool {
	return m.rules.below(m.path) || slices.ContainsFunc(m.parts, func(p part) bool { return p.observed != nil || p.lost > health.LostNothing })
}

func (m *merger) leaveOut(name string) {
	if !slices.Contains(m.leftOut, name) {
		m.leftOut = append(m.leftOut, name)
	}
}

// object merges the fields of an object.
func (m *merger) object(name string, n *node) (any, outcome) {
	sub := m.intoField(name, n)
	sub.asked = m.asked || health.PerCluster(name)
	out, how := m.take(name, sub)
	if how != merged {
		return nil, how
	}
	return out, merged
}

// mapped merges a map, key by key. The values of the map are counts or objects.
func (m *merger) mapped(name string, n *node) (any, outcome) {
	if n.items == nil {
		return nil, omitted
	}
	sub := m.intoField(name, n)
	keys := map[string]bool{}
	for _, p := range sub.parts {
		if p.lost > health.LostStrings {
			return nil, omitted
		}
		for key := range p.observed {
			keys[key] = true
		}
	}
	if len(keys) == 0 {
		return nil, silent
	}
	if len(keys) > maxEntries {
		return nil, omitted
	}
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value, how := any(nil), omitted
		switch {
		case n.items.countable() && health.IsCount(name):
			value, how = sub.sum(key, n.items)
		case n.items.kind == "object":
			value, how = sub.object(key, n.items)
		}
		if how != merged {
			return nil, omitted
		}
		out[key] = value
	}
	return out, merged
}

// list merges lists of maps. Entries with equal keys are merged with each other.
func (m *merger) list(name string, n *node) (any, outcome) {
	if !n.keyed() {
		return nil, omitted
	}
	ids := map[string]map[string]any{} // the key fields of each entry, by their text
	var order []string
	byPart := make([]map[string]map[string]any, 0, len(m.parts))
	for _, p := range m.parts {
		list, has := p.observed[name]
		if list == nil && (has || p.lost >= health.LostNested) {
			return nil, omitted // a target's list did not fit into its report
		}
		entries, ok := n.entries(list)
		if !ok {
			return nil, omitted
		}
		for id, entry := range entries {
			if ids[id] == nil {
				ids[id], order = entry, append(order, id)
			}
		}
		byPart = append(byPart, entries)
	}
	if len(order) == 0 {
		return nil, silent
	}
	if len(order) > maxEntries || (n.maxItems >= 0 && len(order) > n.maxItems) {
		return nil, omitted
	}
	slices.Sort(order)
	before, _ := n.entries(m.before[name])
	out := make([]any, 0, len(order))
	for _, id := range order {
		sub := m.into(name, n.items, before[id], func(part int) map[string]any { return byPart[part][id] })
		sub.keys = n.keys
		entry, ok := m.listEntry(name, sub, ids[id])
		if !ok {
			return nil, omitted
		}
		out = append(out, entry)
	}
	return out, merged
}

// listEntry merges the entries of all targets that have the same key. like has the key fields of the entry. ok is false
// if no target has a value, or if a required field has none.
func (m *merger) listEntry(name string, sub *merger, like map[string]any) (entry map[string]any, ok bool) {
	out, missing := sub.fields()
	if len(out) == 0 || slices.ContainsFunc(missing, func(name string) bool { return !slices.Contains(sub.keys, name) }) {
		return nil, false
	}
	for _, left := range sub.leftOut {
		m.leaveOut(name + "[]." + left)
	}
	for _, key := range sub.keys {
		if v, ok := like[key]; ok {
			out[key] = native(v)
		}
	}
	return out, true
}
