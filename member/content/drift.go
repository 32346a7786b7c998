package content

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/hanse-dev/hanse/member"
)

// UnknownManager stands for the manager of a field that has changed, if no entry of managedFields names a manager of
// the field. Either the field was removed, or its manager has left no entry.
const UnknownManager = "unknown"

const maxDrifts = 3

// Drift returns up to three fields of the manifest that another client has changed. Such a field differs in the live
// object, and the hub no longer owns it: another manager owns it, or it was removed. If it was removed, its manager is
// "unknown". A field that the hub still owns is not returned. Its value differs only because the manifest has changed,
// or because the server stores the value in another form.
//
// If the manifest is newer than the live object, the result also has the fields that are new in the manifest, with the
// manager "unknown".
func Drift(live, manifest *unstructured.Unstructured) []member.FieldDrift {
	d := drifts{}
	var at []owner
	for e := range entries(live) {
		if e.subresource != "" && e.subresource != scaleSubresource {
			continue
		}
		if set := e.paths(); set != nil {
			at = append(at, owner{name: e.manager, ours: e.isOurs(), set: set})
		}
	}
	want, have := maps.Clone(manifest.Object), live.Object
	for _, identity := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(want, identity)
	}
	d.fields(nil, want, have, at)
	for _, f := range []string{"annotations", "labels"} {
		path := []string{"metadata", f}
		want, _, _ := unstructured.NestedMap(manifest.Object, path...)
		have, _, _ := unstructured.NestedMap(live.Object, path...)
		d.fields(fieldpath.MakePathOrDie("metadata", f), want, have, below(below(at, field("metadata")), field(f)))
	}
	return d.found
}

// owner is a manager, with the fields that it owns below the current path.
type owner struct {
	name string
	ours bool
	set  *fieldpath.Set // paths that the manager owns; nil if there are none
}

// below returns the managers that own fields below a path element. Each returned manager has only its fields below this
// element.
func below(at []owner, pe fieldpath.PathElement) []owner {
	out := make([]owner, 0, len(at))
	for _, o := range at {
		if s, ok := o.set.Children.Get(pe); ok {
			out = append(out, owner{o.name, o.ours, s})
		}
	}
	return out
}

func field(name string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &name} }

// drifts collects the fields whose live value differs from the manifest, because another client has changed them.
type drifts struct{ found []member.FieldDrift }

func (d *drifts) full() bool { return len(d.found) >= maxDrifts }

// fields compares a map of the manifest with the map of the live object.
func (d *drifts) fields(path fieldpath.Path, want, have map[string]any, at []owner) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, ok := have[name]
		d.element(path, field(name), want[name], got, ok, at)
	}
}

// element compares the values of the manifest and the live object at one path element.
func (d *drifts) element(path fieldpath.Path, pe fieldpath.PathElement, want, have any, there bool, at []owner) {
	if d.full() {
		return
	}
	path = append(slices.Clone(path), pe)
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			d.fields(path, want, have, below(at, pe))
			return
		}
	case []any:
		if have, ok := have.([]any); ok {
			d.items(path, pe, want, have, at)
			return
		}
	}
	if !there || !sameJSON(want, have) {
		d.report(path, pe, at)
	}
}

// items compares two lists. If a manager owns items by key or by value, the lists are compared item by item. Otherwise
// they are compared as whole values.
func (d *drifts) items(path fieldpath.Path, pe fieldpath.PathElement, want, have []any, at []owner) {
	inside := below(at, pe)
	items, addressed := addressedItems(want, have, inside)
	switch {
	case addressed:
		for _, i := range items {
			d.element(path, i.element, i.want, i.have, i.there, inside)
		}
	case !covers(have, want):
		d.report(path, pe, at)
	}
}

// addressedItem is an item of the manifest's list, and the live item with the same key or value.
type addressedItem struct {
	element    fieldpath.PathElement
	want, have any
	there      bool // the live list has the item
}

// addressedItems finds the live items of a list of the manifest. ok is false if no manager addresses the items by key
// or by value.
func addressedItems(want, have []any, inside []owner) (items []addressedItem, ok bool) {
	keys, byValue := shape(inside)
	if keys == nil && !byValue {
		return nil, false
	}
	l := listOf(have)
	for _, w := range want {
		v := value.NewValueInterface(w)
		i := addressedItem{element: fieldpath.PathElement{Value: &v}, want: w}
		if keys != nil {
			i.element = keyElement(keys, w, have)
		}
		i.have, i.there = l.find(textOf(i.element))
		items = append(items, i)
	}
	return items, true
}

// shape returns how managers address the items of a list. If they use key fields, keys has the names of these fields.
// If they use the whole value of an item, byValue is true. If keys is empty and byValue is false, the list is owned as
// a whole.
func shape(at []owner) (keys []string, byValue bool) {
	for _, o := range at {
		for pe := range o.set.Members.All() {
			if pe.Key != nil {
				return fieldsOf(pe), false
			}
			byValue = byValue || pe.Value != nil
		}
		o.set.Children.Iterate(func(pe fieldpath.PathElement) { // the set's method All cannot stop early
			if keys == nil && pe.Key != nil {
				keys = fieldsOf(pe)
			}
		})
		if keys != nil {
			return keys, false
		}
	}
	return nil, byValue
}

// fieldsOf returns the field names of a key.
func fieldsOf(pe fieldpath.PathElement) []string {
	names := make([]string, len(*pe.Key))
	for i, f := range *pe.Key {
		names[i] = f.Name
	}
	return names
}

// keyElement returns the path element for an item of the manifest. It has the values of the item's keys. The manifest
// may omit a key that has a default, such as the protocol of a port. The value of such a key comes from the live item
// whose other keys are equal.
func keyElement(keys []string, item any, live []any) fieldpath.PathElement {
	given := map[string]any{}
	m, _ := item.(map[string]any)
	for _, k := range keys {
		if v, ok := m[k]; ok {
			given[k] = v
		}
	}
	if len(given) < len(keys) {
		if i := slices.IndexFunc(live, func(l any) bool { return covers(l, given) }); i >= 0 {
			m, _ = live[i].(map[string]any)
		}
	}
	key := make(value.FieldList, len(keys))
	for i, k := range keys {
		key[i] = value.Field{Name: k, Value: value.NewValueInterface(m[k])}
	}
	return fieldpath.PathElement{Key: &key}
}

// covers reports whether the live value (have) contains everything in the value of the manifest (want). The live value
// may have more fields, because a server adds defaults inside an atomic list.
func covers(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, w := range want {
			if h, ok := have[k]; !ok || !covers(h, w) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return false
		}
		for i := range want {
			if !covers(have[i], want[i]) {
				return false
			}
		}
		return true
	}
	return sameJSON(have, want)
}

// report records that a field differs from the manifest, unless the hub owns the field.
func (d *drifts) report(path fieldpath.Path, pe fieldpath.PathElement, at []owner) {
	manager := UnknownManager
	for _, o := range at {
		_, inside := o.set.Children.Get(pe)
		if !inside && !o.set.Members.Has(pe) {
			continue
		}
		if o.ours {
			return
		}
		if o.name != "" {
			manager = o.name
		}
	}
	d.found = append(d.found, member.FieldDrift{Path: path.String(), Manager: manager})
}
