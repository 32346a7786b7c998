package content

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Managers returns the sorted names of the field managers that own a field of a live object. pointer is a JSON pointer
// to the field in the manifest. A list item is found by its keys, because its position may differ in the live object.
// If the manifest does not have the list, the index in the pointer selects an item of the live object.
func Managers(live, manifest *unstructured.Unstructured, pointer string) []string {
	var at []owner
	for e := range entries(live) {
		if e.subresource != "" && e.subresource != scaleSubresource {
			continue
		}
		if set := e.paths(); set != nil {
			at = append(at, owner{name: e.manager, ours: e.isOurs(), set: set})
		}
	}
	var around []string // managers that own, as one value, a map or list around the field
	var want, have any = manifest.Object, live.Object
	steps := hubv1.PointerKeys(pointer)
	for i, step := range steps {
		pe, ok := elementAt(step, want, have, at)
		if !ok {
			return around
		}
		whole, parts := holders(at, pe)
		if i == len(steps)-1 {
			if names := append(whole, parts...); len(names) > 0 {
				return distinct(names)
			}
			return around
		}
		if len(whole) > 0 {
			around = distinct(whole)
		}
		want, have = stepInto(want, step), find(have, pe)
		at = below(at, pe)
	}
	return around
}

// holders returns the managers that own a field as a whole, and the managers that own only a part of it.
func holders(at []owner, pe fieldpath.PathElement) (whole, parts []string) {
	for _, o := range at {
		if _, inside := o.set.Children.Get(pe); inside {
			parts = append(parts, o.name)
		} else if o.set.Members.Has(pe) {
			whole = append(whole, o.name)
		}
	}
	return whole, parts
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// elementAt returns the path element of managedFields for a step of a JSON pointer. ok is false if there is none: the
// list is owned as one value, or has no such item.
func elementAt(step string, want, have any, at []owner) (pe fieldpath.PathElement, ok bool) {
	wanted, isList := want.([]any)
	items, alsoList := have.([]any)
	if !isList && !alsoList {
		return field(step), true
	}
	if !isList {
		wanted = items
	}
	index, err := strconv.Atoi(step)
	if err != nil || index < 0 || index >= len(wanted) {
		return pe, false
	}
	keys, byValue := shape(at)
	switch {
	case keys != nil:
		return keyElement(keys, wanted[index], items), true
	case byValue:
		v := value.NewValueInterface(wanted[index])
		return fieldpath.PathElement{Value: &v}, true
	}
	return pe, false
}

// stepInto returns the value at a step of a pointer. The result is nil if the step does not exist.
func stepInto(from any, step string) any {
	switch from := from.(type) {
	case map[string]any:
		return from[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(from) {
			return from[i]
		}
	}
	return nil
}

// find returns the value at a path element. The result is nil if the element does not exist.
func find(from any, pe fieldpath.PathElement) any {
	if pe.FieldName != nil {
		m, _ := from.(map[string]any)
		return m[*pe.FieldName]
	}
	item, _ := listOf(from).find(textOf(pe))
	return item
}
