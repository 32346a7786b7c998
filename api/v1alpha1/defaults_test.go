package v1alpha1_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// The test compares objects with few fields with the output of kubectl get -o yaml.
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
		"a Bundle has the rights of the account default": {
			kind: "Bundle", spec: bundleSpec, want: bundleSpec + "serviceAccountName: default",
		},
		"a ClusterBundle has the rights of the account default": {
			kind: "ClusterBundle", spec: "configMaps: [{name: a}]", want: "configMaps: [{name: a}]\nserviceAccountName: default",
		},
		"an operator refuses hooks, keeps generated values, and refuses its removal while it is in use": {
			kind: "FederatedOperator", spec: operatorSpec,
			want: "chart: {archive: {configMap: rotors}, namespace: turbines, generatedValues: Keep, hooks: Refuse}\nremoval: Refuse\nserviceAccountName: default",
		},
		"a sink sends everything as CloudEvents": {
			kind: "NotificationSink", spec: sinkSpec + "filter: {kinds: [Widget]}",
			want: "format: CloudEvents\nurl: https://chat.example.com/hooks/hanse\nsecretRef: {name: chat}\nfilter: {kinds: [Widget], minSeverity: Normal}",
		},
		"null inside of a manifest stays": {
			kind: "Bundle", spec: "manifests: [{spec: {a: null}}]", want: "manifests: [{spec: {a: null}}]\nserviceAccountName: default",
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

// When the hub has written a status for the first time, the columns of kubectl get must show a 0 for a missing count.
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
		"a Bundle counts objects": {
			kind: "Bundle", spec: bundleSpec, status: map[string]any{"observedGeneration": int64(1)},
			want: map[string]any{"observedGeneration": int64(1), "objects": int64(0), "placed": int64(0)},
		},
		"an operator counts objects and clusters": {
			kind: "FederatedOperator", spec: operatorSpec, status: map[string]any{"observedGeneration": int64(1)},
			want: map[string]any{"observedGeneration": int64(1), "objects": int64(0), "placed": int64(0), "total": int64(0), "ready": int64(0)},
		},
		"a sink counts notifications": {
			kind: "NotificationSink", spec: sinkSpec, status: map[string]any{"observedGeneration": int64(1)},
			want: map[string]any{"observedGeneration": int64(1), "delivered": int64(0), "dropped": int64(0)},
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

// The library kstatus treats an object without a status as ready. A new object therefore gets a default status, with
// observedGeneration -1, from which kstatus concludes that the object is not ready yet.
func TestANewObjectIsNotReadyForKstatus(t *testing.T) {
	c := connect(t)
	for kind, spec := range map[string]string{
		"MemberCluster": memberSpec, "Placement": placementSpec, "ClusterPlacement": placementSpec,
		"OverridePolicy": overridesSpec(`{name: r, mergePatch: {}}`), "ClusterOverridePolicy": overridesSpec(`{name: r, mergePatch: {}}`),
		"Bundle": bundleSpec, "ClusterBundle": bundleSpec, "FederatedOperator": operatorSpec,
		"NotificationSink": sinkSpec,
	} {
		t.Run(kind, func(t *testing.T) {
			obj := object(t, kind, "fresh", spec)
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Delete(context.WithoutCancel(t.Context()), obj); err != nil {
					t.Error(err)
				}
			})
			if got, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); got != -1 {
				t.Errorf("status.observedGeneration is %d in %v", got, obj.Object["status"])
			}
			read, err := status.Compute(obj)
			if err != nil || read.Status != status.InProgressStatus {
				t.Errorf("kstatus reads %v, %v", read, err)
			}
		})
	}
}

// A tool that compares a file with the object of the server, such as Argo CD, compares a list as a whole: a default in
// one of its entries would always be a difference.
func TestNoEntryOfAListHasADefault(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs in %s: %v", crdFolder, err)
	}
	for _, file := range files {
		crd := readCRD(t, file)
		for _, path := range defaultsInLists(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], "spec", false) {
			t.Errorf("%s: %s has a default", crd.Spec.Names.Kind, path)
		}
	}
}

// defaultsInLists returns the paths of fields in items of lists that have a default. It skips the field valueFrom,
// because Kubernetes defines the defaults in its type.
func defaultsInLists(s apiextensionsv1.JSONSchemaProps, path string, inList bool) []string {
	var out []string
	if inList && s.Default != nil {
		out = append(out, path)
	}
	for name, p := range s.Properties {
		if name != "valueFrom" {
			out = append(out, defaultsInLists(p, path+"."+name, inList)...)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		out = append(out, defaultsInLists(*s.Items.Schema, path+"[]", true)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		out = append(out, defaultsInLists(*s.AdditionalProperties.Schema, path+"[]", true)...)
	}
	return out
}
