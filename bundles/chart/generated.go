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
}

func (f GeneratedField) String() string { return f.Object.String() + ", field " + f.Path }

// changing are the fields of a rendering that may differ in another one: their paths, by object.
type changing struct {
	values map[*unstructured.Unstructured][]string
	// checksums are annotations with a checksum. Templates make such a checksum of a Secret, so that pods restart when the
	// Secret changes.
	checksums map[*unstructured.Unstructured][]string
}

// changing compares two renderings. found are the objects of the first one. changing returns the fields of these
// objects that differ in the second rendering, but may differ. If another field differs, or if the policy is Refuse,
// the error names the first template, object and field that differ. Differences in comments and in hooks are ignored.
func (r rendering) changing(found documents, other rendering, policy hubv1.ChartGeneratedValues) (changing, error) {
	names := maps.Clone(r.texts)
	maps.Copy(names, other.texts)
	out := changing{values: map[*unstructured.Unstructured][]string{}, checksums: map[*unstructured.Unstructured][]string{}}
	var checksum error // that of the first checksum, in case that nothing is generated of which it may be one
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if r.texts[name] == other.texts[name] {
			continue
		}
		a := found[name]
		b, err := readTemplate(name, other.texts[name])
		if err != nil {
			return changing{}, err
		}
		if len(a) != len(b) {
			return changing{}, fmt.Errorf("%s has %d objects in one rendering and %d in another: %w", name, len(a), len(b), ErrNonDeterministic)
		}
		for i := range a {
			_, first := hookOf(a[i])
			_, second := hookOf(b[i])
			if first && second {
				continue
			}
			for _, d := range differences(nil, a[i].Object, b[i].Object) {
				err := fmt.Errorf("%s, %s %s, field %s: %w", name, a[i].GetKind(), a[i].GetName(), d.text(), ErrNonDeterministic)
				switch {
				case policy == hubv1.ChartGeneratedRefuse:
					return changing{}, err
				case d.isValue(a[i]):
					out.values[a[i]] = append(out.values[a[i]], d.pointer())
				case d.isChecksum():
					checksum = cmp.Or(checksum, err)
					out.checksums[a[i]] = append(out.checksums[a[i]], d.pointer())
				default:
					return changing{}, err
				}
			}
		}
	}
	if len(out.values) == 0 && checksum != nil {
		return changing{}, checksum
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

// callers are the kinds that name a server which an API server calls. Their field caBundle has the CA of this server.
var callers = []schema.GroupKind{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
}

// isValue reports whether the field is a text in a Secret, or the CA bundle of a kind that has one.
func (d difference) isValue(object *unstructured.Unstructured) bool {
	gk := object.GroupVersionKind().GroupKind()
	parent, field := d.place()
	_, isText := d.a.(string)
	_, bothTexts := d.b.(string)
	return isText && bothTexts && (hubv1.IsSecret(gk) && (parent == "data" || parent == "stringData") || slices.Contains(callers, gk) && field == "caBundle")
}

// isChecksum reports whether the field is an annotation with a checksum, of the object or of its pods.
func (d difference) isChecksum() bool {
	parent, _ := d.place()
	a, _ := d.a.(string)
	b, _ := d.b.(string)
	return (parent == "metadata/annotations" || strings.HasSuffix(parent, "template/metadata/annotations")) && isDigest(a) && isDigest(b)
}

// place returns the path of the map with the field, and the key of the field.
func (d difference) place() (parent, field string) {
	steps := strings.Split(d.pointer(), "/")[1:]
	return strings.Join(steps[:len(steps)-1], "/"), steps[len(steps)-1]
}

// isDigest reports whether a text is a SHA-1, SHA-256 or SHA-512 digest in hexadecimal digits, as the functions of
// templates write it.
func isDigest(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && slices.Contains([]int{40, 64, 128}, len(text))
}
