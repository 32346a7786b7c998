package rollup

import (
	"maps"
	"slices"
	"strings"

	"github.com/hanse-dev/hanse/member/health"
)

// maxEntries is the maximum number of items in a merged map or list. A larger map or list is left out, because a member
// could invent items.
const maxEntries = 64

// into returns a merger for an object inside the object of m: the value of a field, or an item of a list or map. before
// is the last merged value of the inner object. The function inner returns the inner object in the status of one copy.
func (m *merger) into(name string, n *node, before map[string]any, inner func(part int) map[string]any) *merger {
	sub := *m
	sub.place.path, sub.place.node, sub.leftOut, sub.place.before, sub.place.needed = m.place.path+"/"+escape.Replace(name), n, nil, before, false
	sub.parts = make([]part, 0, len(m.parts))
	for i, p := range m.parts {
		observed := inner(i)
		switch {
		case observed != nil:
			p.lost &= health.LostDetails // reports drop whole nested values, or only strings and booleans in them
		case p.lost.Has(health.LostNested):
			p.lost = health.LostEverything
		default:
			p.lost = health.LostNothing
		}
		p.observed = observed
		sub.parts = append(sub.parts, p)
	}
	return &sub
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// intoField returns a merger for the object or map that is the value of a field.
func (m *merger) intoField(name string, n *node) *merger {
	inner := func(holder map[string]any) map[string]any {
		object, _ := holder[name].(map[string]any)
		return object
	}
	return m.into(name, n, inner(m.place.before), func(part int) map[string]any { return inner(m.parts[part].observed) })
}

// take returns the result of the merger sub for an inner object. It adds the names of the fields that sub has left out
// to those of m.
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

// reported reports whether the object may have a merged value. It returns true if a rule of the placement concerns the
// object, if a copy has a value for it, or if the size limit may have removed such a value.
func (m *merger) reported() bool {
	return m.rules.below(m.place.path) || slices.ContainsFunc(m.parts, func(p part) bool { return p.observed != nil || p.lost != health.LostNothing })
}

func (m *merger) leaveOut(name string) {
	if !slices.Contains(m.leftOut, name) {
		m.leftOut = append(m.leftOut, name)
	}
}

// object merges the object that is the value of a field.
func (m *merger) object(name string, n *node) (any, outcome) {
	sub := m.intoField(name, n)
	sub.place.asked, sub.place.needed = m.place.asked || health.PerCluster(name), m.requires(name)
	out, how := m.take(name, sub)
	if how != merged {
		return nil, how
	}
	return out, merged
}

// mapped merges a map, key by key. The values of the map must be counts or objects; a map with other values is left
// out.
func (m *merger) mapped(name string, n *node) (any, outcome) {
	if n.items == nil {
		return nil, omitted
	}
	sub := m.intoField(name, n)
	keys := map[string]bool{}
	for _, p := range sub.parts {
		if p.lost.Has(^health.LostDetails) {
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

// list merges lists of maps. Items with equal key fields are merged with each other.
func (m *merger) list(name string, n *node) (any, outcome) {
	if !n.keyed() {
		return nil, omitted
	}
	ids := map[string]map[string]any{} // key fields of each entry, by their text
	var order []string
	byPart := make([]map[string]map[string]any, 0, len(m.parts))
	for _, p := range m.parts {
		list, has := p.observed[name]
		if list == nil && (has || p.lost.Has(health.LostNested)) {
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
	before, _ := n.entries(m.place.before[name])
	out := make([]any, 0, len(order))
	for _, id := range order {
		sub := m.into(name, n.items, before[id], func(part int) map[string]any { return byPart[part][id] })
		sub.place.keys = n.keys
		entry, ok := m.listEntry(name, sub, ids[id])
		if !ok {
			return nil, omitted
		}
		out = append(out, entry)
	}
	return out, merged
}

// listEntry merges the items that have the same key in the lists of all clusters. like is one of these items and
// supplies the key fields. ok is false if no field has a merged value, or if a required field has none.
func (m *merger) listEntry(name string, sub *merger, like map[string]any) (entry map[string]any, ok bool) {
	out, missing := sub.fields()
	if len(out) == 0 || slices.ContainsFunc(missing, func(name string) bool { return !slices.Contains(sub.place.keys, name) }) {
		return nil, false
	}
	for _, left := range sub.leftOut {
		m.leaveOut(name + "[]." + left)
	}
	for _, key := range sub.place.keys {
		if v, ok := like[key]; ok {
			out[key] = native(v)
		}
	}
	return out, true
}
