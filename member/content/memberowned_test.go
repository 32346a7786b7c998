package content_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanse-dev/hanse/member/content"
)

const shared = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, tier: theirs}
  managedFields:
  - manager: hanse
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata:
        f:labels: {"f:app": {}}
      f:spec:
        f:paused: {}
        f:selector: {}
        f:template:
          f:spec:
            f:containers:
              k:{"name":"b"}: {".": {}, "f:name": {}, "f:image": {}}
              k:{"name":"a"}: {".": {}, "f:name": {}, "f:image": {}, "f:args": {}}
  - manager: kubectl
    operation: Update
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata:
        f:labels: {"f:tier": {}}
      f:spec:
        f:replicas: {}
        f:strategy: {}
        f:template:
          f:spec:
            f:containers:
              k:{"name":"a"}: {"f:image": {}}
  - manager: kube-controller-manager
    operation: Update
    subresource: scale
    fieldsType: FieldsV1
    fieldsV1:
      f:spec: {"f:replicas": {}}
spec:
  replicas: 7
  paused: true
  minReadySeconds: 5
  selector: {matchLabels: {app: web}}
  strategy: {type: Recreate}
  template:
    spec:
      containers:
      - {name: b, image: "b:1", tty: true}
      - {name: a, image: "a:theirs", args: [x]}
      - {name: side, image: s}
`

func TestLeaveToMember(t *testing.T) {
	tests := map[string]struct {
		pointers []string
		want     string
	}{
		"nothing": {nil, `{spec: {replicas: 3, paused: false, minReadySeconds: 1, strategy: {type: RollingUpdate}}}`},
		"what another manager has is left out": {
			[]string{"/spec/replicas"}, `{spec: {paused: false, minReadySeconds: 1, strategy: {type: RollingUpdate}}}`,
		},
		"what the hub alone has is sent as it is": {
			[]string{"/spec/paused"}, `{spec: {replicas: 3, paused: true, minReadySeconds: 1, strategy: {type: RollingUpdate}}}`,
		},
		"what is nobody's is left out": {
			[]string{"/spec/minReadySeconds"}, `{spec: {replicas: 3, paused: false, strategy: {type: RollingUpdate}}}`,
		},
		"a part of what another manager has as one is sent as it is": {
			[]string{"/spec/strategy/type"}, `{spec: {replicas: 3, paused: false, minReadySeconds: 1, strategy: {type: Recreate}}}`,
		},
		"a part of what the hub has as one is sent as it is": {
			[]string{"/spec/selector/matchLabels"},
			`{spec: {replicas: 3, paused: false, minReadySeconds: 1, strategy: {type: RollingUpdate}, selector: {matchLabels: {app: web}}}}`,
		},
		"of a list, the items and fields that the hub alone has, in their order": {
			[]string{"/spec/template"},
			`{spec: {replicas: 3, paused: false, minReadySeconds: 1, strategy: {type: RollingUpdate},
			  template: {spec: {containers: [{name: b, image: "b:1"}, {name: a, args: [x]}]}}}}`,
		},
		"labels": {
			[]string{"/metadata/labels/app", "/metadata/labels/tier"},
			`{metadata: {labels: {app: web}}, spec: {replicas: 3, paused: false, minReadySeconds: 1, strategy: {type: RollingUpdate}}}`,
		},
		"what is nowhere": {[]string{"/spec/a~1b/c"}, `{spec: {replicas: 3, paused: false, minReadySeconds: 1, strategy: {type: RollingUpdate}}}`},
		"everything of a map": {
			[]string{"/spec/replicas", "/spec/minReadySeconds", "/spec/strategy", "/spec/paused"}, `{spec: {paused: true}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := object(t, `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3, paused: false, minReadySeconds: 1, strategy: {type: RollingUpdate}}}`)
			before := object(t, shared)
			live := before.DeepCopy()
			content.LeaveToMember(manifest, live, tc.pointers)
			want := object(t, `{apiVersion: apps/v1, kind: Deployment}`)
			for k, v := range object(t, "{apiVersion: v1, kind: X, "+tc.want[1:]).Object {
				if k != "apiVersion" && k != "kind" {
					want.Object[k] = v
				}
			}
			if diff := cmp.Diff(want.Object, manifest.Object); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, live); diff != "" {
				t.Errorf("the live object was changed: %s", diff)
			}
		})
	}
}

func TestAutoscaledIsWhatAutoscalersSet(t *testing.T) {
	copyOf := func(replicas string, more string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, managedFields: [
			{manager: hanse, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:paused": {}}}}` + more + `]},
			spec: {paused: true, replicas: ` + replicas + `}}`
	}
	entry := func(manager, subresource string) string {
		return `, {manager: ` + manager + `, operation: Update, subresource: "` + subresource + `", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}`
	}
	none, replicas := []string(nil), []string{"/spec/replicas"}
	tests := map[string]struct {
		live string
		want []string
	}{
		"the HorizontalPodAutoscaler":               {shared, replicas},
		"KEDA":                                      {copyOf("3", entry("keda-operator", "scale")), replicas},
		"kubectl scale":                             {copyOf("3", entry("kubectl", "scale")), none},
		"kubectl scale with its own name":           {copyOf("3", entry("kubectl-scale", "scale")), none},
		"an edit of the object":                     {copyOf("3", entry("tuner", "")), none},
		"0 that an autoscaler set has no manager":   {copyOf("0", ""), replicas},
		"0 of an edit has a manager":                {copyOf("0", entry("kubectl-edit", "")), none},
		"another number without a manager":          {copyOf("1", ""), none},
		"no number":                                 {copyOf("null", ""), none},
		"the hub's own 0":                           {copyOf("0", `, {manager: hanse, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}`), none},
		"an object that a backup tool has restored": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0}}`, none},
		"other fields":                              {live, none},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, content.Autoscaled(object(t, tc.live))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	const before = `{apiVersion: v1, kind: X, metadata: {name: x, generation: 1, labels: {a: "1", hanse.dev/hub: h}}, spec: {size: 1, l: [1, {a: b}], m: {x: y}}, status: {s: 1}}`
	tests := map[string]struct {
		after string
		want  []string
	}{
		"the same": {before, nil},
		"our marks, the status and the server's metadata": {
			`{apiVersion: v1, kind: X, metadata: {name: x, generation: 2, labels: {a: "1"}, annotations: {hanse.dev/digest: d}}, spec: {size: 1, l: [1, {a: b}], m: {x: y}}}`, nil,
		},
		"values, items, and what comes or goes": {
			`{apiVersion: v1, kind: X, metadata: {name: x, labels: {b: "1"}}, spec: {size: 2, l: [1, {a: c}], new: null}}`,
			[]string{".metadata.labels.a", ".metadata.labels.b", ".spec.l[1].a", ".spec.m", ".spec.new", ".spec.size"},
		},
		"a longer list": {`{apiVersion: v1, kind: X, metadata: {name: x, labels: {a: "1"}}, spec: {size: 1, l: [1], m: {x: y}}}`, []string{".spec.l"}},
		"another type":  {`{apiVersion: v1, kind: X, metadata: {name: x, labels: {a: "1"}}, spec: {size: 1, l: {}, m: [x]}}`, []string{".spec.l", ".spec.m"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, content.Changes(object(t, before), object(t, tc.after))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
