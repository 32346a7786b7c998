package chart

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// GeneratedField is a field whose value the templates make anew at each rendering, such as a password or a certificate.
type GeneratedField struct {
	// Object is the object that has the field. It is no hook.
	Object hubv1.ObjectIdentity
	// Path is the path of the field as a JSON pointer (RFC 6901), such as /data/tls.crt. An element of a list with a name
	// stands under its name instead of its index, because a further webhook moves the others:
	// /webhooks/a.example.com/clientConfig/caBundle.
	Path string
	// Checksum is true if the field is an annotation with a checksum. Templates make such a checksum of a Secret, so that
	// pods restart when the Secret changes.
	Checksum bool
}

func (f GeneratedField) String() string { return f.Object.String() + ", field " + f.Path }

// generated compares two renderings. found are the objects of the first one. generated returns the fields of these
// objects that differ in the second rendering, but may differ. If another field differs, or if the policy is Refuse,
// the error names the first template, object and field that differ. Differences in comments and in hooks are ignored.
func (r rendering) generated(found documents, other rendering, policy hubv1.ChartGeneratedValues) (map[*unstructured.Unstructured][]GeneratedField, error) {
	names := maps.Clone(r.texts)
	maps.Copy(names, other.texts)
	out := map[*unstructured.Unstructured][]GeneratedField{}
	var checksum error // that of the first checksum, in case that nothing is generated of which it may be one
	values := false
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if r.texts[name] == other.texts[name] {
			continue
		}
		a := found[name]
		b, err := readTemplate(name, other.texts[name])
		if err != nil {
			return nil, err
		}
		if len(a) != len(b) {
			return nil, fmt.Errorf("%s has %d objects in one rendering and %d in another: %w", name, len(a), len(b), ErrNonDeterministic)
		}
		for i := range a {
			_, first := hookOf(a[i])
			_, second := hookOf(b[i])
			if first && second {
				continue
			}
			for _, d := range differences(nil, a[i].Object, b[i].Object) {
				kind := d.kind(a[i])
				err := fmt.Errorf("%s, %s %s, field %s: %w", name, a[i].GetKind(), a[i].GetName(), d.text(), ErrNonDeterministic)
				if kind == "" || policy == hubv1.ChartGeneratedRefuse {
					return nil, err
				}
				if kind == isChecksum {
					checksum = cmp.Or(checksum, err)
				} else {
					values = true
				}
				out[a[i]] = append(out[a[i]], GeneratedField{Path: d.pointer(), Checksum: kind == isChecksum})
			}
		}
	}
	if !values && checksum != nil {
		return nil, checksum
	}
	return out, nil
}

// difference is a field that has different values in two renderings of an object.
type difference struct {
	// path has the keys of maps, and the elements of lists.
	path []any
	// a and b are the two values. Both are nil if only one of the objects has the field.
	a, b any
}

// element is a step into a list. name is empty if the element has none.
type element struct {
	index int
	name  string
}

// elementOf returns the step to an element of two lists. It has a name if both elements have the same one, and no other
// element has it.
func elementOf(a, b []any, i int) element {
	name := listName(a[i])
	for n, item := range a {
		if name != listName(b[i]) || n != i && name == listName(item) {
			return element{index: i}
		}
	}
	return element{i, name}
}

// listName returns the field name of an element of a list. It returns an empty text if there is none, or if it could be
// an index.
func listName(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	if _, err := strconv.Atoi(name); err == nil {
		return ""
	}
	return name
}

// differences returns the fields in which the values a and b at a path differ. It compares the fields of a map in the
// order of their keys.
func differences(path []any, a, b any) []difference {
	var out []difference
	below := func(step, a, b any) {
		out = append(out, differences(append(slices.Clip(path), step), a, b)...)
	}
	switch x := a.(type) {
	case map[string]any:
		y, isMap := b.(map[string]any)
		if !isMap {
			break
		}
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			_, inX := x[key]
			_, inY := y[key]
			if inX != inY {
				out = append(out, difference{path: append(slices.Clip(path), key)})
				continue
			}
			below(key, x[key], y[key])
		}
		return out
	case []any:
		y, isList := b.([]any)
		if !isList || len(x) != len(y) {
			break
		}
		for i := range x {
			below(elementOf(x, y, i), x[i], y[i])
		}
		return out
	}
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	return []difference{{path: path, a: a, b: b}}
}

// text returns the path for an error, such as .webhooks[0].clientConfig.
func (d difference) text() string {
	out := ""
	for _, step := range d.path {
		if e, isElement := step.(element); isElement {
			out += fmt.Sprintf("[%d]", e.index)
		} else {
			out += "." + step.(string)
		}
	}
	return out
}

// pointer returns the path as in GeneratedField.
func (d difference) pointer() string {
	out := ""
	for _, step := range d.path {
		switch step := step.(type) {
		case element:
			out += "/" + cmp.Or(jsonpointer.Escape(step.name), strconv.Itoa(step.index))
		case string:
			out += "/" + jsonpointer.Escape(step)
		}
	}
	return out
}

// The kinds of fields that may differ between two renderings.
const (
	isSecretValue = "value of a Secret"
	isCABundle    = "CA bundle"
	isChecksum    = "checksum"
)

// callers are the kinds that name a server which an API server calls. Their field caBundle has the CA of this server.
var callers = []schema.GroupKind{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
}

// kind returns the kind of the field of an object. It returns an empty text for a field that must not differ.
func (d difference) kind(object *unstructured.Unstructured) string {
	a, isText := d.a.(string)
	b, bothTexts := d.b.(string)
	if !isText || !bothTexts {
		return ""
	}
	gk, steps := object.GroupVersionKind().GroupKind(), strings.Split(d.pointer(), "/")[1:]
	parent := strings.Join(steps[:len(steps)-1], "/")
	switch {
	case hubv1.IsSecret(gk) && (parent == "data" || parent == "stringData"):
		return isSecretValue
	case slices.Contains(callers, gk) && steps[len(steps)-1] == "caBundle":
		return isCABundle
	case (parent == "metadata/annotations" || strings.HasSuffix(parent, "template/metadata/annotations")) && isDigest(a) && isDigest(b):
		return isChecksum
	}
	return ""
}

// isDigest reports whether a text is a SHA-1, SHA-256 or SHA-512 digest in hexadecimal digits, as the functions of
// templates write it.
func isDigest(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && slices.Contains([]int{40, 64, 128}, len(text))
}
