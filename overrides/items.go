package overrides

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// A step of a path may select items of a list: * selects all items, and a key such as [name=web] selects the items
// whose field has the value. In a map, the same text is the key of a field, as RFC 6901 says.
const allItems = "*"

// keyOf returns the field and the value of a step such as [name=web].
func keyOf(step string) (field, value string, ok bool) {
	if len(step) < 2 || step[0] != '[' || step[len(step)-1] != ']' {
		return "", "", false
	}
	field, value, ok = strings.Cut(step[1:len(step)-1], "=")
	return field, value, ok && field != ""
}

// selectsItems reports whether a step may select items of a list, other than by an index.
func selectsItems(step string) bool {
	_, _, keyed := keyOf(step)
	return keyed || step == allItems
}

// isItem reports whether a step may lead to an item of a list.
func isItem(step string) bool {
	_, isIndex := index(step)
	return isIndex || step == "-" || selectsItems(step)
}

// meets reports whether two steps may lead to the same value.
func meets(a, b string) bool {
	return a == b || selectsItems(a) && isItem(b) || selectsItems(b) && isItem(a)
}

func (p pointer) selectsItems() bool { return slices.ContainsFunc(p, selectsItems) }

// optional reports whether the path may select no value: a path with * changes the fields that are there.
func (p pointer) optional() bool { return slices.Contains(p, allItems) }

// beforeItems returns the path up to the first step that selects items.
func (p pointer) beforeItems() pointer {
	if i := slices.IndexFunc(p, selectsItems); i >= 0 {
		return p[:i]
	}
	return p
}

// itemSearch is the search for the values that a path selects.
type itemSearch struct {
	path pointer
	// found are the paths of the selected values, in the order of the lists. A found path has indexes in place of the
	// steps that select items. The field at its last step may be missing.
	found []pointer
	// read are the paths of the values on which the result depends: the compared fields of items, and the places at which
	// a value is missing.
	read   []pointer
	looked int
	// fault ends the search.
	fault *fault
}

// items returns the values in v that the path selects, as paths without steps that select items. read has the paths on
// which the result depends. There is an error if the path selects nothing, unless the path is optional.
func (p pointer) items(v any) (found, read []pointer, f *fault) {
	s := itemSearch{path: p}
	s.descend(v, nil)
	switch {
	case s.fault != nil:
		return nil, s.read, s.fault
	case len(s.found) == 0 && !p.optional():
		return nil, s.read, &fault{path: p.String(), message: "selects no item of the object: correct the key, or use * to change all existing items"}
	}
	return s.found, s.read, nil
}

func (s *itemSearch) descend(v any, at pointer) {
	rest := s.path[len(at):]
	if s.fault != nil {
		return
	}
	if len(rest) == 0 {
		s.found = append(s.found, at)
		return
	}
	if list, isList := v.([]any); isList && selectsItems(rest[0]) {
		s.descendList(list, at, rest[0])
		return
	}
	next := append(slices.Clip(at), rest[0])
	inner, ok := child(v, rest[0])
	switch {
	case ok:
		s.descend(inner, next)
	case len(rest) == 1, !rest.selectsItems() && !s.path.optional():
		s.found = append(s.found, slices.Concat(at, rest)) // the change creates the field, or tells that it is missing
	case selectsItems(rest[0]) && v != nil:
		s.fault = missing(s.path, adviceMap)
	default:
		s.read = append(s.read, next)
	}
}

func (s *itemSearch) descendList(list []any, at pointer, step string) {
	field, value, keyed := keyOf(step)
	if len(list) == 0 {
		s.read = append(s.read, at)
	}
	for i, item := range list {
		if s.looked++; s.looked > maxListed {
			s.fault = &fault{path: s.path.String(), message: fmt.Sprintf("selects among more than %d items of lists, which is too many: use an index or a narrower path", maxListed)}
			return
		}
		place := append(slices.Clip(at), strconv.Itoa(i))
		if keyed {
			s.read = append(s.read, append(slices.Clip(place), field))
			if got, ok := child(item, field); !ok || !isWritten(got, value) {
				continue
			}
		}
		s.descend(item, place)
	}
}

// isWritten reports whether a scalar is written as the text, such as the number 8080 as "8080".
func isWritten(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case int64:
		return strconv.FormatInt(v, 10) == text
	case bool:
		return strconv.FormatBool(v) == text
	}
	return false
}

// item returns the one value in v that the path selects, as a path without steps that select items. read has the paths
// on which the result depends. If there is no value, the fault is unmet, so that a test skips its rule.
func (p pointer) item(v any) (one pointer, read []pointer, f *fault) {
	if !p.selectsItems() {
		return p, nil, nil
	}
	s := itemSearch{path: p}
	s.descend(v, nil)
	switch found := s.found; {
	case s.fault != nil:
		return nil, s.read, s.fault
	case len(found) == 0:
		return nil, s.read, &fault{path: p.String(), message: "selects no item of the object: correct the path", unmet: true}
	case len(found) > 1:
		return nil, s.read, &fault{path: p.String(), message: fmt.Sprintf("selects %d items, and test, move and copy need one: use a key or an index", len(found))}
	}
	return s.found[0], s.read, nil
}

// selectsItems reports whether a path of the operation may select items of a list.
func (o *operation) selectsItems() bool { return o.path.selectsItems() || o.from.selectsItems() }

// located returns the operations on single values that the operation stands for, in the order of the lists, and the
// paths on which they depend.
func (o *operation) located(doc any) (ops []operation, read []pointer, f *fault) {
	one := *o
	if takesFrom(o.op) || o.op == hubv1.PatchTest {
		for _, p := range []*pointer{&one.from, &one.path} {
			var also []pointer
			*p, also, f = p.item(doc)
			if read = append(read, also...); f != nil {
				f.unmet = f.unmet && o.op == hubv1.PatchTest
				return nil, read, f
			}
		}
		return []operation{one}, read, nil
	}
	found, read, f := o.path.items(doc)
	if f != nil {
		return nil, read, f
	}
	for _, path := range found {
		if o.op == hubv1.PatchAdd && path.last() != o.path.last() {
			return nil, read, &fault{path: o.path.String(), message: "selects items that exist, and add would insert others before them: use replace, or end the path with /- to append"}
		}
		if _, exists := path.lookup(doc); !exists && o.op != hubv1.PatchAdd && o.path.optional() {
			if selectsItems(path.last()) {
				return nil, read, missing(o.path, adviceMap)
			}
			read = append(read, path)
			continue
		}
		one.path = path
		ops = append(ops, one)
	}
	return ops, read, nil
}

// applyToItems applies the operation to each value that it selects. It begins with the last one, so that a removed item
// moves none of the others.
func (o *operation) applyToItems(doc map[string]any, b *budget) *fault {
	ops, _, f := o.located(doc)
	if f != nil {
		return f
	}
	for _, one := range slices.Backward(ops) {
		if !b.spend(addedBy(&one), 1) {
			return &fault{path: o.path.String(), message: b.exceeded()}
		}
		if f := one.applyToOne(doc, b); f != nil {
			return f
		}
	}
	return nil
}
