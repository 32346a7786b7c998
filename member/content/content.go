// Package content finds which fields of an object on a member the hub owns, and whether another client has changed
// them.
//
// Package content does no I/O. managedFields names the owner of each field, so that no schema is needed. An entry of
// managedFields that cannot be parsed is treated as missing.
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
	fields                          map[string]any // paths of the owned fields; nil if they cannot be read
}

// entries returns the entries of managedFields without converting them. The accessor of the object converts every entry
// by reflection, which is slow.
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

// isOurs reports whether this managedFields entry records the applies of the hub.
func (e entry) isOurs() bool {
	return e.manager == hubv1.FieldManager && e.operation == string(metav1.ManagedFieldsOperationApply) && e.subresource == ""
}

// WithoutOurs returns the entries of other managers. It removes every entry with the hub's manager name, whatever its
// operation and subresource. The hub's entry may have the operation Update, because the hub makes namespaces by a
// create.
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

// ours returns the paths in the hub's managedFields entry. These are the fields that the hub applied. The result is nil
// if there is no such entry.
func ours(obj *unstructured.Unstructured) *fieldpath.Set { return pathsOf(oursRaw(obj)) }

// paths returns the fields of a managedFields entry. The result is nil if the entry cannot be parsed.
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
