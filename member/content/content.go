// Package content says what of a member object is the hub's, and whether somebody else changed it.
//
// It does no I/O. The truth about whose a field is are the managedFields that the member's API server keeps; no schema is
// needed to read them. They are not trusted to be well-formed: an entry that cannot be read counts as missing.
package content

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// isOurs is true for the entry that the hub's own applies keep.
func isOurs(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == hubv1.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// WithoutOurs returns the entries that are not of the hub's manager, whatever the operation and subresource: a namespace that
// was made on demand has one of an update.
func WithoutOurs(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == hubv1.FieldManager })
}

// ours returns the paths that the hub applied, or nil.
func ours(obj *unstructured.Unstructured) *fieldpath.Set {
	for _, e := range obj.GetManagedFields() {
		if isOurs(e) {
			return paths(e)
		}
	}
	return nil
}

// paths returns what an entry covers, or nil if that cannot be read.
func paths(e metav1.ManagedFieldsEntry) *fieldpath.Set {
	if e.FieldsV1 == nil {
		return nil
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
		return nil
	}
	return set
}

// canonical is the JSON of a value of an unstructured object; equal values give equal text.
func canonical(v any) string {
	switch v := v.(type) {
	case string:
		if isPlain(v) {
			return `"` + v + `"`
		}
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	}
	text, err := json.Marshal(v)
	if err != nil { // no JSON decoder makes such a value
		return "?"
	}
	return string(text)
}

// isPlain is true for a text of which nothing is escaped in JSON, as is most of what objects hold.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// list finds the items of one list by the path elements of managedFields. A list has one set of key fields, so the first
// that is asked for is indexed and any other finds nothing: no input makes a search take more than one pass.
type list struct {
	items  []any
	fields []string
	byKey  map[string]any
	values map[string]bool
}

// find returns the item that a key, a value or an index of managedFields names.
func (l *list) find(pe fieldpath.PathElement) (any, bool) {
	switch {
	case pe.Index != nil:
		if *pe.Index >= 0 && *pe.Index < len(l.items) {
			return l.items[*pe.Index], true
		}
	case pe.Value != nil:
		if l.values == nil {
			l.values = make(map[string]bool, len(l.items))
			for _, item := range l.items {
				l.values[canonical(item)] = true
			}
		}
		v := (*pe.Value).Unstructured()
		return v, l.values[canonical(v)]
	case pe.Key != nil:
		names, key := keyOf(pe)
		if l.byKey == nil {
			l.index(names)
		}
		if slices.Equal(names, l.fields) {
			item, ok := l.byKey[key]
			return item, ok
		}
	}
	return nil, false
}

func (l *list) index(fields []string) {
	l.fields, l.byKey = fields, make(map[string]any, len(l.items))
	for _, item := range l.items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		values := make([]string, len(fields))
		for i, f := range fields {
			values[i] = canonical(m[f])
		}
		l.byKey[strings.Join(values, ",")] = item
	}
}

func keyOf(pe fieldpath.PathElement) (fields []string, key string) {
	values := make([]string, len(*pe.Key))
	fields = make([]string, len(*pe.Key))
	for i, f := range *pe.Key {
		fields[i] = f.Name
		values[i] = canonical(f.Value.Unstructured())
	}
	return fields, strings.Join(values, ",")
}

// child returns what a path element names below a value.
func child(v any, l *list, pe fieldpath.PathElement) (any, bool) {
	if pe.FieldName == nil {
		return l.find(pe)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	c, ok := m[*pe.FieldName]
	return c, ok
}

func listOf(v any) *list {
	items, _ := v.([]any)
	return &list{items: items}
}
