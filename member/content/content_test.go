package content_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

const live = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web, extra: theirs}
  annotations: {hanse.dev/digest: d1}
  managedFields:
  - manager: hanse
    operation: Apply
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata:
        f:labels: {"f:app": {}}
        f:annotations: {"f:hanse.dev/digest": {}}
      f:spec:
        f:replicas: {}
        f:paused: {}
        f:template:
          f:spec:
            f:containers:
              k:{"name":"main"}:
                .: {}
                f:name: {}
                f:args: {}
                f:ports:
                  k:{"containerPort":80,"protocol":"TCP"}:
                    .: {}
                    f:containerPort: {}
            f:finalizers:
              v:"one": {}
  - manager: tuner
    operation: Update
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:spec:
        f:minReadySeconds: {}
        f:template:
          f:spec:
            f:containers:
              k:{"name":"side"}: {".": {}, "f:name": {}}
spec:
  replicas: 3
  paused: false
  minReadySeconds: 7
  template:
    spec:
      finalizers: [one, two]
      containers:
      - name: side
      - name: main
        args: [--a, --b]
        image: theirs:1
        ports:
        - {containerPort: 80, protocol: TCP, name: http}
`

func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		tb.Fatal(err)
	}
	return u
}

func set(t *testing.T, u *unstructured.Unstructured, v any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(u.Object, v, path...); err != nil {
		t.Fatal(err)
	}
}

func containers(u *unstructured.Unstructured) []any {
	c, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", "containers")
	items, _ := c.([]any)
	return items
}

func TestHash(t *testing.T) {
	tests := map[string]struct {
		edit    func(*unstructured.Unstructured)
		changes bool
	}{
		"a field of ours changes it":              {func(u *unstructured.Unstructured) { set(t, u, int64(4), "spec", "replicas") }, true},
		"a field of ours that is gone changes it": {func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "spec", "paused") }, true},
		"our digest changes it": {func(u *unstructured.Unstructured) {
			set(t, u, "d2", "metadata", "annotations", "hanse.dev/digest")
		}, true},
		"an argument in an atomic list of ours changes it": {func(u *unstructured.Unstructured) {
			containers(u)[1].(map[string]any)["args"] = []any{"--a"}
		}, true},
		"a list item of ours that is gone changes it": {func(u *unstructured.Unstructured) {
			set(t, u, containers(u)[:1], "spec", "template", "spec", "containers")
		}, true},
		"a value of ours that is gone from a set changes it": {func(u *unstructured.Unstructured) {
			set(t, u, []any{"two"}, "spec", "template", "spec", "finalizers")
		}, true},
		"a path that we lost changes it": {func(u *unstructured.Unstructured) {
			m := u.GetManagedFields()
			m[0].FieldsV1.SetRawString(`{"f:spec":{"f:replicas":{}}}`)
			u.SetManagedFields(m)
		}, true},
		"a field of another manager does not": {func(u *unstructured.Unstructured) { set(t, u, int64(9), "spec", "minReadySeconds") }, false},
		"a label of another manager does not": {func(u *unstructured.Unstructured) { set(t, u, "x", "metadata", "labels", "extra") }, false},
		"a field of another manager in our list item does not": {func(u *unstructured.Unstructured) {
			containers(u)[1].(map[string]any)["image"] = "theirs:2"
		}, false},
		"the order of a list with keys does not": {func(u *unstructured.Unstructured) {
			c := containers(u)
			c[0], c[1] = c[1], c[0]
		}, false},
		"a new resourceVersion does not": {func(u *unstructured.Unstructured) { u.SetResourceVersion("77") }, false},
		"the status does not":            {func(u *unstructured.Unstructured) { set(t, u, int64(9), "status", "replicas") }, false},
		"the time of our entry does not": {func(u *unstructured.Unstructured) {
			m := u.GetManagedFields()
			now := metav1.Now()
			m[0].Time = &now
			u.SetManagedFields(m)
		}, false},
	}
	before, ok := content.Hash(nil, object(t, live))
	if !ok || len(before) != 32 {
		t.Fatalf("hash %q, ours %v", before, ok)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := object(t, live)
			tc.edit(u)
			after, ok := content.Hash(nil, u)
			if !ok || (after != before) != tc.changes {
				t.Errorf("before %s, after %s, ours %v", before, after, ok)
			}
		})
	}
}

func TestHashIsOursOnlyWithAnApplyEntryOfTheHub(t *testing.T) {
	entry := metav1.ManagedFieldsEntry{
		Manager: "hanse", Operation: metav1.ManagedFieldsOperationApply,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
	}
	tests := map[string]struct {
		edit func(*metav1.ManagedFieldsEntry)
		want bool
	}{
		"an apply by hanse is ours":        {func(*metav1.ManagedFieldsEntry) {}, true},
		"an update by hanse is not":        {func(e *metav1.ManagedFieldsEntry) { e.Operation = metav1.ManagedFieldsOperationUpdate }, false},
		"an apply to a subresource is not": {func(e *metav1.ManagedFieldsEntry) { e.Subresource = "status" }, false},
		"another manager is not":           {func(e *metav1.ManagedFieldsEntry) { e.Manager = "hanse2" }, false},
		"unreadable paths are not":         {func(e *metav1.ManagedFieldsEntry) { e.FieldsV1.SetRawString(`{"x":1}`) }, false},
		"no paths are not":                 {func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = nil }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := *entry.DeepCopy()
			tc.edit(&e)
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetManagedFields([]metav1.ManagedFieldsEntry{e})
			if _, got := content.Hash(nil, u); got != tc.want || content.Applied(u) != tc.want {
				t.Errorf("ours %v, applied %v, want %v", got, content.Applied(u), tc.want)
			}
		})
	}
}

func TestAnEntryThatCannotBeReadHidesNoOther(t *testing.T) {
	for name, nonsense := range map[string]any{
		"no map":                     "x",
		"a manager that is no text":  map[string]any{"manager": int64(7)},
		"a manager of ours as a map": map[string]any{"manager": map[string]any{"hanse": "hanse"}, "operation": "Apply"},
		"a subresource of ours that is no text": map[string]any{
			"manager": "hanse", "operation": "Apply", "subresource": false, "fieldsV1": map[string]any{"f:spec": map[string]any{}},
		},
		"paths that are no map": map[string]any{"manager": "other", "operation": "Update", "fieldsV1": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			u := object(t, live)
			want, _ := content.Hash(nil, u)
			metadata := u.Object["metadata"].(map[string]any)
			metadata["managedFields"] = append([]any{nonsense}, metadata["managedFields"].([]any)...)
			if got, ours := content.Hash(nil, u); got != want || !ours || !content.Applied(u) {
				t.Errorf("hash %s, ours %v, want %s", got, ours, want)
			}
			if drift := content.Drift(u, u); drift != nil {
				t.Errorf("drift %v", drift)
			}
		})
	}
}

// taken changes managedFields as the API server does for an update by another manager. The lost paths, which are lines
// of the text above, are removed from the hub's entry. theirs are the paths of the new entry.
func taken(t *testing.T, u *unstructured.Unstructured, manager, theirs string, lost ...string) {
	t.Helper()
	text := live
	for _, l := range lost {
		if !strings.Contains(text, l) {
			t.Fatalf("no line %q", l)
		}
		text = strings.Replace(text, l, "", 1)
	}
	entries := object(t, text).GetManagedFields()
	u.SetManagedFields(append(entries, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(theirs),
	}))
}

func TestDrift(t *testing.T) {
	const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 3
  paused: false
  template:
    spec:
      finalizers: [one]
      containers:
      - name: main
        args: [--a, --b]
        ports: [{containerPort: 80}]
`
	tests := map[string]struct {
		edit func(*unstructured.Unstructured)
		want []member.FieldDrift
	}{
		"nothing differs": {func(*unstructured.Unstructured) {}, nil},
		"a value that another manager took is named with it": {func(u *unstructured.Unstructured) {
			set(t, u, int64(9), "spec", "replicas")
			taken(t, u, "kubectl-edit", `{"f:spec":{"f:replicas":{}}}`, "        f:replicas: {}\n")
		}, []member.FieldDrift{{Path: ".spec.replicas", Manager: "kubectl-edit"}}},
		"a field that was removed has no manager": {func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "spec", "paused")
			taken(t, u, "kubectl-edit", `{"f:spec":{"f:other":{}}}`, "        f:paused: {}\n")
		}, []member.FieldDrift{{Path: ".spec.paused", Manager: "unknown"}}},
		"a field that is still ours is no drift": {func(u *unstructured.Unstructured) {
			set(t, u, int64(9), "spec", "replicas")
		}, nil},
		"a label that another manager took": {func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"app": "x"})
			taken(t, u, "labeler", `{"f:metadata":{"f:labels":{"f:app":{}}}}`, "        f:labels: {\"f:app\": {}}\n")
		}, []member.FieldDrift{{Path: ".metadata.labels.app", Manager: "labeler"}}},
		"a field in a list item is found by its key": {func(u *unstructured.Unstructured) {
			containers(u)[1].(map[string]any)["args"] = []any{"--c"}
			taken(t, u, "args-tuner", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:args":{}}}}}}}`,
				"                f:args: {}\n")
		}, []member.FieldDrift{{Path: `.spec.template.spec.containers[name="main"].args`, Manager: "args-tuner"}}},
		"a manager of fields in several items, none of which is its own": {func(u *unstructured.Unstructured) {
			m := u.GetManagedFields()
			m[0].FieldsV1.SetRawString(`{"f:spec":{"f:template":{"f:spec":{"f:finalizers":{"v:\"one\"":{}}}}}}`)
			m[1].FieldsV1.SetRawString(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:args":{}},"k:{\"name\":\"side\"}":{"f:image":{}}}}}}}`)
			u.SetManagedFields(m)
			containers(u)[1].(map[string]any)["args"] = []any{"--c"}
		}, []member.FieldDrift{{Path: `.spec.template.spec.containers[name="main"].args`, Manager: "tuner"}}},
		"a list item that was removed": {func(u *unstructured.Unstructured) {
			set(t, u, containers(u)[:1], "spec", "template", "spec", "containers")
			taken(t, u, "remover", `{}`, `              k:{"name":"main"}:
                .: {}
                f:name: {}
                f:args: {}
                f:ports:
                  k:{"containerPort":80,"protocol":"TCP"}:
                    .: {}
                    f:containerPort: {}
`)
		}, []member.FieldDrift{{Path: `.spec.template.spec.containers[name="main"]`, Manager: "unknown"}}},
		"no more than three are named": {func(u *unstructured.Unstructured) {
			u.Object["spec"] = map[string]any{}
			u.SetLabels(nil)
			u.SetManagedFields(nil)
		}, []member.FieldDrift{
			{Path: ".spec.paused", Manager: "unknown"},
			{Path: ".spec.replicas", Manager: "unknown"},
			{Path: ".spec.template", Manager: "unknown"},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := object(t, live)
			tc.edit(u)
			if diff := cmp.Diff(tc.want, content.Drift(u, object(t, manifest))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzManagedFields(f *testing.F) {
	f.Add([]byte(`{"f:spec":{"f:replicas":{},".":{}}}`), []byte(`{"spec":{"replicas":3}}`))
	f.Add([]byte(`{"f:a":{"k:{\"name\":\"x\"}":{".":{}},"v:1":{},"i:7":{},"k:{}":{},"k:[1]":{}}}`), []byte(`{"a":[{"name":"x"},1,null]}`))
	f.Add([]byte(`{"f:a":{"i:-1":{},"i:99999999999999999999":{},"v:{\"a\":[":{}}}`), []byte(`{"a":[]}`))
	f.Add([]byte(`{"f:a":null,"f:b":[],"":{}}`), []byte(`{"metadata":{"labels":7},"a":{}}`))
	f.Fuzz(func(t *testing.T, fields, body []byte) {
		object := map[string]any{}
		if json.Unmarshal(body, &object) != nil {
			return
		}
		u := &unstructured.Unstructured{Object: object}
		meta, _ := object["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			object["metadata"] = meta
		}
		var parsed any
		_ = json.Unmarshal(fields, &parsed)
		meta["managedFields"] = []any{
			map[string]any{"manager": "hanse", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": parsed},
			map[string]any{"manager": "x", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": parsed},
		}
		first, ok := content.Hash(nil, u)
		if second, again := content.Hash(nil, u); first != second || ok != again {
			t.Errorf("hashed to %s and %s", first, second)
		}
		content.Drift(u, u)
	})
}
