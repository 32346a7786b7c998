package content

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// Alteration is a field that an API server has stored with another value than the hub sent.
type Alteration struct {
	Path string // such as .spec.replicas
	// Sent and Stored are the values. Stored is nil if the server has not stored the field.
	Sent, Stored any
}

// Altered returns the fields of a manifest that the server stores otherwise: with another value, or not at all. A
// mutating webhook or admission policy of the cluster has changed them, or its API server does not keep them. stored is
// the object that the server returned for the apply of the manifest.
//
// An addition is no alteration. Neither is an empty value that the server does not store, or another text of the same
// quantity, duration, time or base64 value. The hub's own labels and annotations are not compared.
func Altered(stored, manifest *unstructured.Unstructured) []Alteration {
	var at []owner
	if set := ours(stored); set != nil {
		at = append(at, owner{ours: true, set: set})
	}
	a := &alterations{}
	for _, f := range []string{"annotations", "labels"} {
		path := []string{"metadata", f}
		want, _, _ := unstructured.NestedMap(manifest.Object, path...)
		have, _, _ := unstructured.NestedMap(stored.Object, path...)
		maps.DeleteFunc(want, func(key string, _ any) bool { return strings.HasPrefix(key, hubv1.Prefix) })
		a.fields(fieldpath.MakePathOrDie("metadata", f), want, have, nil)
	}
	want := maps.Clone(manifest.Object)
	for _, identity := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(want, identity)
	}
	a.fields(nil, want, stored.Object, at)
	return a.found
}

// alterations collects the fields whose stored value differs from the sent value.
type alterations struct{ found []Alteration }

func (a *alterations) fields(path fieldpath.Path, want, have map[string]any, at []owner) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, there := have[name]
		a.element(path, field(name), want[name], got, there, at)
	}
}

func (a *alterations) element(path fieldpath.Path, pe fieldpath.PathElement, want, have any, there bool, at []owner) {
	path = append(slices.Clone(path), pe)
	switch w := want.(type) {
	case nil:
		return // the server fills the field in
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			a.fields(path, w, have, below(at, pe))
			return
		}
	case []any:
		if have, ok := have.([]any); ok {
			a.items(path, w, have, below(at, pe))
			return
		}
	}
	if !there || have == nil {
		if !isEmpty(want) {
			a.found = append(a.found, Alteration{Path: path.String(), Sent: want})
		}
		return
	}
	if want != "" && !sameValue(want, have) {
		a.found = append(a.found, Alteration{Path: path.String(), Sent: want, Stored: have})
	}
}

// items compares two lists. The items of a keyed list or a set are found by key or by value. In any other list, the
// stored list must have the items in the same order, and may have others between them.
func (a *alterations) items(path fieldpath.Path, want, have []any, inside []owner) {
	items, addressed := addressedItems(want, have, inside)
	switch {
	case addressed:
		for _, i := range items {
			a.element(path, i.element, i.want, i.have, i.there, inside)
		}
	case len(want) == len(have):
		for i := range want {
			a.element(path, fieldpath.PathElement{Index: &i}, want[i], have[i], true, nil)
		}
	default:
		left := want
		for _, h := range have {
			if len(left) > 0 && holds(left[0], h) {
				left = left[1:]
			}
		}
		if len(left) > 0 {
			a.found = append(a.found, Alteration{Path: path.String(), Sent: want, Stored: have})
		}
	}
}

// holds reports whether the stored item of an atomic list has everything of the sent item.
func holds(want, have any) bool {
	inside := &alterations{}
	inside.element(nil, field("item"), want, have, true, nil)
	return len(inside.found) == 0
}

// isEmpty reports whether a server may leave the value out when it stores the object.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, inner := range v {
			if !isEmpty(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// sameValue reports whether two JSON values are equal, or are two texts of one value, as a server may rewrite them.
func sameValue(a, b any) bool {
	if sameJSON(a, b) {
		return true
	}
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		return x == y
	}
	s, ok := scalarText(a)
	t, also := scalarText(b)
	return ok && also && (sameQuantity(s, t) || sameDuration(s, t) || sameTime(s, t) || sameBytes(s, t))
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// scalarText returns a text or a number as text. The result is false for any other value.
func scalarText(v any) (string, bool) {
	if s, ok := v.(string); ok {
		return s, true
	}
	if _, ok := number(v); ok {
		return string(canonical.Bytes(v)), true
	}
	return "", false
}

// maxQuantityLength bounds the text of a quantity. A larger exponent than maxExponentLength would need much memory.
const maxQuantityLength, maxExponentLength = 40, 3

func sameQuantity(a, b string) bool {
	x, ok := quantity(a)
	y, also := quantity(b)
	return ok && also && x.Cmp(y) == 0
}

func quantity(s string) (resource.Quantity, bool) {
	if i := strings.IndexAny(s, "eE"); s == "" || len(s) > maxQuantityLength || i >= 0 && len(s)-i > maxExponentLength {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

func sameDuration(a, b string) bool {
	x, err := time.ParseDuration(a)
	if err != nil {
		return false
	}
	y, err := time.ParseDuration(b)
	return err == nil && x == y
}

func sameTime(a, b string) bool {
	x, err := time.Parse(time.RFC3339, a)
	if err != nil {
		return false
	}
	y, err := time.Parse(time.RFC3339, b)
	return err == nil && x.Equal(y)
}

// sameBytes reports whether both are base64 of the same bytes. The sent text may have line breaks.
func sameBytes(a, b string) bool {
	if !strings.ContainsAny(a, "\r\n") {
		return false
	}
	x, err := base64.StdEncoding.DecodeString(a)
	return err == nil && base64.StdEncoding.EncodeToString(x) == b
}

const (
	maxAlterations = 3
	maxValueLength = 24 // characters of a value in a text
	maxPathLength  = 50 // characters of a path in a text
)

// AlterationText returns the first three alterations as text, and how many more there are, such as `.spec.replicas 2
// instead of 4 and 1 more`. The text is empty if there are none. If bare is true, the text has no values.
func AlterationText(found []Alteration, bare bool) string {
	parts := make([]string, 0, maxAlterations)
	for _, f := range found[:min(len(found), maxAlterations)] {
		part := f.Path
		if r := []rune(part); len(r) > maxPathLength {
			part = "…" + string(r[len(r)-maxPathLength+1:])
		}
		switch {
		case bare:
			part = "another " + part
		case f.Stored == nil:
			part = "no " + part
		default:
			part += " " + shortValue(f.Stored) + " instead of " + shortValue(f.Sent)
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	if more := len(found) - maxAlterations; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

func shortValue(v any) string { return hubv1.CutMessage(string(canonical.Bytes(v)), maxValueLength) }
