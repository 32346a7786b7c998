// Package content computes which fields of a member object belong to the hub, and whether another client changed them.
//
// It does no I/O. It reads the owner of a field from managedFields, which needs no schema. managedFields may be
// malformed: an entry that cannot be read is treated as missing.
package content

import (
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// entry has the parts of a managedFields entry that this package needs.
type entry struct {
	manager, operation, subresource string
	fields                          map[string]any // the paths; nil if they cannot be read
}

// entries reads the managedFields in place, because the object's accessor converts every entry by reflection.
func entries(obj *unstructured.Unstructured) iter.Seq[entry] {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return func(yield func(entry) bool) {
		for _, item := range list {
			if e, ok := readEntry(item); ok && !yield(e) {
				return
			}
		}
	}
}

func readEntry(item any) (e entry, ok bool) {
	m, ok := item.(map[string]any)
	for _, name := range [...]string{"manager", "operation", "subresource"} {
		if _, isText := m[name].(string); m[name] != nil && !isText {
			return entry{}, false
		}
	}
	e.manager, _ = m["manager"].(string)
	e.operation, _ = m["operation"].(string)
	e.subresource, _ = m["subresource"].(string)
	e.fields, _ = m["fieldsV1"].(map[string]any)
	return e, ok
}

// isOurs reports whether the entry records the applies of the hub.
func (e entry) isOurs() bool {
	return e.manager == hubv1.FieldManager && e.operation == string(metav1.ManagedFieldsOperationApply) && e.subresource == ""
}

// WithoutOurs returns the entries of other managers. It removes every entry with the hub's manager name, of any
// operation and subresource, because a namespace created on demand has an Update entry.
func WithoutOurs(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == hubv1.FieldManager })
}

// oursRaw returns the hub's apply entry as written in the managedFields, or nil.
func oursRaw(obj *unstructured.Unstructured) map[string]any {
	for e := range entries(obj) {
		if e.isOurs() {
			return e.fields
		}
	}
	return nil
}

// ours returns the paths that the hub applied, or nil.
func ours(obj *unstructured.Unstructured) *fieldpath.Set { return pathsOf(oursRaw(obj)) }

// paths returns the fields of an entry, or nil if it is unreadable.
func (e entry) paths() *fieldpath.Set { return pathsOf(e.fields) }

func pathsOf(fields map[string]any) *fieldpath.Set {
	if fields == nil {
		return nil
	}
	elements, ok := appendElements(nil, fields)
	if !ok {
		return nil
	}
	set := &fieldpath.Set{}
	for _, e := range elements { // in sorted order, so that each insertion appends
		pe, err := fieldpath.DeserializePathElement(e.raw)
		if err != nil {
			return nil
		}
		if e.member {
			set.Members.Insert(pe)
		}
		if e.below != nil {
			below := pathsOf(e.below)
			if below == nil {
				return nil
			}
			*set.Children.Descend(pe) = *below
		}
	}
	return set
}
