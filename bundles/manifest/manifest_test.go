package manifest_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
)

// namespaced returns a Namespaced for the kinds of the tests.
func namespaced(gk schema.GroupKind) (namespaced, known bool, err error) {
	switch gk.Kind {
	case "ConfigMap", "Service", "Deployment":
		return true, true, nil
	case "Namespace", "ClusterRole", "CustomResourceDefinition":
		return false, true, nil
	}
	return false, false, nil
}

func manifests(texts ...string) []runtime.RawExtension {
	var out []runtime.RawExtension
	for _, text := range texts {
		out = append(out, runtime.RawExtension{Raw: []byte(text)})
	}
	return out
}

// configMap returns a ConfigMap named app with one value under the key a.yaml.
func configMap(value string) []corev1.ConfigMap {
	return []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Data: map[string]string{"a.yaml": value}}}
}

// objects returns the objects of a YAML list.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var list []any
	if err := utilyaml.UnmarshalStrict([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, o := range list {
		out = append(out, &unstructured.Unstructured{Object: o.(map[string]any)})
	}
	return out
}

// read reads the input twice, and checks that the input does not change and that both results are equal.
func read(t *testing.T, in manifest.Input) ([]*unstructured.Unstructured, string) {
	t.Helper()
	in.Namespaced = namespaced
	before := manifest.Input{}
	for _, m := range in.Manifests {
		before.Manifests = append(before.Manifests, *m.DeepCopy())
	}
	for _, c := range in.ConfigMaps {
		before.ConfigMaps = append(before.ConfigMaps, *c.DeepCopy())
	}
	got, err := manifest.Read(in)
	again, errAgain := manifest.Read(in)
	// go-cmp takes exponential time for nested lists, so the test uses reflect.DeepEqual.
	if !reflect.DeepEqual(got, again) || !reflect.DeepEqual(err, errAgain) {
		t.Errorf("the second reading differs: %v and %v, %v and %v", got, again, err, errAgain)
	}
	if !reflect.DeepEqual(before.Manifests, in.Manifests) || !reflect.DeepEqual(before.ConfigMaps, in.ConfigMaps) {
		t.Error("the input changed")
	}
	if err != nil {
		return got, err.Error()
	}
	return got, ""
}

func TestObjectsThatABundleHas(t *testing.T) {
	for name, tc := range map[string]struct {
		in   manifest.Input
		want string
	}{
		"objects are sorted by group, kind, namespace and name": {
			manifest.Input{Manifests: manifests(
				`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"}}`,
				`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"shop"}}`,
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"shop"}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"shop"}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"bar"}}`,
			)},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: bar}},
			  {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}},
			  {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}},
			  {apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop}},
			  {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}},
			  {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}]`,
		},
		"an object of a Bundle gets the namespace of the Bundle": {
			manifest.Input{Namespace: "shop", Manifests: manifests(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"shop"}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":""}}`,
				`{"apiVersion":"x.com/v1","kind":"Unknown","metadata":{"name":"d"}}`,
			)},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}},
			  {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}},
			  {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}},
			  {apiVersion: x.com/v1, kind: Unknown, metadata: {name: d, namespace: shop}}]`,
		},
		"what a server sets is dropped": {
			manifest.Input{Namespace: "shop", Manifests: manifests(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":3},"status":{"replicas":2},"metadata":{
				"name":"a","generateName":"","labels":{"app":"web"},"annotations":{"note":"x","kubectl.kubernetes.io/last-applied-configuration":"{}"},"uid":"u","resourceVersion":"7",
				"generation":4,"creationTimestamp":null,"managedFields":[{}],"ownerReferences":[{"name":"o"}],"finalizers":["x/y"],"selfLink":"/x","deletionTimestamp":"t"}}`)},
			`[{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3}, metadata: {name: a, namespace: shop, labels: {app: web}, annotations: {note: x}}}]`,
		},
		"maps of labels and annotations are dropped if nothing is left in them": {
			manifest.Input{Namespace: "shop", Manifests: manifests(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{
				"name":"a","labels":null,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`)},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]`,
		},
		"a manifest may be a Go value": {
			manifest.Input{Namespace: "shop", Manifests: []runtime.RawExtension{{Object: &corev1.ConfigMap{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"},
			}}}},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]`,
		},
		"whole numbers are integers, from JSON and from YAML": {
			manifest.Input{
				Namespace:  "shop",
				Manifests:  manifests(`{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a"},"spec":[1,9007199254740993,1.5,2.0,1e3]}`),
				ConfigMaps: configMap(`{apiVersion: x.com/v1, kind: A, metadata: {name: b}, spec: [1, 9007199254740993, 1.5, 2.0, 1e+3, 0x10]}`),
			},
			`[{apiVersion: x.com/v1, kind: A, metadata: {name: a, namespace: shop}, spec: [1, 9007199254740993, 1.5, 2, 1000]},
			  {apiVersion: x.com/v1, kind: A, metadata: {name: b, namespace: shop}, spec: [1, 9007199254740993, 1.5, 2, 1000, 16]}]`,
		},
		"a value of a ConfigMap has many documents, and empty ones are skipped": {
			manifest.Input{Namespace: "shop", ConfigMaps: configMap(`# at first
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
--- # then
# nothing
---
null
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
...
# the end
`)},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}}]`,
		},
		"a value of a ConfigMap has JSON objects one after another": {
			manifest.Input{Namespace: "shop", ConfigMaps: configMap(`
				{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"smile":"\ud83d\ude00"}}
				{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`)},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {smile: "😀"}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}}]`,
		},
		"binary data is text": {
			manifest.Input{Namespace: "shop", ConfigMaps: []corev1.ConfigMap{{
				Data:       map[string]string{"b": `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`},
				BinaryData: map[string][]byte{"a": []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)},
			}}},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}}]`,
		},
		"aliases and merges of YAML are replaced": {
			manifest.Input{Namespace: "shop", ConfigMaps: configMap(`
apiVersion: v1
kind: ConfigMap
metadata: {name: &name a, labels: &labels {app: *name}}
data:
  <<: *labels
  other: *name
`)},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {app: a}}, data: {app: a, other: a}}]`,
		},
		"a List is expanded into its items": {
			manifest.Input{Namespace: "shop", ConfigMaps: configMap(`
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
`)},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}, {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}}]`,
		},
		"a list of one kind is expanded into its items": {
			manifest.Input{Namespace: "shop", Manifests: manifests(
				`{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{},"items":[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}]}`,
				`{"apiVersion":"v1","kind":"ConfigMapList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}`)},
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}, {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}}]`,
		},
		"a custom resource with a name and items is no list": {
			manifest.Input{Namespace: "shop", Manifests: manifests(`{"apiVersion":"x.com/v1","kind":"AllowList","metadata":{"name":"a"},"items":[]}`)},
			`[{apiVersion: x.com/v1, kind: AllowList, metadata: {name: a, namespace: shop}, items: []}]`,
		},
		"equal names of other kinds, groups and namespaces are other objects": {
			manifest.Input{Manifests: manifests(
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"b"}}`,
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"a"}}`,
				`{"apiVersion":"x.com/v1","kind":"Service","metadata":{"name":"a","namespace":"a"}}`)},
			`[{apiVersion: v1, kind: Service, metadata: {name: a, namespace: a}},
			  {apiVersion: v1, kind: Service, metadata: {name: a, namespace: b}},
			  {apiVersion: x.com/v1, kind: Service, metadata: {name: a, namespace: a}}]`,
		},
		"a ClusterBundle has namespaces, and objects of an unknown kind as they stand": {
			manifest.Input{Manifests: manifests(
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
				`{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a"}}`,
				`{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a","namespace":"shop"}}`,
				`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"kube-reader"}}`)},
			`[{apiVersion: v1, kind: Namespace, metadata: {name: shop}},
			  {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: kube-reader}},
			  {apiVersion: x.com/v1, kind: A, metadata: {name: a}},
			  {apiVersion: x.com/v1, kind: A, metadata: {name: a, namespace: shop}}]`,
		},
		"a ClusterBundle has a definition and objects of its kind, in any order": {
			manifest.Input{Manifests: manifests(
				`{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a","namespace":"shop"}}`,
				`{"apiVersion":"x.com/v1","kind":"B","metadata":{"name":"b"}}`,
				definition("A", "Namespaced"), definition("B", "Cluster"))},
			`[{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.x.com}, spec: {group: x.com, names: {kind: A}, scope: Namespaced}},
			  {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: b.x.com}, spec: {group: x.com, names: {kind: B}, scope: Cluster}},
			  {apiVersion: x.com/v1, kind: A, metadata: {name: a, namespace: shop}},
			  {apiVersion: x.com/v1, kind: B, metadata: {name: b}}]`,
		},
		"a definition that cannot be read defines no kind": {
			manifest.Input{Manifests: manifests(
				`{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a"}}`,
				`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"group":"x.com","names":"A","scope":"Namespaced"}}`)},
			`[{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: x.com, names: A, scope: Namespaced}},
			  {apiVersion: x.com/v1, kind: A, metadata: {name: a}}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, tc.in)
			if diff := cmp.Diff(objects(t, tc.want), got); diff != "" || err != "" {
				t.Errorf("%s%s", err, diff)
			}
		})
	}
}

func TestAChartMayHaveSecrets(t *testing.T) {
	for name, tc := range map[string]struct{ secret, want string }{
		"keys with values":                                {`data: {a: Yg==}, stringData: {b: c}, type: kubernetes.io/tls`, `data: {a: Yg==}, stringData: {b: c}, type: kubernetes.io/tls`},
		"keys without a value are the operator's":         {`data: {tls.crt: "", tls.key: null, ca.crt: Yg==}, stringData: {x: ""}`, `data: {ca.crt: Yg==}`},
		"a Secret without keys":                           {`type: Opaque, data: {}`, `type: Opaque`},
		"data that is no map is for the member to refuse": {`data: [a]`, `data: [a]`},
	} {
		t.Run(name, func(t *testing.T) {
			const of = "- {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: turbines}, "
			got, err := read(t, manifest.Input{Rendered: objects(t, of+tc.secret+"}")})
			if diff := cmp.Diff(objects(t, of+tc.want+"}"), got); diff != "" || err != "" {
				t.Errorf("%s (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAChartsSecretThatIsTooLargeIsRefusedWithoutItsValue(t *testing.T) {
	value := strings.Repeat("c2VjcmV0", 1<<17)
	_, err := read(t, manifest.Input{Rendered: objects(t, "- {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: turbines}, data: {a: "+value+"}}")})
	if want := "the chart, Secret turbines/a: the object has "; !strings.HasPrefix(err, want) || strings.Contains(err, "c2Vj") {
		t.Errorf("%q, want %q and no value", hubv1.CutMessage(err, 200), want)
	}
}

func definition(kind, scope string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.x.com"},"spec":{"group":"x.com","names":{"kind":%q},"scope":%q}}`,
		strings.ToLower(kind), kind, scope)
}

const (
	system   = ": use another one, since Hanse writes nothing in kube-* and hanse-system of members, except Roles and RoleBindings of a FederatedOperator in kube-system for leader election"
	noList   = "it is a List without items, or a List in another List: write each object as a manifest of its own"
	noObject = "it is not an object: write a map with apiVersion, kind and metadata.name"
)

// Each manifest is the only manifest of its bundle.
func TestManifestsThatAreRefused(t *testing.T) {
	const inBundle, inClusterBundle = "shop", ""
	for name, tc := range map[string]struct {
		namespace, manifest, want string
	}{
		"a manifest that is not JSON":               {inBundle, `apiVersion: v1`, `it is not JSON: write an object with apiVersion, kind and metadata.name`},
		"a manifest with a fault of JSON":           {inBundle, `{"apiVersion":}`, `invalid character '}' looking for beginning of value: correct the JSON`},
		"a manifest that repeats a field":           {inBundle, `{"apiVersion":"v1","spec":{"a":1,"a":2}}`, `duplicate field "spec.a": remove one of them`},
		"an empty manifest":                         {inBundle, `null`, noObject},
		"a text":                                    {inBundle, `"text"`, noObject},
		"an object without an apiVersion":           {inBundle, `{"kind":"A","metadata":{"name":"a"}}`, `it has no apiVersion: set it, such as apps/v1`},
		"an apiVersion that is a number":            {inBundle, `{"apiVersion":1,"kind":"A","metadata":{"name":"a"}}`, `it has no apiVersion: set it, such as apps/v1`},
		"an apiVersion of three parts":              {inBundle, `{"apiVersion":"a/b/c","kind":"A","metadata":{"name":"a"}}`, `the apiVersion is "a/b/c": set a group and a version, such as apps/v1`},
		"an apiVersion without a version":           {inBundle, `{"apiVersion":"apps/","kind":"A","metadata":{"name":"a"}}`, `the apiVersion is "apps/": set a group and a version, such as apps/v1`},
		"an object without a kind":                  {inBundle, `{"apiVersion":"v1","metadata":{"name":"a"}}`, `it has no kind: set it, such as Deployment`},
		"an object without metadata":                {inBundle, `{"apiVersion":"v1","kind":"ConfigMap"}`, `it has no metadata: set metadata.name`},
		"an object without a name":                  {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`, `it has no metadata.name: set it to a string`},
		"a name that is a number":                   {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":7}}`, `it has no metadata.name: set it to a string`},
		"a name that is a path":                     {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a/b"}}`, `the name is "a/b": a name may not contain '/'`},
		"a name of a folder":                        {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":".."}}`, `the name is "..": a name may not be '..'`},
		"a generated name":                          {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`, `it has metadata.generateName: set metadata.name instead`},
		"a generated name beside a name":            {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","generateName":"a-"}}`, `it has metadata.generateName: set metadata.name instead`},
		"labels that are no map":                    {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":["a"]}}`, `metadata.labels is not a map: write keys and strings`},
		"a label that is a number":                  {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a":1}}}`, `the value of "a" in metadata.labels is not a string: write it in quotes`},
		"a label of Hanse":                          {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"hanse.dev/x":"1"}}}`, `metadata.labels has the key "hanse.dev/x", but only Hanse sets keys with the prefix hanse.dev/: remove it`},
		"annotations that are no map":               {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":"a"}}`, `metadata.annotations is not a map: write keys and strings`},
		"an annotation that is a boolean":           {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"b":true,"a":"x"}}}`, `the value of "b" in metadata.annotations is not a string: write it in quotes`},
		"an annotation of Hanse":                    {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"hanse.dev/bundle":"{}"}}}`, `metadata.annotations has the key "hanse.dev/bundle", but only Hanse sets keys with the prefix hanse.dev/: remove it`},
		"a kind of Hanse":                           {inBundle, `{"apiVersion":"hanse.dev/v1alpha1","kind":"Placement","metadata":{"name":"a"}}`, `Placement is a kind of Hanse: create the object on the hub, outside of the bundle`},
		"a Secret":                                  {inBundle, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"a":"Yg=="}}`, `it is a Secret: create the Secret on the hub and select it with a placement`},
		"a List without items":                      {inBundle, `{"apiVersion":"v1","kind":"List","metadata":{"name":"a"},"items":null}`, noList},
		"a list of another group's kinds":           {inBundle, `{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{},"items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}`, `it has no metadata.name: set it to a string`},
		"another namespace than that of the Bundle": {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`, `the namespace is "b": a Bundle has objects of its own namespace shop only; remove metadata.namespace or use a ClusterBundle`},
		"a namespace that is a number":              {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":1}}`, `metadata.namespace is not a string: write it in quotes`},
		"a cluster-scoped kind in a Bundle":         {inBundle, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"}}`, `ClusterRole.rbac.authorization.k8s.io is a cluster-scoped kind: use a ClusterBundle`},
		"a Namespace in a Bundle":                   {inBundle, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`, `Namespace is a cluster-scoped kind: use a ClusterBundle`},
		"no namespace in a ClusterBundle":           {inClusterBundle, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`, `Deployment.apps is a namespaced kind: set metadata.namespace`},
		"a namespace of a cluster-scoped kind":      {inClusterBundle, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a","namespace":"b"}}`, `ClusterRole.rbac.authorization.k8s.io is a cluster-scoped kind: remove metadata.namespace`},
		"an object of kube-system":                  {inClusterBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"kube-system"}}`, "the namespace is kube-system" + system},
		"an unknown kind in hanse-system":           {inClusterBundle, `{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a","namespace":"hanse-system"}}`, "the namespace is hanse-system" + system},
		"the Namespace kube-public":                 {inClusterBundle, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-public"}}`, "the namespace is kube-public" + system},
		"the Namespace hanse-system":                {inClusterBundle, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"hanse-system"}}`, "the namespace is hanse-system" + system},
		"a namespace that is a path":                {inClusterBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"../a"}}`, `the namespace is "../a": use lower case letters, digits and -, at most 63`},
		"an object of 901 KiB":                      {inBundle, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"` + strings.Repeat("a", 901<<10) + `"}}`, `the object has 922721 bytes as JSON, and at most 921600 are allowed: make the object smaller`},
		"an object of 65 maps in each other":        {inBundle, `{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a"},"spec":` + strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 65), `the object nests deeper than 64 levels of maps and lists: flatten it`},
		"an object of 65 maps and lists":            {inBundle, `{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a"},"spec":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}", `the object nests deeper than 64 levels of maps and lists: flatten it`},
		"an object deeper than a decoder reads":     {inBundle, `{"spec":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}", `invalid character '[' exceeded max depth: correct the JSON`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, manifest.Input{Namespace: tc.namespace, Manifests: manifests(tc.manifest)})
			if diff := cmp.Diff("manifests[0]: "+tc.want, err); diff != "" || got != nil {
				t.Errorf("%v%s", got, diff)
			}
		})
	}
}

func TestValuesOfConfigMapsThatAreRefused(t *testing.T) {
	const first = "ConfigMap app, key a.yaml, document 1: "
	const good = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
	for name, tc := range map[string]struct{ value, want string }{
		"a value that is not UTF-8":                   {"a: \xff", "ConfigMap app, key a.yaml: the value is not UTF-8: store YAML or JSON there"},
		"a control character":                         {"a: \x00", first + "yaml: control characters are not allowed: correct the YAML"},
		"a fault of YAML":                             {good + "\n---\n# empty\n---\nkind: A\n metadata: {}", "ConfigMap app, key a.yaml, document 2: yaml: line 2: mapping values are not allowed in this context: correct the YAML"},
		"a list of objects":                           {"- " + good, first + noObject},
		"a number":                                    {"7", first + noObject},
		"a second number after a JSON object":         {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}} 7`, "ConfigMap app, key a.yaml, document 2: " + noObject},
		"a key that JSON repeats":                     {`{"apiVersion":"v1","kind":"A","kind":"B"}`, first + `duplicate field "kind": remove one of them`},
		"a key that YAML repeats":                     {"kind: A\nkind: B", first + `error converting YAML to JSON: yaml: unmarshal errors: line 2: key "kind" already set in map: correct the YAML`},
		"a key that a merge repeats":                  {"a: &a {kind: A}\n<<: *a\nkind: B", first + `error converting YAML to JSON: yaml: unmarshal errors: line 3: key "kind" already set in map: correct the YAML`},
		"a key that is a boolean":                     {"apiVersion: v1\nyes: A", first + `line 2 has the key "yes", which is not a string: write it in quotes`},
		"a key that is a number":                      {"data: {8080: a}", first + `line 1 has the key "8080", which is not a string: write it in quotes`},
		"a key that is null":                          {"data: {~: a}", first + `line 1 has the key "~", which is not a string: write it in quotes`},
		"a key that is a list":                        {"data: {[a, b]: a}", first + `line 1 has the key "", which is not a string: write it in quotes`},
		"a number that JSON does not have":            {"spec: .nan", first + `error converting YAML to JSON: json: unsupported value: NaN: correct the YAML`},
		"a tag":                                       {"data: {a: !!binary YQ==}", first + `line 1 has the tag "!!binary": remove the tag`},
		"the tag of a merge at another key":           {"data: {!!merge a: {b: c}}", first + `line 1 has the tag "!!merge": remove the tag`},
		"a tag of a key":                              {"data: {!x a: b}", first + `line 1 has the tag "!x": remove the tag`},
		"an object beside the first one":              {good + "\n" + good, first + "there is text after the end of the document: correct its indentation, or write --- on a line before it"},
		"an object after the end of a document":       {good + "\n...\n" + good, first + "there is text after the end of the document: correct its indentation, or write --- on a line before it"},
		"an object after a line end of old computers": {"a: 1\r---\rb: 2", first + "there is text after the end of the document: correct its indentation, or write --- on a line before it"},
		"text outside of the first object":            {"  apiVersion: v1\nkind: ConfigMap", first + "there is text after the end of the document: correct its indentation, or write --- on a line before it"},
		"text on the line of a separator":             {"--- " + good, first + "a line begins with --- and has more text: write --- on a line of its own"},
		"an unknown anchor":                           {"a: *b", first + "yaml: unknown anchor 'b' referenced: correct the YAML"},
		"an alias of a value that contains it":        {"a: &a [*a]", first + "line 1 has an alias inside the value to which it refers: write the value out"},
		"a List in a List":                            {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: []}]}", "ConfigMap app, key a.yaml, document 1, items[0]: " + noList},
		"a list of a kind in a List":                  {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMapList, items: []}]}", "ConfigMap app, key a.yaml, document 1, items[0]: " + noList},
		"an item that is no object":                   {"{apiVersion: v1, kind: List, items: [1]}", "ConfigMap app, key a.yaml, document 1, items[0]: " + noObject},
		"aliases of aliases of many values":           {aliases(9), "the bundle has more than 16777216 bytes: split it into several bundles"},
		"many aliases of a large value":               {"a: &a " + strings.Repeat("a", 100_000) + "\nb: [" + strings.Repeat("*a,", 200) + "]", "the bundle has more than 16777216 bytes: split it into several bundles"},
		"more aliases than YAML allows":               {"a: &a [" + strings.Repeat("1,", 1000) + "]\nb: [" + strings.Repeat("*a,", 1000) + "]", first + "error converting YAML to JSON: yaml: document contains excessive aliasing: correct the YAML"},
		"deeper than YAML allows":                     {strings.Repeat("[", 20000), first + "yaml: exceeded max depth of 10000: correct the YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, manifest.Input{Namespace: "shop", ConfigMaps: configMap(tc.value)})
			if diff := cmp.Diff(tc.want, err); diff != "" || got != nil {
				t.Errorf("%v%s", got, diff)
			}
		})
	}
}

// aliases returns a document with YAML aliases whose size is 10 to the power of the levels.
func aliases(levels int) string {
	text := "a0: &a0 a\n"
	for i := range levels {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 10))
	}
	return text
}

func TestBundlesThatAreRefusedAsAWhole(t *testing.T) {
	numbered := func(n, size int, letter string) []runtime.RawExtension {
		var texts []string
		for i := range n {
			texts = append(texts, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d"},"data":{"a":%q}}`, i, strings.Repeat(letter, size)))
		}
		return manifests(texts...)
	}
	const one = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	const nameless = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`
	for name, tc := range map[string]struct {
		in   manifest.Input
		want string
	}{
		"a bundle without manifests":                 {manifest.Input{Namespace: "shop"}, manifest.ErrNoObjects.Error()},
		"a bundle of empty documents and empty List": {manifest.Input{Namespace: "shop", ConfigMaps: configMap("# a\n---\n{apiVersion: v1, kind: List, items: []}")}, manifest.ErrNoObjects.Error()},
		"an object twice, at another version": {
			manifest.Input{Namespace: "shop", Manifests: manifests(one), ConfigMaps: configMap("---\n{apiVersion: v2, kind: ConfigMap, metadata: {name: a, namespace: shop}}")},
			"ConfigMap app, key a.yaml, document 1: ConfigMap shop/a is also in manifests[0]: remove one of them",
		},
		"a cluster-scoped object twice, once in a List": {
			manifest.Input{Manifests: manifests(`{"apiVersion":"v1","kind":"List","items":[`+one[:len(one)-1]+`,"x":1},{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}]}`,
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`)},
			"manifests[0], items[0]: ConfigMap is a namespaced kind: set metadata.namespace; manifests[1]: Namespace a is also in manifests[0], items[1]: remove one of them",
		},
		"1001 objects":                {manifest.Input{Namespace: "shop", Manifests: numbered(1001, 1, "a")}, "the bundle has more than 1000 objects: split it into several bundles"},
		"1001 objects in a ConfigMap": {manifest.Input{Namespace: "shop", ConfigMaps: configMap(strings.Repeat(one, 1001))}, "the bundle has more than 1000 objects: split it into several bundles; " + twice(4) + "; and 995 more"},
		"1002 items of a List": {manifest.Input{Namespace: "shop", ConfigMaps: configMap(`{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat(nameless+",", 1001) + nameless + `]}`)},
			"ConfigMap app, key a.yaml, document 1, items[0]: it has no metadata.name: set it to a string; ConfigMap app, key a.yaml, document 1, items[1]: it has no metadata.name: set it to a string; " +
				"ConfigMap app, key a.yaml, document 1, items[2]: it has no metadata.name: set it to a string; ConfigMap app, key a.yaml, document 1, items[3]: it has no metadata.name: set it to a string; " +
				"ConfigMap app, key a.yaml, document 1, items[4]: it has no metadata.name: set it to a string; and 996 more"},
		"more than 16 MiB of manifests":   {manifest.Input{Namespace: "shop", Manifests: numbered(20, 880<<10, "a")}, "the bundle has more than 16777216 bytes: split it into several bundles"},
		"more than 16 MiB only as JSON":   {manifest.Input{Namespace: "shop", Manifests: numbered(20, 150_000, "<")}, "the bundle has more than 16777216 bytes: split it into several bundles"},
		"a definition that is namespaced": {manifest.Input{Manifests: manifests(definition("A", "Namespaced"), `{"apiVersion":"x.com/v2","kind":"A","metadata":{"name":"a"}}`)}, "manifests[1]: A.x.com is a namespaced kind: set metadata.namespace"},
		"a definition for the cluster":    {manifest.Input{Manifests: manifests(definition("A", "Cluster"), `{"apiVersion":"x.com/v2","kind":"A","metadata":{"name":"a","namespace":"b"}}`)}, "manifests[1]: A.x.com is a cluster-scoped kind: remove metadata.namespace"},
		"a definition in a Bundle":        {manifest.Input{Namespace: "shop", Manifests: manifests(definition("A", "Cluster"), `{"apiVersion":"x.com/v2","kind":"A","metadata":{"name":"a"}}`)}, "manifests[0]: CustomResourceDefinition.apiextensions.k8s.io is a cluster-scoped kind: use a ClusterBundle"},
		"two definitions of different scope": {manifest.Input{Manifests: manifests(definition("A", "Namespaced"), strings.Replace(definition("A", "Cluster"), "a.x.com", "b.x.com", 1), `{"apiVersion":"x.com/v2","kind":"A","metadata":{"name":"a"}}`)},
			"manifests[2]: A.x.com is a namespaced kind: set metadata.namespace"},
		"values in the order of ConfigMaps and keys": {
			manifest.Input{Namespace: "shop", ConfigMaps: []corev1.ConfigMap{
				{ObjectMeta: metav1.ObjectMeta{Name: "z"}, Data: map[string]string{"b": "1", "c": "1"}, BinaryData: map[string][]byte{"a": {'1'}}},
				{ObjectMeta: metav1.ObjectMeta{Name: "y"}, Data: map[string]string{"a": "1"}},
			}},
			"ConfigMap z, key a, document 1: " + noObject + "; ConfigMap z, key b, document 1: " + noObject + "; ConfigMap z, key c, document 1: " + noObject + "; ConfigMap y, key a, document 1: " + noObject,
		},
		"seven problems": {
			manifest.Input{Namespace: "shop", Manifests: manifests(nameless, one, nameless, nameless, nameless, nameless, nameless, nameless)},
			"manifests[0]: it has no metadata.name: set it to a string; manifests[2]: it has no metadata.name: set it to a string; manifests[3]: it has no metadata.name: set it to a string; " +
				"manifests[4]: it has no metadata.name: set it to a string; manifests[5]: it has no metadata.name: set it to a string; and 2 more",
		},
		"a problem with a very long name": {
			manifest.Input{Namespace: "shop", Manifests: manifests(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"/` + strings.Repeat("ä", 1000) + `"}}`)},
			`manifests[0]: the name is "/` + strings.Repeat("ä", 271) + "…" + strings.Repeat("ä", 271) + `": a name may not contain '/'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, tc.in)
			if diff := cmp.Diff(tc.want, err); diff != "" || got != nil {
				t.Errorf("%v%s", got, diff)
			}
		})
	}
	if _, err := manifest.Read(manifest.Input{Namespaced: namespaced}); !errors.Is(err, manifest.ErrNoObjects) {
		t.Errorf("the error for no objects is %v", err)
	}
}

// twice returns the problems of the documents from the second to the n-th, which are all like the first document.
func twice(n int) string {
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("ConfigMap app, key a.yaml, document %d: ConfigMap shop/a is also in ConfigMap app, key a.yaml, document 1: remove one of them", i+2))
	}
	return strings.Join(texts, "; ")
}

func TestObjectsAtTheLimits(t *testing.T) {
	full := `{"apiVersion":"v1","data":{"a":""},"kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`
	full = strings.Replace(full, `"a":""`, `"a":"`+strings.Repeat("a", manifest.MaxBytes-len(full))+`"`, 1)
	deep := `{"apiVersion":"x.com/v1","kind":"A","metadata":{"name":"a"},"spec":` + strings.Repeat("[", manifest.MaxDepth-1) + strings.Repeat("]", manifest.MaxDepth-1) + "}"
	got, err := read(t, manifest.Input{Namespace: "shop", Manifests: manifests(full, deep)})
	if err != "" || len(got) != 2 {
		t.Errorf("%d objects, %s", len(got), err)
	}
	var many []string
	for i := range manifest.MaxObjects {
		many = append(many, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d"}}`, i))
	}
	if got, err := read(t, manifest.Input{Namespace: "shop", ConfigMaps: configMap(strings.Join(many, "\n---\n"))}); err != "" || len(got) != manifest.MaxObjects {
		t.Errorf("%d objects, %s", len(got), err)
	}
}

func TestABundleIsNotRefusedWhileTheHubCannotBeAsked(t *testing.T) {
	t.Parallel()
	away := errors.New("the API server is away")
	_, err := manifest.Read(manifest.Input{
		Namespace: "shop", Manifests: manifests(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`),
		Namespaced: func(schema.GroupKind) (namespaced, known bool, err error) { return false, false, away },
	})
	const want = "finding out whether a kind is namespaced: ConfigMap: the API server is away"
	if !errors.Is(err, manifest.ErrScope) || !errors.Is(err, away) || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
}

func TestAnOperatorElectsItsLeaderInKubeSystem(t *testing.T) {
	const (
		rbac      = `"apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"issuer","namespace":"kube-system"}`
		role      = `{` + rbac + `,"kind":"Role","rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["create"]}]}`
		secrets   = `{` + rbac + `,"kind":"Role","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`
		binding   = `{` + rbac + `,"kind":"RoleBinding","subjects":[{"kind":"ServiceAccount","namespace":"issuer","name":"issuer"}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":`
		elsewhere = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"issuer","namespace":"issuer"}}`
		missing   = "roleRef names the Role issuer, which the operator does not have in kube-system: name a Role of the operator, or extension-apiserver-authentication-reader"
	)
	itself, reader := binding+`"issuer"}}`, binding+`"extension-apiserver-authentication-reader"}}`
	for name, tc := range map[string]struct {
		in   manifest.Input
		want string // part of the error; empty: all manifests are accepted
	}{
		"an operator with a Role and its binding":      {manifest.Input{Operator: true, Manifests: manifests(itself, role)}, ""},
		"an operator that serves an API":               {manifest.Input{Operator: true, Manifests: manifests(reader)}, ""},
		"a binding to a Role of others in kube-system": {manifest.Input{Operator: true, Manifests: manifests(itself)}, missing},
		"a binding to a Role of another namespace":     {manifest.Input{Operator: true, Manifests: manifests(itself, elsewhere)}, missing},
		"a binding whose Role is in a ConfigMap":       {manifest.Input{Operator: true, Partial: true, Manifests: manifests(itself)}, ""},
		"a Role that reads Secrets":                    {manifest.Input{Operator: true, Manifests: manifests(itself, secrets)}, "rules[0] is about secrets"},
		"a ClusterBundle":                              {manifest.Input{Manifests: manifests(itself, role)}, "the namespace is kube-system" + system},
		"a Bundle":                                     {manifest.Input{Namespace: "shop", Manifests: manifests(role)}, `the namespace is "kube-system": a Bundle has objects of its own namespace shop only`},
		"a Bundle of kube-system itself":               {manifest.Input{Namespace: "kube-system", Manifests: manifests(role)}, "the namespace is kube-system" + system},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, tc.in)
			if (err == "") != (tc.want == "") || !strings.Contains(err, tc.want) || tc.want == "" && len(got) != len(tc.in.Manifests) {
				t.Errorf("got %d objects and %q, want %q", len(got), err, tc.want)
			}
		})
	}
}
