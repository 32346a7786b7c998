package overrides

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// stringData of a Secret is the only field of a built-in kind that an API server reads and never stores: it moves the
// texts to data. If a member's API server moved them, the hub would own no key of data. An edit of such a key would
// stay, and so would a key that a rule does not set any more. A rendered manifest therefore has all texts in data.
//
// While rules are applied, stringData is a view of keys of data. Both have equal values before and after each rule, and
// a rule may change a key in either of them.
const (
	fieldData       = "data"
	fieldStringData = "stringData"
)

// FoldStringData moves the texts in stringData of a Secret to data, as an API server does. It returns the object itself
// if there are none. Otherwise the result shares all other fields with the object. Values that are not texts stay in
// stringData, so that the schema of the kind refuses them.
func FoldStringData(object *unstructured.Unstructured) *unstructured.Unstructured {
	if !isSecret(object.Object) || object.Object[fieldStringData] == nil {
		return object
	}
	out := maps.Clone(object.Object)
	if data, ok := out[fieldData].(map[string]any); ok {
		out[fieldData] = maps.Clone(data)
	}
	followTexts(nil, out)
	withoutTexts(out)
	return &unstructured.Unstructured{Object: out}
}

// textsOf returns the texts in stringData of a Secret, by their keys. The result is nil for an object of another kind.
func textsOf(object map[string]any) map[string]string {
	if !isSecret(object) {
		return nil
	}
	values, _ := object[fieldStringData].(map[string]any)
	texts := make(map[string]string, len(values))
	for key, v := range values {
		if text, ok := v.(string); ok {
			texts[key] = text
		}
	}
	return texts
}

// followTexts makes data and stringData of a Secret equal after a change. before are the texts before the change. A key
// whose text was changed gets the text, also in data. A key whose text was removed is removed from data. A key that was
// changed in data only is removed from stringData. For an object of another kind, followTexts does nothing.
func followTexts(before map[string]string, object map[string]any) {
	now := textsOf(object)
	if len(before)+len(now) == 0 {
		return
	}
	if object[fieldData] == nil {
		object[fieldData] = map[string]any{}
	}
	data, ok := object[fieldData].(map[string]any)
	if !ok {
		return // the schema of the kind refuses the manifest
	}
	for key, was := range before {
		if _, kept := now[key]; !kept && data[key] == encoded(was) {
			delete(data, key)
		}
	}
	values, _ := object[fieldStringData].(map[string]any)
	for key, text := range now {
		switch was, had := before[key]; {
		case !had || was != text:
			data[key] = encoded(text)
		case data[key] != encoded(text):
			delete(values, key)
		}
	}
}

// withoutTexts removes the texts from stringData of a Secret. data has them already, see followTexts.
func withoutTexts(object map[string]any) {
	values, ok := object[fieldStringData].(map[string]any)
	if !ok || !isSecret(object) {
		return
	}
	left := maps.Clone(values)
	maps.DeleteFunc(left, func(_ string, v any) bool { _, isText := v.(string); return isText })
	if object[fieldStringData] = left; len(left) == 0 {
		delete(object, fieldStringData)
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func isSecret(object map[string]any) bool {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return hubv1.IsSecret(schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind())
}

// rootFor returns the root of the claims of rules for an object. The keys of data and of stringData of a Secret are the
// same keys, so that claims of both are compared.
func rootFor(object map[string]any) *node {
	if !isSecret(object) {
		return &node{}
	}
	keys := &node{}
	return &node{children: map[string]*node{fieldData: keys, fieldStringData: keys}}
}
