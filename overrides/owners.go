package overrides

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// fieldSet is a set of fields in the form of fieldsV1 in managedFields. A field without elements below it is owned with
// everything in it.
type fieldSet = map[string]any

// everything is an element that only KeepOwners writes. It stands for all fields of a value.
const everything = "*"

// kubectlApply is the field manager of kubectl apply without server-side apply.
const kubectlApply = "kubectl-client-side-apply"

// owners are the fields of a hub object that clients have set. The fields in neither set were filled in by the API
// server: by defaults, by allocators such as the one of ports, or by admission.
type owners struct {
	// known is false if the object does not tell who owns its fields. All its fields then count as requested.
	known bool
	// requested are the fields that a user has asked for, by server-side apply or by kubectl apply.
	requested fieldSet
	// sent are the fields that other clients have written. Who sends a whole object also sends defaults: a create owns
	// them, and nothing tells such a value from a user's request.
	sent fieldSet
}

// ownersOf reads the managedFields of a hub object, and the annotation of kubectl apply. It also reads the
// managedFields that KeepOwners has written.
//
// Of the fields that kubectl apply owns, only those in its annotation are requested. The API server has filled in the
// others when kubectl created the object. If another client owns the annotation, it may have sent an object that it had
// read.
//
// A Secret is sent as a whole: who applies stringData owns no field of data, into which the API server moves it.
func ownersOf(object *unstructured.Unstructured) owners {
	if hubv1.IsSecret(object.GroupVersionKind().GroupKind()) {
		return owners{}
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	o := owners{requested: fieldSet{}, sent: fieldSet{}}
	applied := lastAppliedOf(metadata)
	for _, item := range entries {
		e, _ := item.(map[string]any)
		if e == nil || e["subresource"] == "status" {
			continue
		}
		fields, ok := e["fieldsV1"].(map[string]any)
		if !ok {
			return owners{}
		}
		o.known = true
		content := contentOf(fields)
		version, _ := e["apiVersion"].(string)
		switch {
		case version != "" && version != object.GetAPIVersion(): // its paths may be those of another schema
			for name := range object.Object {
				o.sent["f:"+name] = fieldSet{everything: fieldSet{}}
			}
		case e["operation"] == string(metav1.ManagedFieldsOperationApply):
			o.requested = union(o.requested, content)
		case applied != nil && e["manager"] == kubectlApply && ownsAnnotation(fields):
			o.requested = union(o.requested, within(content, applied))
		default:
			o.sent = union(o.sent, content)
			if applied != nil {
				o.requested = union(o.requested, within(content, applied))
			}
		}
	}
	o.sent = contentOf(o.sent)
	return o
}

// KeepOwners replaces the managedFields of a hub object by a short form with only the information that Prepare reads.
// The short form names no manager and no time, so that it changes only with the owned fields. Entries of the status
// stay. The object may lose its annotation of kubectl apply afterwards. KeepOwners changes the object.
func KeepOwners(object *unstructured.Unstructured) {
	metadata, _ := object.Object["metadata"].(map[string]any)
	if metadata == nil {
		return
	}
	var kept []any
	entries, _ := metadata["managedFields"].([]any)
	for _, item := range entries {
		if e, ok := item.(map[string]any); ok && e["subresource"] == "status" {
			kept = append(kept, map[string]any{"manager": e["manager"], "operation": e["operation"], "subresource": "status"})
		}
	}
	kept = append(kept, ownersOf(object).compact(object.Object).entries()...)
	if delete(metadata, "managedFields"); len(kept) > 0 {
		metadata["managedFields"] = kept
	}
}

// Owning returns the object with one more entry in managedFields, for the fields in applied, as after an apply of them.
// It shares its content with the object.
func Owning(object, applied *unstructured.Unstructured) *unstructured.Unstructured {
	if !ownersOf(object).known {
		return object
	}
	fields := fieldSet{}
	for name, value := range applied.Object {
		if !identifying[name] {
			fields["f:"+name] = allIn(value)
		}
	}
	out := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	metadata, _ := out.Object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	entries, _ := metadata["managedFields"].([]any)
	metadata["managedFields"] = append(slices.Clone(entries), owners{known: true, requested: fields}.entries()...)
	out.Object["metadata"] = metadata
	return out
}

// on returns the object with these owners. It shares its content with the object.
func (o owners) on(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	if metadata, ok := out.Object["metadata"].(map[string]any); ok && o.known {
		metadata = maps.Clone(metadata)
		metadata["managedFields"] = o.entries()
		out.Object["metadata"] = metadata
	}
	return out
}

func allIn(value any) fieldSet {
	m, ok := value.(map[string]any)
	if !ok || len(m) == 0 {
		return fieldSet{everything: fieldSet{}}
	}
	out := fieldSet{}
	for name, v := range m {
		out["f:"+name] = allIn(v)
	}
	return out
}

// entries returns the owners as managedFields.
func (o owners) entries() []any {
	if !o.known {
		return nil
	}
	var out []any
	if len(o.requested) > 0 {
		out = append(out, map[string]any{"operation": string(metav1.ManagedFieldsOperationApply), "fieldsV1": o.requested})
	}
	if len(o.sent) > 0 || len(o.requested) == 0 {
		out = append(out, map[string]any{"operation": string(metav1.ManagedFieldsOperationUpdate), "fieldsV1": o.sent})
	}
	return out
}

// compact returns the same owners in less space: a field of the object whose parts are all requested, or all sent, is
// written as one.
func (o owners) compact(object map[string]any) owners {
	if !o.known {
		return o
	}
	out := owners{known: true, requested: maps.Clone(o.requested), sent: maps.Clone(o.sent)}
	all := fieldSet{everything: fieldSet{}}
	for name, value := range object {
		if identifying[name] {
			continue
		}
		field := "f:" + name
		switch requested, sent, others := o.counted(name, value); {
		case others || requested && sent:
		case requested:
			out.requested[field] = all
			delete(out.sent, field)
		case sent:
			out.sent[field] = all
			delete(out.requested, field)
		}
	}
	return out
}

// counted reports which kinds of owners a field of the object and the values in it have.
func (o owners) counted(name string, value any) (requested, sent, others bool) {
	each(value, pointer{name}, coverOf(o.requested, name), coverOf(o.sent, name), func(_ pointer, _ any, c ownership) {
		switch c {
		case isRequested:
			requested = true
		case isSent:
			sent = true
		default:
			others = true
		}
	})
	return requested, sent, others
}

// identifying are the fields of an object that are not its content.
var identifying = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "status": true}

func contentOf(fields fieldSet) fieldSet {
	out := fieldSet{}
	for key, below := range fields {
		if name := fieldName(key); name != "" && !identifying[name] {
			out[key] = below
		}
	}
	return out
}

func fieldName(key string) string {
	if len(key) > 2 && key[:2] == "f:" {
		return key[2:]
	}
	return ""
}

// lastAppliedOf returns the object in the annotation of kubectl apply, or nil.
func lastAppliedOf(metadata map[string]any) map[string]any {
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[corev1.LastAppliedConfigAnnotation].(string)
	var applied map[string]any
	if text == "" || utiljson.Unmarshal([]byte(text), &applied) != nil {
		return nil
	}
	return applied
}

func ownsAnnotation(fields fieldSet) bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(fields, "f:metadata", "f:annotations", "f:"+corev1.LastAppliedConfigAnnotation)
	return ok
}

// union returns the union of two sets.
func union(a, b fieldSet) fieldSet {
	out := maps.Clone(a)
	for key, value := range b {
		below, _ := value.(map[string]any)
		there, has := out[key].(map[string]any)
		switch {
		case !has:
			out[key] = below
		case isLeaf(there) != isLeaf(below): // one owns the value as a whole, the other one parts of it
			out[key] = union(union(there, below), fieldSet{".": fieldSet{}})
		default:
			out[key] = union(there, below)
		}
	}
	return out
}

// within returns the fields of a set that a value has.
func within(set fieldSet, value any) fieldSet {
	items := itemsOf(value)
	out := fieldSet{}
	for key, below := range set {
		tree, _ := below.(map[string]any)
		if key == "." {
			out[key] = fieldSet{}
			continue
		}
		found, there := items.find(key)
		switch {
		case !there:
		case isLeaf(tree):
			out[key] = tree
		default:
			out[key] = within(tree, found)
		}
	}
	return out
}

// isLeaf reports whether a value is owned as a whole.
func isLeaf(tree fieldSet) bool {
	for key := range tree {
		if key != "." {
			return false
		}
	}
	return true
}

// items finds the parts of a value by the elements of fieldsV1.
type items struct {
	value any
	known map[string]any // the items of a list, by the text of their key fields or of their value; nil before a search
	keys  [][]string     // the names of key fields by which known has the items
}

func itemsOf(value any) *items { return &items{value: value} }

// find returns the part of the value for an element, such as f:spec or k:{"name":"web"}. An item that lacks one of the
// key fields is found, too: an applied object may lack a key field that has a default.
func (it *items) find(element string) (any, bool) {
	if len(element) < 2 {
		return nil, false
	}
	switch kind, text := element[:2], element[2:]; kind {
	case "f:":
		m, _ := it.value.(map[string]any)
		v, ok := m[text]
		return v, ok
	case "i:":
		list, _ := it.value.([]any)
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= len(list) {
			return nil, false
		}
		return list[i], true
	case "k:", "v:":
		var v any
		if utiljson.Unmarshal([]byte(text), &v) != nil {
			return nil, false
		}
		if key, ok := v.(map[string]any); ok && kind == "k:" {
			return it.item(key)
		}
		it.index(nil)
		found, ok := it.known[string(canonical.Bytes(v))]
		return found, ok
	}
	return nil, false
}

func (it *items) item(key map[string]any) (any, bool) {
	names := slices.Sorted(maps.Keys(key))
	it.index(names)
	if found, ok := it.known[keyText(key, names)]; ok {
		return found, true
	}
	for _, lacking := range names {
		if found, ok := it.known[keyText(key, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == lacking }))]; ok && len(names) > 1 {
			return found, true
		}
	}
	return nil, false
}

// index adds the items of the list to known: by the key fields with these names, or by their value if there are none.
func (it *items) index(names []string) {
	if slices.ContainsFunc(it.keys, func(known []string) bool { return slices.Equal(known, names) }) {
		return
	}
	it.keys = append(it.keys, names)
	if it.known == nil {
		it.known = map[string]any{}
	}
	list, _ := it.value.([]any)
	for _, item := range slices.Backward(list) { // so that the first of two equal items is found
		if m, ok := item.(map[string]any); ok && names != nil {
			it.known[keyText(m, names)] = item
		} else if names == nil {
			it.known[string(canonical.Bytes(item))] = item
		}
	}
}

// keyText returns the fields of an item that have these names, as text. It leaves out a name that the item lacks.
func keyText(item map[string]any, names []string) string {
	key := make(map[string]any, len(names))
	for _, name := range names {
		if v, ok := item[name]; ok {
			key[name] = v
		}
	}
	return string(canonical.Bytes(key))
}
