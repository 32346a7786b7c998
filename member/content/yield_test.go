package content_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/member/content"
)

const sentByAnEarlierHub = `
apiVersion: v1
kind: Service
metadata:
  name: edge
  managedFields:
  - manager: kubectl
    operation: Update
    fieldsV1: {"f:spec": {"f:type": {}}}
  - manager: hanse
    operation: Apply
    fieldsV1:
      f:metadata: {"f:labels": {"f:app": {}}}
      f:spec:
        f:ipFamilies: {}
        f:type: {}
        f:ports:
          k:{"port":80,"protocol":"TCP"}: {".": {}, "f:port": {}, "f:nodePort": {}}
          k:{"port":81,"protocol":"TCP"}: {".": {}, "f:port": {}, "f:nodePort": {}}
        f:cdi: {"f:enabled": {}, "f:default": {}}
        f:extra: {"f:a": {}}
spec:
  type: NodePort
  ipFamilies: [IPv4]
  ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 81, protocol: TCP, nodePort: 30999}]
  cdi: {enabled: true, default: false}
  extra: {a: 1}
`

func TestTheHubGivesUpWhatItNoLongerSends(t *testing.T) {
	t.Parallel()
	live := object(t, sentByAnEarlierHub)
	whole := object(t, `
apiVersion: v1
kind: Service
metadata: {name: edge, labels: {app: edge}}
spec:
  type: NodePort
  ipFamilies: [IPv4]
  ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 81, protocol: TCP, nodePort: 30081}]
  cdi: {enabled: true, default: false}
  extra: {a: 1}
`)
	sent := object(t, `
apiVersion: v1
kind: Service
metadata: {name: edge, labels: {app: edge}}
spec:
  type: NodePort
  ports: [{port: 80, protocol: TCP}, {port: 81, protocol: TCP}]
  cdi: {enabled: true}
`)
	before := live.DeepCopy()
	managed, ok := content.Yielded(live, sent, whole)
	if !ok || len(managed) != 2 {
		t.Fatalf("%v %v", ok, managed)
	}
	want := map[string]any{}
	if err := yaml.Unmarshal([]byte(`
f:metadata: {"f:labels": {"f:app": {}}}
f:spec:
  f:type: {}
  f:ports:
    k:{"port":80,"protocol":"TCP"}: {".": {}, "f:port": {}}
    k:{"port":81,"protocol":"TCP"}: {".": {}, "f:port": {}, "f:nodePort": {}}
  f:cdi: {"f:enabled": {}}
`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, managed[1].(map[string]any)["fieldsV1"]); diff != "" {
		t.Errorf("the fields that the hub keeps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("the live object was changed:\n%s", diff)
	}

	kept := object(t, `
apiVersion: v1
kind: Service
metadata: {name: edge, labels: {app: edge}}
spec:
  type: NodePort
  ipFamilies: [IPv4]
  ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 81, protocol: TCP}]
  cdi: {enabled: true, default: false}
  extra: {a: 1}
`)
	if diff := cmp.Diff(kept, content.Keeping(live, sent, whole)); diff != "" {
		t.Errorf("the manifest of a dry run (-want +got):\n%s", diff)
	}

	live.Object["metadata"].(map[string]any)["managedFields"] = managed
	if _, again := content.Yielded(live, sent, whole); again {
		t.Error("the hub gives up fields twice")
	}
	for name, u := range map[string]*unstructured.Unstructured{"a manifest with all fields": whole, "a manifest that lacks what the hub never sent": object(t, `{apiVersion: v1, kind: Service, spec: {}}`)} {
		if _, ok := content.Yielded(object(t, sentByAnEarlierHub), u, u); ok {
			t.Errorf("%s gives up fields", name)
		}
	}
}
