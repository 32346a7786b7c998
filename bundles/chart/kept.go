package chart

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-openapi/jsonpointer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// ErrValuesWouldChange is the error for a chart whose generated fields are not those of the kept values.
var ErrValuesWouldChange = errors.New("the kept values do not suit the chart")

// Kept are generated values that are used again at the next rendering, so that passwords and certificates stay. They
// are sorted by object and path.
type Kept []KeptValue

// KeptValue is the kept value of a field.
type KeptValue struct {
	Object hubv1.ObjectIdentity `json:"object"`
	// Path is the path of the field, as in GeneratedField.
	Path  string `json:"path"`
	Value string `json:"value"`
}

// maxStoredBytes is the maximum size of kept values as JSON: 900 KiB, because a Secret has at most 1 MiB.
const maxStoredBytes = 900 << 10

// stringData begins the path of a value that is not encoded in base64.
const stringData = "/stringData/"

// storedKey is the key of the Secret in which kept values are stored, as compressed JSON.
const storedKey = "values"

// StoredValues are the kept values of an operator, as the hub stores them: in a Secret in hanse-system.
type StoredValues struct {
	// ID changes when all values are replaced.
	ID string `json:"id"`
	// Operator is the UID of the FederatedOperator.
	Operator types.UID `json:"operator"`
	Values   Kept      `json:"values"`
}

// Secret returns the Secret that stores the values. It returns an error if the values are too large.
func (s StoredValues) Secret(key types.NamespacedName) (*corev1.Secret, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing the kept values as JSON: %w", err)
	}
	if len(text) > maxStoredBytes {
		return nil, fmt.Errorf("the values that the chart generates have %d bytes, and at most %d can be kept: let the values of the chart set some of them", len(text), maxStoredBytes)
	}
	if text, err = canonical.Compress(text); err != nil {
		return nil, fmt.Errorf("compressing the kept values: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: hubv1.GeneratedValuesSecretType, Data: map[string][]byte{storedKey: text},
	}, nil
}

// Read reads the values that a Secret stores. It is the inverse of Secret.
func (s *StoredValues) Read(secret *corev1.Secret) error {
	text, err := canonical.Decompress(secret.Data[storedKey], maxStoredBytes)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return fmt.Errorf("reading the kept values in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// Keep puts the kept values into the objects, and returns the values to keep from now on.
//
// If kept is empty, the values of this rendering are kept. Otherwise the values stay a set, because a certificate needs
// its CA:
//   - Fields with equal values in this rendering get one kept value, that of the field that is kept. A second webhook
//     configuration gets the CA bundle of the first one in this way.
//   - A generated field whose value equals that of no kept field is ErrValuesWouldChange.
//   - So is a kept field to which the chart now gives a value that is not generated. A kept field that the chart no
//     longer has stays kept, for a return to an earlier chart.
//
// Checksums become checksums of all Secrets and ConfigMaps of the chart.
func (r *Rendered) Keep(kept Kept) (Kept, error) {
	if len(r.Generated) == 0 && len(kept) == 0 {
		return nil, nil
	}
	objects := map[hubv1.ObjectIdentity]*unstructured.Unstructured{}
	for _, o := range slices.Concat(r.Definitions, r.Objects) {
		objects[hubv1.IdentityOf(o)] = o
	}
	next := map[GeneratedField]string{}
	for _, k := range kept {
		next[GeneratedField{Object: k.Object, Path: k.Path}] = k.Value
	}
	keptFor, err := r.keptFor(next, objects)
	if err != nil {
		return nil, err
	}
	generated := map[GeneratedField]bool{}
	for _, field := range r.Generated {
		generated[field] = true
		value, _ := valueAt(objects[field.Object], field.Path)
		if len(kept) > 0 {
			known := false
			if value, known = keptFor[value]; !known {
				return nil, fmt.Errorf("%s is generated, but has no kept value: %w", field, ErrValuesWouldChange)
			}
		}
		next[field] = value
		if err := set(objects[field.Object], field.Path, value); err != nil {
			return nil, err
		}
	}
	for _, k := range kept {
		field := GeneratedField{Object: k.Object, Path: k.Path}
		if value, has := valueAt(objects[k.Object], k.Path); has && !generated[field] && value != k.Value {
			return nil, fmt.Errorf("%s has a kept value, but the chart no longer generates it: %w", field, ErrValuesWouldChange)
		}
	}
	sum := r.checksum()
	for _, field := range r.Checksums {
		if err := set(objects[field.Object], field.Path, sum); err != nil {
			return nil, err
		}
	}
	return sorted(next), nil
}

// keptFor returns the kept value for each value of this rendering that a kept field has.
func (r *Rendered) keptFor(kept map[GeneratedField]string, objects map[hubv1.ObjectIdentity]*unstructured.Unstructured) (map[string]string, error) {
	out := map[string]string{}
	for _, field := range r.Generated {
		is, known := kept[field]
		if !known {
			continue
		}
		now, _ := valueAt(objects[field.Object], field.Path)
		if other, twice := out[now]; twice && other != is {
			return nil, fmt.Errorf("%s has the same generated value as another field, but their kept values differ: %w", field, ErrValuesWouldChange)
		}
		out[now] = is
	}
	return out, nil
}

// checksum returns a SHA-256 digest of the Secrets and ConfigMaps of the chart.
func (r *Rendered) checksum() string {
	sum := sha256.New()
	for _, o := range r.Objects {
		if gk := o.GroupVersionKind().GroupKind(); gk.Group == "" && (gk.Kind == "Secret" || gk.Kind == "ConfigMap") {
			sum.Write(canonical.Bytes(o.Object))
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// Placeholders returns a fixed text for each generated field, for a reader who does not have the kept values. Two
// renderings then do not differ.
func (r *Rendered) Placeholders() Kept {
	const text = "<generated>"
	values := map[GeneratedField]string{}
	for _, field := range r.Generated {
		values[field] = base64.StdEncoding.EncodeToString([]byte(text))
		if strings.HasPrefix(field.Path, stringData) {
			values[field] = text
		}
	}
	return sorted(values)
}

// ValuesIn returns the values that earlier objects have in the generated fields. It returns false if one of these
// fields has no value there.
func (r *Rendered) ValuesIn(earlier func(hubv1.ObjectIdentity) *unstructured.Unstructured) (Kept, bool) {
	values := map[GeneratedField]string{}
	for _, field := range r.Generated {
		value, has := valueAt(earlier(field.Object), field.Path)
		if !has {
			return nil, false
		}
		values[field] = value
	}
	return sorted(values), true
}

// FirstExpiry returns the generated field whose kept certificate expires first. It returns false if no such value is a
// certificate in PEM. Values of fields that the chart no longer has do not count, because no object has them.
func (r *Rendered) FirstExpiry(kept Kept) (first GeneratedField, at time.Time, found bool) {
	has := map[GeneratedField]bool{}
	for _, field := range r.Generated {
		has[field] = true
	}
	for _, value := range kept {
		field := GeneratedField{Object: value.Object, Path: value.Path}
		if !has[field] {
			continue
		}
		text := []byte(value.Value)
		if !strings.HasPrefix(value.Path, stringData) {
			text, _ = base64.StdEncoding.DecodeString(value.Value)
		}
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err == nil && (!found || certificate.NotAfter.Before(at)) {
				first, at, found = field, certificate.NotAfter, true
			}
		}
	}
	return first, at, found
}

func sorted(values map[GeneratedField]string) Kept {
	out := make(Kept, 0, len(values))
	for field, value := range values {
		out = append(out, KeptValue{Object: field.Object, Path: field.Path, Value: value})
	}
	slices.SortFunc(out, func(a, b KeptValue) int {
		return cmp.Or(strings.Compare(a.Object.String(), b.Object.String()), strings.Compare(a.Path, b.Path))
	})
	return out
}

// valueAt returns the text that an object has at the path of a generated field. It returns false if there is no text,
// or an empty one.
func valueAt(object *unstructured.Unstructured, path string) (string, bool) {
	parent, key := parentOf(object, path)
	text, _ := parent[key].(string)
	return text, text != ""
}

// set sets the text that an object has at the path of a generated field.
func set(object *unstructured.Unstructured, path, value string) error {
	parent, key := parentOf(object, path)
	if parent == nil {
		return fmt.Errorf("setting %s: the object has no such field", path)
	}
	parent[key] = value
	return nil
}

// parentOf returns the map with the last field of a path, and the key of this field. The map is nil if the object has
// none there.
func parentOf(object *unstructured.Unstructured, path string) (parent map[string]any, key string) {
	if object == nil {
		return nil, ""
	}
	var at any = object.Object
	steps := strings.Split(path, "/")[1:]
	for i, step := range steps {
		step = jsonpointer.Unescape(step)
		switch x := at.(type) {
		case map[string]any:
			if i == len(steps)-1 {
				return x, step
			}
			at = x[step]
		case []any:
			n := slices.IndexFunc(x, func(item any) bool { return listName(item) == step })
			if index, err := strconv.Atoi(step); err == nil {
				n = index
			}
			if n < 0 || n >= len(x) {
				return nil, ""
			}
			at = x[n]
		default:
			return nil, ""
		}
	}
	return nil, ""
}
