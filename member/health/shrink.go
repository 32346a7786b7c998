package health

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A lossy is a projection that becomes smaller. The kind of its object says what its conditions mean.
type lossy struct {
	kind schema.GroupKind
	kept map[string]any
}

// loss removes one value from a projection, or makes it shorter. It returns the number of bytes of JSON that this
// saves.
type loss func() (saved int)

// A projection that is too large loses one group of values after the other. losses has the groups from the one that
// weighs least, each with a method that finds the values of the group.
var losses = []struct {
	group Loss
	of    func(lossy) []loss
}{
	{LostDetails, lossy.details},
	{LostReasons, lossy.goodReasons},
	{LostBooleans, lossy.booleans},
	{LostParts, lossy.parts},
	{LostWords, lossy.words},
	{LostNested, lossy.nested},
	{LostCounts, lossy.counts},
	{LostReasons, lossy.badReasons},
	{LostConditions, lossy.conditions},
	{LostNamed, lossy.named},
}

// shrink returns the projection as JSON of at most MaxProjection bytes. It removes values until the JSON is small
// enough, and records their groups as the Loss. It returns nil if nothing is left.
func (p lossy) shrink() []byte {
	lost := LostNothing
	if p.limitConditions() {
		lost = LostParts | LostConditions
		p.kept[lossField] = int64(lost | newLoss)
	}
	data := encode(p.kept)
	size := len(data)
	for _, next := range losses {
		if len(data) <= MaxProjection {
			break
		}
		for _, lose := range next.of(p) {
			if lost |= next.group; p.kept[lossField] == nil {
				size += len(`"~":1234,`)
			}
			p.kept[lossField] = int64(lost | newLoss)
			if size -= lose(); size > MaxProjection {
				continue
			}
			// The estimated size may be off by some bytes. The real size decides.
			if data = encode(p.kept); len(data) <= MaxProjection {
				break
			}
			size = len(data)
		}
		dropEmpty(p.kept)
		data = encode(p.kept)
		size = len(data)
	}
	if len(p.kept) == 0 {
		return nil
	}
	return data
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // a projection contains only maps, lists, strings, numbers and booleans
	}
	return data
}

type field struct {
	in   map[string]any
	name string
	path string
	size int
}

func (f field) lose() int {
	delete(f.in, f.name)
	return f.size
}

func fieldOf(in map[string]any, name, path string) field {
	return field{in: in, name: name, path: path, size: len(encode(name)) + len(encode(in[name])) + len(":,")}
}

// details returns functions that each remove a value that the hub seldom merges, the largest first: a string or number
// that no other group has, and a string or boolean in a nested map.
func (p lossy) details() []loss {
	out := p.topLevel(func(name string, v any) bool {
		switch v.(type) {
		case string, int64:
			return LossOf(name) == LostDetails && name != "observedGeneration"
		}
		return false
	})
	for name, v := range p.kept {
		if nested, ok := v.(map[string]any); ok && !reserved(name) {
			out = within(nested, name+".", out)
		}
	}
	return inOrder(out)
}

// within appends the strings and booleans in a nested map to the fields. Phases, quantities and the like are none of
// them.
func within(m map[string]any, path string, out []field) []field {
	for name, value := range m {
		switch v := value.(type) {
		case map[string]any:
			out = within(v, path+name+".", out)
		case string:
			if LossOf(name) == LostDetails {
				out = append(out, fieldOf(m, name, path+name))
			}
		case bool:
			out = append(out, fieldOf(m, name, path+name))
		}
	}
	return out
}

func (p lossy) booleans() []loss {
	return inOrder(p.topLevel(func(_ string, v any) bool { _, ok := v.(bool); return ok }))
}

func (p lossy) words() []loss {
	return inOrder(p.topLevel(func(name string, v any) bool { _, ok := v.(string); return ok && LossOf(name) == LostWords }))
}

// nested returns functions that each remove one nested map or list, the largest first. A list that was too large, and
// whose value is therefore null, goes last.
func (p lossy) nested() []loss {
	return inOrder(p.topLevel(func(name string, v any) bool {
		switch v.(type) {
		case map[string]any, []any, nil:
			return name != "conditions"
		}
		return false
	}))
}

// counts returns functions that each remove one number or quantity. status.observedGeneration is not removed: without
// it, the hub could not tell whether a copy has it.
func (p lossy) counts() []loss {
	return inOrder(p.topLevel(func(name string, v any) bool {
		switch v.(type) {
		case int64, string:
			return name != "observedGeneration"
		}
		return false
	}))
}

// weighed is a condition that still has all its fields, with its weight.
type weighed struct {
	fields map[string]any
	bad    bool // whether it tells of a problem, or of something that is not done yet
	whole  bool // whether it describes the whole object, and not only a part
	size   int
}

// weigh returns the conditions that still have all their fields, the one that weighs least first: good ones before bad
// ones, those of parts before those of the whole object, and large ones before small ones.
func (p lossy) weigh() []weighed {
	list, _ := p.kept["conditions"].([]any)
	out := make([]weighed, 0, len(list))
	for _, e := range list {
		if c, ok := e.(map[string]any); ok {
			out = append(out, weighed{fields: c, bad: p.bad(c), whole: p.ofWhole(conditionType(c)), size: len(encode(c)) + len(",")})
		}
	}
	later := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b weighed) int {
		return cmp.Or(later(a.bad)-later(b.bad), later(a.whole)-later(b.whole), cmp.Compare(b.size, a.size))
	})
	return out
}

func (p lossy) bad(c map[string]any) bool {
	switch words.condition(p.kind, conditionType(c)).folds {
	case GoodWhenTrue:
		return conditionStatus(c) != "True"
	case GoodWhenFalse:
		return conditionStatus(c) != "False"
	}
	reason, _ := c["reason"].(string)
	return namesFailure(reason)
}

func (p lossy) ofWhole(kind string) bool { return words.condition(p.kind, kind).role == roleWhole }

// maxConditions is the number of conditions beyond which a projection loses some before it is encoded.
const maxConditions = 128

// limitConditions removes the conditions beyond maxConditions that weigh least, and reports whether there were any.
func (p lossy) limitConditions() bool {
	list, _ := p.kept["conditions"].([]any)
	if len(list) <= maxConditions {
		return false
	}
	all := p.weigh()
	kept := make([]any, 0, maxConditions)
	for _, c := range all[len(all)-maxConditions:] {
		kept = append(kept, c.fields)
	}
	slices.SortStableFunc(kept, byType)
	p.kept["conditions"] = kept
	return true
}

// goodReasons returns functions that each shorten one good condition to its type, in the list of the types with the
// same status.
func (p lossy) goodReasons() []loss {
	var out []loss
	for _, c := range p.weigh() {
		if !c.bad {
			out = append(out, func() int { return p.shorten(c.fields) })
		}
	}
	return out
}

func (p lossy) shorten(c map[string]any) (saved int) {
	kind, status := conditionType(c), conditionStatus(c)
	saved = len(encode(c)) - len(encode(kind))
	p.remove(c)
	short, _ := p.kept[shortField+status].([]any)
	if short == nil {
		saved -= len(encode(shortField+status)) + len(":[],")
	}
	p.kept[shortField+status] = append(short, kind)
	return saved
}

// remove removes a condition from the list of the conditions with all their fields.
func (p lossy) remove(c map[string]any) {
	list, _ := p.kept["conditions"].([]any)
	if i := slices.IndexFunc(list, func(e any) bool { m, _ := e.(map[string]any); return maps.Equal(m, c) }); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if p.kept["conditions"] = list; len(list) == 0 {
		delete(p.kept, "conditions")
	}
}

// shortened returns functions that each remove one shortened condition, the longest type first. is tells which types
// are removed.
func (p lossy) shortened(is func(kind string) bool) []loss {
	type entry struct{ list, kind string }
	var found []entry
	for name, value := range p.kept {
		if types, _ := value.([]any); strings.HasPrefix(name, shortField) {
			for _, t := range types {
				if kind, _ := t.(string); is(kind) {
					found = append(found, entry{name, kind})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b entry) int {
		return cmp.Or(cmp.Compare(len(b.kind), len(a.kind)), strings.Compare(b.kind, a.kind), strings.Compare(b.list, a.list))
	})
	out := make([]loss, 0, len(found))
	for _, e := range found {
		out = append(out, func() int {
			types, _ := p.kept[e.list].([]any)
			i := slices.Index(types, any(e.kind))
			if p.kept[e.list] = slices.Delete(types, i, i+1); len(types) == 1 {
				delete(p.kept, e.list)
				return len(encode(e.list)) + len(encode(e.kind)) + len(":[],")
			}
			return len(encode(e.kind)) + len(",")
		})
	}
	return out
}

func (p lossy) parts() []loss { return p.shortened(func(kind string) bool { return !p.ofWhole(kind) }) }

// badReasons returns functions that each remove the reason and the generation of a condition that is not good.
func (p lossy) badReasons() []loss {
	var out []field
	for _, c := range p.weigh() {
		for _, name := range []string{"reason", "observedGeneration"} {
			if _, has := c.fields[name]; has {
				out = append(out, fieldOf(c.fields, name, conditionType(c.fields)+"."+name))
			}
		}
	}
	return inOrder(out)
}

// conditions returns functions that each remove one condition. Conditions that are not good go last.
func (p lossy) conditions() []loss {
	out := p.shortened(func(string) bool { return true })
	for _, c := range p.weigh() {
		out = append(out, func() int {
			p.remove(c.fields)
			return c.size
		})
	}
	return out
}

// named returns one function for each named value. A named value is at a path that a placement names. The function
// removes the value. The function for the largest value is the first.
func (p lossy) named() []loss {
	var out []field
	for name := range p.kept {
		if strings.HasPrefix(name, "/") {
			out = append(out, fieldOf(p.kept, name, name))
		}
	}
	return inOrder(out)
}

func (p lossy) topLevel(of func(name string, v any) bool) []field {
	var out []field
	for name, value := range p.kept {
		if !reserved(name) && of(name, value) {
			out = append(out, fieldOf(p.kept, name, name))
		}
	}
	return out
}

// inOrder returns the functions that remove the fields: the largest value first, and of equally large values the one
// whose path sorts last.
func inOrder(found []field) []loss {
	slices.SortFunc(found, func(a, b field) int { return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(b.path, a.path)) })
	out := make([]loss, 0, len(found))
	for _, f := range found {
		out = append(out, f.lose)
	}
	return out
}

// dropEmpty removes maps and lists that have become empty.
func dropEmpty(m map[string]any) {
	for name, value := range m {
		if reserved(name) {
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			if dropEmpty(v); len(v) == 0 {
				delete(m, name)
			}
		case []any:
			if len(v) == 0 {
				delete(m, name)
			}
		}
	}
}
