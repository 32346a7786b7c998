package preview

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Field is a field with different values before and after a change.
type Field struct {
	// Path is a JSON pointer to the field. For a removed list item, it has the index that the item had before the change.
	Path string `json:"path"`
	// Before and After are the values of the field before and after the change. A value is nil if the field does not
	// exist.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
}

// redacted replaces every value of a Secret, even if the value does not change.
const redacted = "***"

// FieldsOf returns the fields that differ between two states of an object, sorted by path. For a Secret, all values are
// replaced by redacted, except those of the fields type and immutable.
func FieldsOf(before, after *unstructured.Unstructured) []Field {
	var out []Field
	differences("", before.Object, after.Object, &out)
	if !hubv1.IsSecret(before.GroupVersionKind().GroupKind()) && !hubv1.IsSecret(after.GroupVersionKind().GroupKind()) {
		return out
	}
	for i, f := range out {
		if f.Path == "/type" || f.Path == "/immutable" {
			continue
		}
		if f.Before != nil {
			out[i].Before = redacted
		}
		if f.After != nil {
			out[i].After = redacted
		}
	}
	return out
}

func differences(path string, before, after any, out *[]Field) {
	switch was := before.(type) {
	case map[string]any:
		if is, ok := after.(map[string]any); ok {
			differentKeys(path, was, is, out)
			return
		}
	case []any:
		if is, ok := after.([]any); ok {
			differentElements(path, was, is, out)
			return
		}
	}
	if !equal(before, after) {
		*out = append(*out, Field{Path: path, Before: before, After: after})
	}
}

func differentKeys(path string, before, after map[string]any, out *[]Field) {
	keys := map[string]any{}
	maps.Copy(keys, before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		differences(path+"/"+escaper.Replace(key), before[key], after[key], out)
	}
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// differentElements compares the items of two lists. It pairs items of the same name. If items have no names, or change
// their order, it pairs items of the same index.
func differentElements(path string, before, after []any, out *[]Field) {
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	places, named := placesOf(before)
	if _, also := placesOf(after); !named || !also || reordered(places, after) {
		for i := range max(len(before), len(after)) {
			differences(at(i), elementAt(before, i), elementAt(after, i), out)
		}
		return
	}
	for i, is := range after {
		was, there := places[nameOf(is)]
		if !there {
			*out = append(*out, Field{Path: at(i), After: is})
			continue
		}
		delete(places, nameOf(is))
		differences(at(i), before[was], is, out)
	}
	for _, i := range slices.Sorted(maps.Values(places)) {
		*out = append(*out, Field{Path: at(i), Before: before[i]})
	}
}

// placesOf returns the index of each list item by the item's name. named is false if an item has no name, or if two
// items have the same name.
func placesOf(list []any) (places map[string]int, named bool) {
	places = map[string]int{}
	for i, e := range list {
		name := nameOf(e)
		if _, twice := places[name]; twice || name == "" {
			return nil, false
		}
		places[name] = i
	}
	return places, true
}

// reordered reports whether the items that both lists have are in a different order in after. places has the indexes of
// the items in the first list.
func reordered(places map[string]int, after []any) bool {
	last := -1
	for _, e := range after {
		if at, there := places[nameOf(e)]; there && at < last {
			return true
		} else if there {
			last = at
		}
	}
	return false
}

func nameOf(element any) string {
	m, _ := element.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

func elementAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// equal compares two JSON values. It ignores whether a number is an integer or a float.
func equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || isNumber(a) && isNumber(b) && fmt.Sprint(a) == fmt.Sprint(b)
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}
