package e2e

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestABundleGoesInOrder gives the hub a CRD, a custom resource of this CRD, a ClusterRole and a ConfigMap for one
// member at the same time. These objects are hub objects, not parts of a Bundle. The hub must apply objects first that
// other objects need. The only failed write finds that the namespace is missing, which the hub then creates. The custom
// resource must wait without a failed write until the member serves its CRD.
func TestABundleGoesInOrder(t *testing.T) {
	ctx := t.Context()
	const label = "bundle.test.hanse.dev/part"
	of := func(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
		u.SetNamespace(namespace)
		u.SetName(name)
		u.SetLabels(map[string]string{label: "yes"})
		return u
	}
	ns := namespace(t)
	crd := of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "sprockets.test.hanse.dev", map[string]any{"spec": map[string]any{
		"group": "test.hanse.dev", "scope": "Namespaced",
		"names": map[string]any{"plural": "sprockets", "singular": "sprocket", "kind": "Sprocket", "listKind": "SprocketList"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{
				"type": "object", "properties": map[string]any{"teeth": map[string]any{"type": "integer"}},
			}}},
		}}},
	}})
	role := of("rbac.authorization.k8s.io/v1", "ClusterRole", "", "bundle-"+ns, map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}},
	}})
	config := of("v1", "ConfigMap", ns, "bundle", map[string]any{"data": map[string]any{"a": "b"}})
	sprocket := of("test.hanse.dev/v1", "Sprocket", ns, "bundle", map[string]any{"spec": map[string]any{"teeth": int64(9)}})
	bundle := []*unstructured.Unstructured{crd, role, config, sprocket}

	var selectors []hubv1.ResourceSelector
	for _, o := range bundle {
		gvk := o.GroupVersionKind()
		selectors = append(selectors, hubv1.ResourceSelector{APIGroup: gvk.Group, Kind: gvk.Kind, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}}})
	}
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "bundle-" + ns}, Spec: hubv1.ClusterPlacementSpec{NamespaceSelector: &metav1.LabelSelector{}, PlacementSpec: hubv1.PlacementSpec{
		ResourceSelectors: selectors, Clusters: hubv1.ClusterSelection{Names: []string{shanghai}}, Suspend: hubv1.SuspendPolicy{Dispatching: true},
		HubExecution: hubv1.HubExecutionAllowed, // needed for the ClusterRole
	}}}
	must(t, suite.Hub.Create(ctx, p))
	create := func(o *unstructured.Unstructured) {
		eventually(t, normal, func() error { return client.IgnoreAlreadyExists(suite.Hub.Create(ctx, o.DeepCopy())) })
	}
	for _, o := range bundle[:3] {
		create(o)
		eventually(t, normal, func() error { return rowIs(ctx, o, shanghai, metav1.ConditionFalse, hubv1.ReasonSuspended) })
	}
	create(sprocket) // by now, the hub knows that the cluster does not serve the kind: a decision waits only some seconds for this
	eventually(t, normal, func() error {
		return rejectedFor(ctx, sprocket, shanghai, hubv1.ReasonKindNotServed, "the cluster does not serve Sprocket.test.hanse.dev")
	})
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":{"dispatching":false}}}`))))
	for _, o := range bundle {
		eventually(t, normal, func() error { return rowIs(ctx, o, shanghai, metav1.ConditionTrue, "") })
	}
	writes := writesOf(t, suite.Members[shanghai].AuditLog, "sprockets.test.hanse.dev", role.GetName(), "bundle")
	want := []string{"customresourcedefinitions 201", "clusterroles 201", "configmaps 404", "configmaps 201", "sprockets 201"}
	if !slices.Equal(writes, want) {
		t.Errorf("the writes were %q, want %q", writes, want)
	}
	// The objects are deleted in reverse order. The deletion of a CRD is, for the hub, no deletion of its custom
	// resources.
	for _, o := range slices.Backward(bundle) {
		if o == sprocket || o == role {
			deleteHeld(t, shanghai, o)
			continue
		}
		must(t, suite.Hub.Delete(ctx, o.DeepCopy()))
		eventually(t, normal, func() error { return noBinding(ctx, o) })
	}
	must(t, suite.Hub.Delete(ctx, p))
}

// writesOf returns the hub's patches of objects with these names in an audit log, in order. Each text has the resource
// and the status code of the response.
func writesOf(t *testing.T, path string, names ...string) []string {
	t.Helper()
	var out []string
	for _, e := range auditedWrites(t, path, func(e auditEvent) bool { return e.Verb == "patch" && slices.Contains(names, e.ObjectRef.Name) }) {
		out = append(out, fmt.Sprintf("%s %d", e.ObjectRef.Resource, e.ResponseStatus.Code))
	}
	return out
}
