package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

const reader = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      serviceAccountName: web
      imagePullSecrets: [{name: pull}]
      containers: [{name: app, envFrom: [{configMapRef: {name: settings}}]}]
      volumes:
      - {name: tls, secret: {secretName: tls}}
      - {name: ca, configMap: {name: kube-root-ca.crt}}
`

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

var (
	settingsRead = hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	tlsRead      = hubv1.ObjectIdentity{Kind: "Secret", Namespace: "shop", Name: "tls"}
)

func contents(t *testing.T, settings, tls string) map[hubv1.ObjectIdentity]*unstructured.Unstructured {
	t.Helper()
	out := map[hubv1.ObjectIdentity]*unstructured.Unstructured{}
	if settings != "" {
		out[settingsRead] = parsed(t, settings)
	}
	if tls != "" {
		out[tlsRead] = parsed(t, tls)
	}
	return out
}

// reloadOf returns the annotation hanse.dev/reload of a manifest. It is empty if the manifest has no such annotation.
func reloadOf(t *testing.T, key canonical.Key, manifest string, of map[hubv1.ObjectIdentity]*unstructured.Unstructured) string {
	t.Helper()
	before := parsed(t, manifest)
	after, err := WithReload(key, before, []string{"/spec/template"}, of)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, manifest), before); diff != "" {
		t.Errorf("the given manifest has changed: %s", diff)
	}
	value, _, err := unstructured.NestedString(after.Object, "spec", "template", "metadata", "annotations", hubv1.ReloadAnnotation)
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(after.Object, "spec", "template", "metadata", "annotations", hubv1.ReloadAnnotation)
	if m, _, _ := unstructured.NestedMap(after.Object, "spec", "template", "metadata"); len(m) == 1 {
		unstructured.RemoveNestedField(after.Object, "spec", "template", "metadata")
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("other fields have changed: %s", diff)
	}
	return value
}

func TestPodsReadTheConfigMapsAndSecretsOfTheirVolumesAndContainers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		manifest string
		path     string
		want     []hubv1.ObjectIdentity
		err      string
	}{
		"no ServiceAccount, no pull secret, no object of every namespace": {reader, "/spec/template", []hubv1.ObjectIdentity{tlsRead, settingsRead}, ""},
		"a Job, because its pod template cannot change":                   {strings.NewReplacer("apps/v1", "batch/v1", "Deployment", "Job").Replace(reader), "/spec/template", nil, ""},
		"a cluster-scoped object":                                         {strings.Replace(reader, ", namespace: shop", "", 1), "/spec/template", nil, ""},
		"an object without the field":                                     {reader, "/spec/other", nil, ""},
		"a path that leads to a name":                                     {reader, "/kind", nil, "references: path /kind: the value must be a pod template"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadByPods(parsed(t, tc.manifest), []string{tc.path})
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("the error is %v, want %s", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("read (-want +got), error %v:\n%s", err, diff)
			}
		})
	}
}

func TestPodsRestartWhenTheContentThatTheyReadChanges(t *testing.T) {
	t.Parallel()
	key := canonical.Key("key")
	const settings, tls = `{data: {a: x}}`, `{data: {k: eA==}}`
	base := reloadOf(t, key, reader, contents(t, settings, tls))
	if len(base) != 32 {
		t.Fatalf("the digest is %q", base)
	}
	for name, tc := range map[string]struct {
		key           canonical.Key
		manifest      string
		settings, tls string
		same          bool
	}{
		"another value of the ConfigMap":        {key, reader, `{data: {a: y}}`, tls, false},
		"another value of the Secret":           {key, reader, settings, `{data: {k: eQ==}}`, false},
		"binary data":                           {key, reader, `{data: {a: x}, binaryData: {b: eA==}}`, tls, false},
		"an object that is gone":                {key, reader, settings, "", false},
		"values that change places":             {key, reader, `{data: {k: eA==}}`, `{data: {a: x}}`, false},
		"another key of the hub":                {canonical.Key("other"), reader, settings, tls, false},
		"a label of the ConfigMap":              {key, reader, `{metadata: {labels: {a: b}}, data: {a: x}}`, tls, true},
		"another field of the workload":         {key, strings.Replace(reader, "name: app", "name: main", 1), settings, tls, true},
		"a value of the user in the workload":   {key, strings.Replace(reader, "    spec:", "    metadata: {annotations: {hanse.dev/reload: a, b: c}}\n    spec:", 1), settings, tls, true},
		"annotations of null in the workload":   {key, strings.Replace(reader, "    spec:", "    metadata:\n    spec:", 1), settings, tls, true},
		"another order of the fields that read": {key, strings.Replace(reader, "volumes:", "volumes:\n      - {name: more, configMap: {name: settings}}", 1), settings, tls, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := WithReload(tc.key, parsed(t, tc.manifest), []string{"/spec/template"}, contents(t, tc.settings, tc.tls))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedString(after.Object, "spec", "template", "metadata", "annotations", hubv1.ReloadAnnotation)
			if err != nil || (got == base) != tc.same {
				t.Errorf("the digest is %q, before %q, want the same: %t, error %v", got, base, tc.same, err)
			}
		})
	}
	if got := reloadOf(t, key, reader, nil); got != "" {
		t.Errorf("without objects, the digest is %q", got)
	}
}

func TestEachPodTemplateHasADigestOfWhatItsPodsRead(t *testing.T) {
	t.Parallel()
	const two = `
apiVersion: example.com/v1
kind: Fleet
metadata: {name: f, namespace: shop}
spec:
  groups:
  - template: {spec: {containers: [{name: a, env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}]}]}}
  - template: {spec: {containers: [{name: b, env: [{name: B, valueFrom: {secretKeyRef: {name: tls, key: k}}}]}]}}
  - template: {spec: {containers: [{name: c}]}}
`
	digests := func(settings, tls string) (out []string) {
		after, err := WithReload(canonical.Key("key"), parsed(t, two), []string{"/spec/groups/*/template"}, contents(t, settings, tls))
		if err != nil {
			t.Fatal(err)
		}
		groups, _, _ := unstructured.NestedSlice(after.Object, "spec", "groups")
		for _, g := range groups {
			value, _, _ := unstructured.NestedString(g.(map[string]any), "template", "metadata", "annotations", hubv1.ReloadAnnotation)
			out = append(out, value)
		}
		return out
	}
	before, after := digests(`{data: {a: x}}`, `{data: {k: eA==}}`), digests(`{data: {a: y}}`, `{data: {k: eA==}}`)
	if before[0] == "" || before[0] == after[0] || before[1] == "" || before[1] != after[1] || before[2] != "" || after[2] != "" {
		t.Errorf("the digests were %q and are %q", before, after)
	}
}

func TestPodsThatReadTooManyObjectsAreRefused(t *testing.T) {
	t.Parallel()
	manifest := func(names int) *unstructured.Unstructured {
		var from []any
		for i := range 2 * names { // each name occurs twice
			from = append(from, map[string]any{"configMapRef": map[string]any{"name": fmt.Sprint("c", i%names)}})
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "envFrom": from}}}},
		}}}
		u.SetNamespace("shop")
		return u
	}
	if read, err := ReadByPods(manifest(maxReferences), []string{"/spec/template"}); err != nil || len(read) != maxReferences {
		t.Errorf("the pods read %d objects, want %d (error %v)", len(read), maxReferences, err)
	}
	_, err := ReadByPods(manifest(10000), []string{"/spec/template"})
	if want := "the pods read 10000 ConfigMaps and Secrets, and at most 64 are allowed"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}
