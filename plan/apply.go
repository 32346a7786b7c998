package plan

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// Applied returns a hub object as it is after a file with it is applied. If nothing changes, it returns the object
// itself.
//
// A field that only the object has stays, such as a default of the API server, unless the apply before had set it: by
// the annotation of kubectl apply, or by the managedFields of a server-side apply. Elements of a list are merged if they
// have names, or if the lists are equally long.
func Applied(object, file *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := overrides.AtVersion(file, object.GroupVersionKind().Version).DeepCopy()
	encodeStrings(wanted)
	delete(wanted.Object, "status")
	if m, ok := wanted.Object["metadata"].(map[string]any); ok {
		maps.DeleteFunc(m, func(key string, _ any) bool { return !slices.Contains(ofUsers, key) })
	}
	merged, _ := merge(object.Object, wanted.Object, lastApplied(object)).(map[string]any)
	if equality.Semantic.DeepEqual(object.Object, merged) {
		return object
	}
	return &unstructured.Unstructured{Object: merged}
}

// ofUsers are the fields of the metadata that a file changes.
var ofUsers = []string{"name", "namespace", "labels", "annotations"}

// encodeStrings moves stringData of a Secret to its data, as the API server does.
func encodeStrings(u *unstructured.Unstructured) {
	texts, _, _ := unstructured.NestedMap(u.Object, "stringData")
	if len(texts) == 0 || !hubv1.IsSecret(u.GroupVersionKind().GroupKind()) {
		return
	}
	data, _, _ := unstructured.NestedMap(u.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		if s, ok := text.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
	u.Object["data"] = data
	delete(u.Object, "stringData")
}

// owned says whether applies before have set a value. A value without one of them was set by someone else.
type owned struct {
	annotated any            // the value in the annotation of kubectl apply; nil if it is not there
	fields    map[string]any // the fields of a server-side apply below the value; nil if it is not there
}

func lastApplied(u *unstructured.Unstructured) owned {
	o := owned{fields: map[string]any{}}
	var annotated map[string]any
	if json.Unmarshal([]byte(u.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &annotated) == nil && annotated != nil {
		o.annotated = annotated
	}
	for _, entry := range u.GetManagedFields() {
		var fields map[string]any
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil && json.Unmarshal(entry.FieldsV1.Raw, &fields) == nil {
			o.fields = joined(o.fields, fields)
		}
	}
	return o
}

// joined are the fields of two managers.
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

// at is the ownership of a field.
func (o owned) at(key string) owned {
	out := owned{}
	if m, ok := o.annotated.(map[string]any); ok {
		out.annotated = m[key]
	}
	out.fields, _ = o.fields["f:"+key].(map[string]any)
	return out
}

// of is the ownership of an element of a list.
func (o owned) of(element any) owned {
	out := owned{}
	list, _ := o.annotated.([]any)
	for _, e := range list {
		if name := nameOf(e); name != "" && name == nameOf(element) {
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

// isKeyOf reports whether a key of managedFields names an element, such as k:{"name":"web"}.
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

// merge returns a value of the hub object with the value of the file in its place.
func merge(object, file any, o owned) any {
	switch is := file.(type) {
	case map[string]any:
		was, ok := object.(map[string]any)
		if !ok {
			return is
		}
		out := make(map[string]any, len(was))
		for key, value := range was {
			if _, wanted := is[key]; wanted || !o.at(key).there() {
				out[key] = value
			}
		}
		for key, value := range is {
			out[key] = value
			if there, ok := was[key]; ok {
				out[key] = merge(there, value, o.at(key))
			}
		}
		return out
	case []any:
		was, ok := object.([]any)
		if !ok {
			return is
		}
		return mergeElements(was, is, o)
	}
	return file
}

func mergeElements(object, file []any, o owned) []any {
	places, named := placesOf(object)
	_, also := placesOf(file)
	out := slices.Clone(file)
	for i, e := range file {
		switch at, there := places[nameOf(e)]; {
		case named && also && there:
			out[i] = merge(object[at], e, o.of(e))
		case !(named && also) && len(object) == len(file):
			out[i] = merge(object[i], e, o.of(e))
		}
	}
	return out
}
