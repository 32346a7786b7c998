package manifest_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
)

// FuzzRead reads a value of a ConfigMap. It fails on a panic, on an object that violates a rule, and if a second read
// returns other objects.
func FuzzRead(f *testing.F) {
	for _, value := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b, labels: {a: b}}\ndata: {a: \"1\"}\n---\n# empty\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: b}}",
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"x/v1","kind":"A","metadata":{"name":"a"},"spec":[1,1.5,-0.0,1e30,18446744073709551615,null]}]}`,
		definition("A", "Cluster") + definition("A", "Namespaced") + `{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a","namespace":"b"},"status":{}}`,
		"apiVersion: v1\nkind: A\nmetadata: &m {name: a}\nspec: {<<: *m, a: [0x1f, 0o7, 1_000, .5, 1e3, 2001-01-01, y, \"\\ud800\"]}",
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"\ud800","annotations":{"\ud800":"a"}},"spec":{"\ud801":"<&>\u2028"}}`,
		aliases(3), aliases(9),
		strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: " + strings.Repeat("{a: ", 100) + "1" + strings.Repeat("}", 100),
		"\x00\x01\xff\xfe\x80junk: \x7f", "\xff\xfea\x00", "\ufeffapiVersion: v1\r---\r", "--- |\n a\n...\n%YAML 1.1\n---\n", "? [a]\n: b", "!!binary a: b", "&a [*a]", "a: 1\nyes: 2\n\"true\": 3",
	} {
		f.Add(false, []byte(value))
		f.Add(true, []byte(value))
	}
	f.Fuzz(func(t *testing.T, inNamespace bool, value []byte) {
		namespace := ""
		if inNamespace {
			namespace = "shop"
		}
		in := manifest.Input{Namespace: namespace, ConfigMaps: []corev1.ConfigMap{{BinaryData: map[string][]byte{"a": value}}}, Namespaced: namespaced}
		objects, err := manifest.Read(in)
		if err != nil {
			if objects != nil || len(err.Error()) > 20_000 {
				t.Errorf("%d objects with an error of %d bytes", len(objects), len(err.Error()))
			}
			return
		}
		again := manifest.Input{Namespace: namespace, Namespaced: namespaced}
		total := 0
		for _, o := range objects {
			raw, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			total += len(raw)
			again.Manifests = append(again.Manifests, runtime.RawExtension{Raw: raw})
			kind := o.GroupVersionKind()
			if kind.Group == "hanse.dev" || hubv1.IsSecret(kind.GroupKind()) || o.GetAPIVersion() == "" || kind.Kind == "" || o.Object["status"] != nil ||
				len(content.IsPathSegmentName(o.GetName())) > 0 || o.GetName() == "" || len(raw) > manifest.MaxBytes {
				t.Errorf("%s is not allowed", raw)
			}
			if namespace != "" && o.GetNamespace() != namespace || namespace == "" && hubv1.IsSystemNamespace(o.GetNamespace()) {
				t.Errorf("%s has a wrong namespace", raw)
			}
			for key := range o.Object["metadata"].(map[string]any) {
				if !strings.Contains("name namespace labels annotations", key) {
					t.Errorf("%s has metadata.%s", raw, key)
				}
			}
			for key := range o.GetLabels() {
				if strings.HasPrefix(key, hubv1.Prefix) {
					t.Errorf("%s has a label of Hanse", raw)
				}
			}
			for key := range o.GetAnnotations() {
				if strings.HasPrefix(key, hubv1.Prefix) || key == corev1.LastAppliedConfigAnnotation {
					t.Errorf("%s has an annotation of Hanse or kubectl", raw)
				}
			}
		}
		if len(objects) == 0 || len(objects) > manifest.MaxObjects || total > manifest.MaxTotalBytes {
			t.Errorf("%d objects of %d bytes", len(objects), total)
		}
		same, err := manifest.Read(again)
		if err != nil {
			t.Fatalf("the objects are refused when they are read again: %v", err)
		}
		if !reflect.DeepEqual(objects, same) {
			t.Errorf("the objects differ when they are read again: %v and %v", objects, same)
		}
	})
}
