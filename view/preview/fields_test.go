package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// parsed returns the object of a YAML text.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestFieldsThatDifferAreNamed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, after string
		want          []Field
	}{
		"equal objects differ in nothing": {`{spec: {a: 1, b: [x]}}`, `{spec: {a: 1, b: [x]}}`, nil},
		"a value":                         {`{spec: {a: 1}}`, `{spec: {a: 2}}`, []Field{{"/spec/a", 1.0, 2.0}}},
		"a new field":                     {`{spec: {}}`, `{spec: {a: false}}`, []Field{{"/spec/a", nil, false}}},
		"a field that goes":               {`{spec: {a: {b: c}}}`, `{spec: {}}`, []Field{{"/spec/a", map[string]any{"b": "c"}, nil}}},
		"another type":                    {`{spec: {a: {b: c}}}`, `{spec: {a: [c]}}`, []Field{{"/spec/a", map[string]any{"b": "c"}, []any{"c"}}}},
		"a key with a slash":              {`{metadata: {labels: {a/b~c: x}}}`, `{metadata: {labels: {a/b~c: w}}}`, []Field{{"/metadata/labels/a~1b~0c", "x", "w"}}},
		"elements without names": {`{a: [x, v]}`, `{a: [x, z, w]}`, []Field{
			{"/a/1", "v", "z"}, {"/a/2", nil, "w"},
		}},
		"elements with names, of which one comes first now": {`{a: [{name: web, image: "1"}, {name: old}]}`, `{a: [{name: new}, {name: web, image: "2"}]}`, []Field{
			{"/a/0", nil, map[string]any{"name": "new"}}, {"/a/1/image", "1", "2"}, {"/a/1", map[string]any{"name": "old"}, nil},
		}},
		"elements in another order": {`{a: [{name: x}, {name: w}]}`, `{a: [{name: w}, {name: x}]}`, []Field{
			{"/a/0/name", "x", "w"}, {"/a/1/name", "w", "x"},
		}},
		"values of a Secret are not told, their keys are": {
			`{apiVersion: v1, kind: Secret, data: {a: b2xk, same: eA==}, type: Opaque}`, `{apiVersion: v1, kind: Secret, data: {a: bmV3, same: eA==, b: c}, metadata: {annotations: {x: secret}}, type: other}`,
			[]Field{{"/data/a", "***", "***"}, {"/data/b", nil, "***"}, {"/metadata", nil, "***"}, {"/type", "Opaque", "other"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, FieldsOf(parsed(t, tc.before), parsed(t, tc.after))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEqualDifferencesAreOneGroup(t *testing.T) {
	t.Parallel()
	three, six := []Field{{"/spec/replicas", 3, 5}}, []Field{{"/spec/replicas", 3, 6}}
	got := Grouped(map[string][]Field{"c": three, "a": three, "b": six, "d": {{"/spec/replicas", 2, 5}}}, func(cluster string) (before, after map[string]any) {
		return map[string]any{"on": cluster}, map[string]any{"after": cluster}
	})
	group := func(fields []Field, clusters ...string) Group {
		return Group{Clusters: clusters, Fields: fields, Before: map[string]any{"on": clusters[0]}, After: map[string]any{"after": clusters[0]}}
	}
	want := []Group{group(three, "a", "c"), group(six, "b"), group([]Field{{"/spec/replicas", 2, 5}}, "d")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// withoutOwners returns the object without managedFields.
func withoutOwners(u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "metadata", "managedFields")
	return out.Object
}

func TestAFieldThatAFileAddsIsSent(t *testing.T) {
	t.Parallel()
	object := parsed(t, `{apiVersion: v1, kind: X, metadata: {name: web, managedFields: [{manager: argocd, operation: Apply, fieldsV1: {"f:spec": {"f:a": {}}}}]}, spec: {a: 1, filled: 1}}`)
	file := parsed(t, `{apiVersion: v1, kind: X, metadata: {name: web}, spec: {a: 1, b: {c: 2}, list: [{d: 3}]}}`)
	out := Render(RenderInput{Object: Applied(object, file), Clusters: []*hubv1.MemberCluster{{}}})
	want := map[string]any{"a": 1.0, "b": map[string]any{"c": 2.0}, "list": []any{map[string]any{"d": 3.0}}}
	if diff := cmp.Diff(want, out[0].Manifest["spec"]); diff != "" {
		t.Errorf("the spec of the copy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/spec/filled"}, out[0].LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}

// TestTheSameFileAppliedAgainChangesNothing has the annotation that kubectl writes for an object without annotations.
func TestTheSameFileAppliedAgainChangesNothing(t *testing.T) {
	t.Parallel()
	object := parsed(t, `{apiVersion: example.com/v1, kind: X, metadata: {name: web, annotations: {
		kubectl.kubernetes.io/last-applied-configuration: '{"metadata":{"annotations":{},"name":"web"},"spec":{"a":1}}'}}, spec: {a: 1, default: 2}}`)
	file := parsed(t, `{apiVersion: example.com/v1, kind: X, metadata: {name: web}, spec: {a: 1}}`)
	if got := Applied(object, file); got != object {
		t.Errorf("the object becomes another one:\n%s", cmp.Diff(object.Object, got.Object))
	}
}

func TestAFileIsAppliedAsAnAPIServerDoes(t *testing.T) {
	t.Parallel()
	annotated := `metadata: {name: web, uid: "1", annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"paused":true,"c":[{"name":"a","env":"x"}]}}'}}`
	notes := `metadata: {name: web, annotations: {old: x, kubectl.kubernetes.io/last-applied-configuration: '{"metadata":{"annotations":{"old":"x"}},"spec":{"a":1}}'}}`
	applied := `metadata: {name: web, managedFields: [{manager: argocd, operation: Apply, fieldsV1: {"f:spec": {"f:paused": {}, "f:c": {'k:{"name":"a"}': {"f:env": {}}}}}}]}`
	created := `metadata: {name: web, labels: {tier: gold}, managedFields: [{manager: helm, operation: Update, fieldsV1: {"f:metadata": {"f:labels": {"f:tier": {}}}, "f:spec": {"f:a": {}, "f:b": {}}}},
		{manager: hansectl, operation: Update, fieldsV1: {"f:spec": {"f:suspend": {}}}}]}`
	tests := map[string]struct{ object, file, want string }{
		"a default of the API server stays": {
			`{apiVersion: v1, kind: X, metadata: {name: web, uid: "1"}, spec: {a: 1, default: 10}, status: {ok: true}}`,
			`{apiVersion: v1, kind: X, metadata: {name: web}, spec: {a: 2}, status: {ok: false}}`,
			`{apiVersion: v1, kind: X, metadata: {name: web, uid: "1"}, spec: {a: 2, default: 10}, status: {ok: true}}`,
		},
		"a field goes that kubectl apply had set": {
			`{apiVersion: v1, kind: X, ` + annotated + `, spec: {paused: true, c: [{name: a, env: x, pull: always}]}}`,
			`{apiVersion: v1, kind: X, metadata: {name: web}, spec: {c: [{name: a}]}}`,
			`{apiVersion: v1, kind: X, ` + annotated + `, spec: {c: [{name: a, pull: always}]}}`,
		},
		"the annotation of kubectl apply stays, and one that it had set goes": {
			`{apiVersion: v1, kind: X, ` + notes + `, spec: {a: 1}}`,
			`{apiVersion: v1, kind: X, metadata: {name: web}, spec: {a: 1}}`,
			`{apiVersion: v1, kind: X, ` + strings.Replace(notes, "old: x, ", "", 1) + `, spec: {a: 1}}`,
		},
		"a field goes that a server-side apply had set": {
			`{apiVersion: v1, kind: X, ` + applied + `, spec: {paused: true, c: [{name: a, env: x, pull: always}]}}`,
			`{apiVersion: v1, kind: X, metadata: {name: web}, spec: {c: [{name: a}]}}`,
			`{apiVersion: v1, kind: X, ` + applied + `, spec: {c: [{name: a, pull: always}]}}`,
		},
		"elements of a list go": {
			`{apiVersion: v1, kind: X, spec: {c: [{name: a}, {name: b}], d: [x, w]}}`,
			`{apiVersion: v1, kind: X, spec: {c: [{name: b}], d: [w]}}`,
			`{apiVersion: v1, kind: X, spec: {c: [{name: b}], d: [w]}}`,
		},
		"elements of a built-in kind keep defaults": {
			`{apiVersion: v1, kind: X, spec: {ports: [{port: 80, protocol: TCP}]}}`,
			`{apiVersion: v1, kind: X, spec: {ports: [{port: 81}]}}`,
			`{apiVersion: v1, kind: X, spec: {ports: [{port: 81, protocol: TCP}]}}`,
		},
		"a list of a custom resource is that of the file": {
			`{apiVersion: example.com/v1, kind: X, spec: {selectors: [{kind: A, name: a, labels: b}]}}`,
			`{apiVersion: example.com/v1, kind: X, spec: {selectors: [{kind: A, name: a}]}}`,
			`{apiVersion: example.com/v1, kind: X, spec: {selectors: [{kind: A, name: a}]}}`,
		},
		"a custom resource that was never applied keeps what hansectl has set": {
			`{apiVersion: example.com/v1, kind: X, ` + created + `, spec: {a: 1, b: 2, suspend: true}}`,
			`{apiVersion: example.com/v1, kind: X, metadata: {name: web}, spec: {a: 1}}`,
			`{apiVersion: example.com/v1, kind: X, ` + created + `, spec: {a: 1, suspend: true}}`,
		},
		"strings of a Secret are encoded": {
			`{apiVersion: v1, kind: Secret, data: {a: b2xk}}`,
			`{apiVersion: v1, kind: Secret, stringData: {b: new}}`,
			`{apiVersion: v1, kind: Secret, data: {a: b2xk, b: bmV3}}`,
		},
		"the version is that at which the hub has it": {
			`{apiVersion: example.com/v1, kind: X, spec: {a: 1}}`,
			`{apiVersion: example.com/v1beta1, kind: X, spec: {a: 2}}`,
			`{apiVersion: example.com/v1, kind: X, spec: {a: 2}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, file := parsed(t, tc.object), parsed(t, tc.file)
			got := Applied(object, file)
			if diff := cmp.Diff(withoutOwners(parsed(t, tc.want)), withoutOwners(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parsed(t, tc.object).Object, object.Object); diff != "" {
				t.Errorf("the object was changed (-want +got):\n%s", diff)
			}
			if again := Applied(got, file); again != got {
				t.Errorf("applied again, it is another object: %v", again.Object)
			}
		})
	}
}
