package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const placementDefaults = `
priority: 0
preemption: Never
hubExecution: Refused
replicas: {type: Duplicate}
apply: {mode: Enforce, adoption: Never, fieldConflict: Take, unknownFields: Reject, recreate: UntilCompleted, createNamespace: true}
deletion: {adopted: Orphan, propagationPolicy: Background}
suspend: {}
statusAggregation: {mode: OnObject}
`

// What kubectl get -o yaml shows of an object that says the least.
func TestDefaults(t *testing.T) {
	c := connect(t)
	tests := map[string]struct {
		kind, spec, want string
	}{
		"a MemberCluster is left without touching its objects": {
			kind: "MemberCluster", spec: memberSpec, want: everywhere + `
connection: {type: Direct, direct: {kubeconfigSecretRef: {name: s, key: kubeconfig}}}
leave: {credentials: Keep, policy: Orphan, timeoutSeconds: 600, whenUnreachable: Wait}
`},
		"what is said of leaving keeps the other defaults": {
			kind: "MemberCluster", spec: memberSpec + "leave: {policy: Delete}", want: everywhere + `
connection: {type: Direct, direct: {kubeconfigSecretRef: {name: s, key: kubeconfig}}}
leave: {credentials: Keep, policy: Delete, timeoutSeconds: 600, whenUnreachable: Wait}
`},
		"null is as good as nothing where there is a default": {
			kind: "MemberCluster", spec: memberSpec + "leave: null", want: everywhere + `
connection: {type: Direct, direct: {kubeconfigSecretRef: {name: s, key: kubeconfig}}}
leave: {credentials: Keep, policy: Orphan, timeoutSeconds: 600, whenUnreachable: Wait}
`},
		"a Placement adopts nothing and takes nothing over": {
			kind: "Placement", spec: placementSpec, want: placementSpec + placementDefaults,
		},
		"a ClusterPlacement selects no namespaces by default": {
			kind: "ClusterPlacement", spec: placementSpec, want: placementSpec + placementDefaults,
		},
		"what becomes of member objects has no default, since it depends on the kind": {
			kind: "Placement", spec: placementSpec + "deletion: {whenDeleted: Orphan}\nsuspend: null", want: placementSpec + `
priority: 0
preemption: Never
hubExecution: Refused
replicas: {type: Duplicate}
apply: {mode: Enforce, adoption: Never, fieldConflict: Take, unknownFields: Reject, recreate: UntilCompleted, createNamespace: true}
deletion: {whenDeleted: Orphan, adopted: Orphan, propagationPolicy: Background}
suspend: {}
statusAggregation: {mode: OnObject}
`},
		"a labelSelector that selects all stays, since without it nothing would be selected": {
			kind: "Placement", spec: selectThings + "clusters: {labelSelector: {}}", want: selectThings + "clusters: {labelSelector: {}}\n" + placementDefaults,
		},
		"a rule has no defaults": {
			kind: "OverridePolicy", spec: overridesSpec(`{name: r, mergePatch: {a: {b: null}}}`), want: overridesSpec(`{name: r, mergePatch: {a: {b: null}}}`),
		},
		"null inside of a value stays, as a value it is as good as none": {
			kind: "OverridePolicy", spec: patches(`{op: add, path: /spec/a, value: {b: null}}, {op: add, path: /spec/a, value: null}`),
			want: overridesSpec(`{name: r, patches: [{op: add, path: /spec/a, value: {b: null}}, {op: add, path: /spec/a}]}`),
		},
		"a ClusterOverridePolicy is Baseline": {
			kind: "ClusterOverridePolicy", spec: overridesSpec(`{name: r, mergePatch: {}}`), want: overridesSpec(`{name: r, mergePatch: {}}`) + "tier: Baseline",
		},
		"a binding has no defaults": {kind: "ResourceBinding", spec: thingRef, want: thingRef},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.kind, "x", tc.spec)
			if err := c.Create(t.Context(), obj, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			want := object(t, tc.kind, "x", tc.want)
			if diff := cmp.Diff(want.Object["spec"], obj.Object["spec"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Columns of kubectl get show a 0 rather than nothing from the first report on.
func TestCountsOfAStatusDefaultToZero(t *testing.T) {
	c := connect(t)
	tests := map[string]struct {
		kind, spec string
		status     map[string]any
		want       map[string]any
	}{
		"a Placement counts objects and clusters": {
			kind: "Placement", spec: placementSpec, status: map[string]any{"observedGeneration": int64(1)},
			want: map[string]any{"observedGeneration": int64(1), "objects": int64(0), "selectedClusters": int64(0)},
		},
		"a binding counts its rows": {
			kind: "ResourceBinding", spec: thingRef, status: map[string]any{"summary": map[string]any{}},
			want: map[string]any{"summary": map[string]any{"desired": int64(0), "applied": int64(0), "healthy": int64(0), "unknown": int64(0)}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.kind, "counted", tc.spec)
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			obj.Object["status"] = tc.status
			if err := c.Status().Update(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, obj.Object["status"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := c.Delete(t.Context(), obj); err != nil {
				t.Error(err)
			}
		})
	}
}
