package preview

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/overrides"
)

// Applied returns the state of a hub object after kubectl or hansectl has applied file. If the apply changes no field,
// it returns object itself.
//
// A field that is missing in the file stays, such as a default of the API server, unless the previous apply had set it.
// The annotation of kubectl apply, or the managedFields of a server-side apply, show which fields the previous apply
// had set. If a custom resource was never applied, the fields of its spec that the file lacks are removed, except those
// that hansectl sets. A list is replaced by the list in the file. In built-in kinds, items of a list keep their
// defaults if they have names, or if both lists are equally long.
func Applied(object, file *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := overrides.FoldStringData(overrides.AtVersion(file, object.GroupVersionKind().Version)).DeepCopy()
	delete(wanted.Object, "status")
	if metadata, ok := wanted.Object["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(key string, _ any) bool { return !slices.Contains(ofUsers, key) })
	}
	m := merger{builtIn: isBuiltIn(object.GroupVersionKind().Group)}
	merged, _ := m.merge(object.Object, keepingAnnotations(object, wanted.Object), lastApplied(object)).(map[string]any)
	if equality.Semantic.DeepEqual(object.Object, merged) {
		return object
	}
	return overrides.Owning(&unstructured.Unstructured{Object: merged}, wanted)
}

// keepingAnnotations returns the content of a file, with an empty map of annotations if only the object has some. An
// apply removes the annotations that the previous one had set, but never all: kubectl apply keeps its own annotation.
func keepingAnnotations(object *unstructured.Unstructured, file map[string]any) map[string]any {
	metadata, ok := file["metadata"].(map[string]any)
	if !ok || metadata["annotations"] != nil || len(object.GetAnnotations()) == 0 {
		return file
	}
	file, metadata = maps.Clone(file), maps.Clone(metadata)
	metadata["annotations"], file["metadata"] = map[string]any{}, metadata
	return file
}

// ofUsers are the fields of metadata that an apply takes from the file.
var ofUsers = []string{"name", "namespace", "labels", "annotations"}

// owned tells which fields of an object, or of a value in it, were set by previous applies. Other clients have set all
// other fields.
type owned struct {
	annotated any            // the value in the annotation of kubectl apply; nil if it is missing
	fields    map[string]any // the fields of a server-side apply below the value; nil if there are none
}

func lastApplied(u *unstructured.Unstructured) owned {
	o := owned{fields: map[string]any{}}
	var annotated map[string]any
	if json.Unmarshal([]byte(u.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &annotated) == nil && annotated != nil {
		o.annotated = annotated
	}
	applies := func(e metav1.ManagedFieldsEntry) bool { return e.Operation == metav1.ManagedFieldsOperationApply }
	// A custom resource that was never applied was written as a whole, for example by Helm. All its fields then count as
	// set by an apply, so that fields of the spec that the file lacks are removed. Fields that hansectl sets, such as
	// spec.suspend, do not count.
	whole := o.annotated == nil && !slices.ContainsFunc(u.GetManagedFields(), applies) && !isBuiltIn(u.GroupVersionKind().Group)
	if whole {
		applies = func(e metav1.ManagedFieldsEntry) bool { return e.Manager != "hansectl" }
	}
	for _, entry := range u.GetManagedFields() {
		var fields map[string]any
		if applies(entry) && entry.Subresource == "" && entry.FieldsV1 != nil && json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil {
			o.fields = joined(o.fields, fields)
		}
	}
	if whole {
		maps.DeleteFunc(o.fields, func(field string, _ any) bool { return field != "f:spec" })
	}
	return o
}

// joined returns the union of two sets of managed fields.
func joined(a, b map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, a)
	for key, value := range b {
		below, _ := value.(map[string]any)
		there, _ := out[key].(map[string]any)
		out[key] = joined(there, below)
	}
	return out
}

// at returns which fields below the given key of a map were set by previous applies.
func (o owned) at(key string) owned {
	out := owned{}
	if m, ok := o.annotated.(map[string]any); ok {
		out.annotated = m[key]
	}
	out.fields, _ = o.fields["f:"+key].(map[string]any)
	return out
}

// of returns which fields of an item of a list were set by previous applies. place is the index of the item, for lists
// whose items have no names.
func (o owned) of(element any, place int) owned {
	out := owned{}
	list, _ := o.annotated.([]any)
	for i, e := range list {
		if name := nameOf(e); name != "" && name == nameOf(element) || name == "" && i == place {
			out.annotated = e
		}
	}
	for key, below := range o.fields {
		if isKeyOf(key, element) {
			out.fields, _ = below.(map[string]any)
		}
	}
	return out
}

// isKeyOf reports whether a key of managedFields, such as k:{"name":"web"}, selects this list item.
func isKeyOf(key string, element any) bool {
	text, ok := strings.CutPrefix(key, "k:")
	var fields map[string]any
	is, isMap := element.(map[string]any)
	if !ok || !isMap || json.Unmarshal([]byte(text), &fields) != nil {
		return false
	}
	for name, value := range fields {
		wanted, err := json.Marshal(value)
		found, other := json.Marshal(is[name])
		if err != nil || other != nil || string(wanted) != string(found) {
			return false
		}
	}
	return true
}

func (o owned) there() bool { return o.annotated != nil || o.fields != nil }

// merger merges the values of a hub object with the values of a file.
type merger struct{ builtIn bool }

// isBuiltIn reports whether a group belongs to Kubernetes itself.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// merge returns the value of one field of the hub object after an apply. object is the field's value in the hub object,
// and file is the value in the file. o tells which fields in this value the previous apply has set.
func (m merger) merge(object, file any, o owned) any {
	switch is := file.(type) {
	case map[string]any:
		if was, ok := object.(map[string]any); ok {
			return m.mergeFields(was, is, o)
		}
	case []any:
		if was, ok := object.([]any); ok && m.builtIn {
			return m.mergeElements(was, is, o)
		}
	}
	return file
}

func (m merger) mergeFields(object, file map[string]any, o owned) map[string]any {
	out := make(map[string]any, len(object))
	for key, value := range object {
		if !o.at(key).there() {
			out[key] = value
		}
	}
	for key, value := range file {
		out[key] = value
		if there, ok := object[key]; ok {
			out[key] = m.merge(there, value, o.at(key))
		}
	}
	return out
}

func (m merger) mergeElements(object, file []any, o owned) []any {
	places, named := placesOf(object)
	_, also := placesOf(file)
	out := slices.Clone(file)
	for i, e := range file {
		switch at, there := places[nameOf(e)]; {
		case named && also && there:
			out[i] = m.merge(object[at], e, o.of(e, at))
		case !(named && also) && len(object) == len(file):
			out[i] = m.merge(object[i], e, o.of(e, i))
		}
	}
	return out
}
