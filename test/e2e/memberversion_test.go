package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var valveKind = schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Valve"}

// TestARestartOfAHubWithANewerVersionCutsNoMemberOff stops the hub and adds a version to a CRD on the hub. The hub
// prefers this version, and members do not serve it. After its start, the hub writes nothing. Members still get
// updates, new objects and deletions at the version that they serve. When a member starts to serve the new version, the
// hub uses it there without a restart.
func TestARestartOfAHubWithANewerVersionCutsNoMemberOff(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	serveValves(t, suite.Hub.Client, "v1")
	for _, m := range []string{shanghai, singapore} {
		serveValves(t, suite.Members[m].Client, "v1")
	}
	placeValves(t, ns)
	changed, deleted := valve(ns, "changed"), valve(ns, "deleted")
	for _, v := range []*unstructured.Unstructured{changed, deleted} {
		must(t, suite.Hub.Create(ctx, v))
		appliedOnBoth(t, v)
	}
	eventually(t, time.Minute, func() error { return settled(ctx) })
	bindings, copies := valveBindings(t, ns), valveCopies(t, ns)

	must(t, suite.hub.Stop())
	serveValves(t, suite.Hub.Client, "v1", "v2")
	eventually(t, time.Minute, func() error { return settled(ctx) })
	since := time.Now()
	before, err := suite.HubWrites(ctx)
	must(t, err)
	startHub(t)
	eventually(t, time.Minute, func() error { return settled(ctx) })
	after, err := suite.HubWrites(ctx)
	must(t, err)
	for resource, n := range after {
		if more := beyondSights(resource, n-before[resource], time.Since(since)); more > 0 && !isApart(resource) {
			t.Errorf("a restart with a newer version on the hub wrote %s %v times there: %v", resource, more, hubWritesOf(t, resource, since))
		}
	}
	unwritten(t, bindings, valveBindings(t, ns))
	unwritten(t, copies, valveCopies(t, ns))

	scaleValve(t, changed, 5)
	late := valve(ns, "late")
	must(t, suite.Hub.Create(ctx, late))
	appliedOnBoth(t, late)
	for _, m := range []string{shanghai, singapore} {
		eventually(t, normal, func() error { return replicasOn(ctx, m, changed, 5) })
	}
	must(t, suite.Hub.Delete(ctx, deleted.DeepCopy()))
	eventually(t, normal, func() error { return noBinding(ctx, deleted) })
	must(t, goneFrom(ctx, shanghai, deleted))
	must(t, goneFrom(ctx, singapore, deleted))

	serveValves(t, suite.Members[singapore].Client, "v1", "v2")
	eventually(t, normal, func() error { return sentAt(ctx, singapore, changed, "v2") })
	must(t, sentAt(ctx, shanghai, changed, "v1"))
	eventually(t, normal, func() error { return rowIs(ctx, changed, singapore, metav1.ConditionTrue, "") })
	for _, v := range []*unstructured.Unstructured{changed, late} {
		must(t, suite.Hub.Delete(ctx, v.DeepCopy()))
		eventually(t, normal, func() error { return noBinding(ctx, v) })
		must(t, goneFrom(ctx, shanghai, v))
		must(t, goneFrom(ctx, singapore, v))
	}
}

// TestANewVersionOfTheHubIsTakenUpWhileTheHubRuns adds a version to a CRD on the hub. One member serves the version,
// another one does not. The first member gets copies at the new version without a restart of the hub. The hub writes
// neither the copy on the other member nor the binding's decision.
func TestANewVersionOfTheHubIsTakenUpWhileTheHubRuns(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	serveValves(t, suite.Hub.Client, "v1")
	serveValves(t, suite.Members[shanghai].Client, "v1")
	serveValves(t, suite.Members[singapore].Client, "v1", "v2")
	placeValves(t, ns)
	v := valve(ns, "renamed")
	must(t, suite.Hub.Create(ctx, v))
	appliedOnBoth(t, v)
	must(t, sentAt(ctx, singapore, v, "v1"))
	eventually(t, time.Minute, func() error { return settled(ctx) })
	copies := valveCopies(t, ns)
	b, err := bindingOf(ctx, v)
	must(t, err)

	serveValves(t, suite.Hub.Client, "v1", "v2")
	eventually(t, normal, func() error { return sentAt(ctx, singapore, v, "v2") })
	eventually(t, time.Minute, func() error { return settled(ctx) })
	must(t, rowIs(ctx, v, singapore, metav1.ConditionTrue, ""))
	must(t, rowIs(ctx, v, shanghai, metav1.ConditionTrue, ""))
	want := "1 cluster does not serve v2, which the objects need; it serves only v1: " + shanghai
	if out, fault, code := runHansectl(t, "kinds", "-n", ns, "--problems", "--kubeconfig", suite.Hub.Kubeconfig); code != 1 || !strings.Contains(out, want) {
		t.Errorf("hansectl kinds ends with %d, want 1 and %q:\n%s%s", code, want, out, fault)
	}
	if now := valveCopies(t, ns); now[shanghai+"/renamed"] != copies[shanghai+"/renamed"] {
		t.Error("the copy on the member without the version was written")
	}
	now, err := bindingOf(ctx, v)
	must(t, err)
	if now.GetGeneration() != b.GetGeneration() {
		t.Errorf("the decision was written: %+v, was %+v", now.BindingSpec(), b.BindingSpec())
	}
	must(t, suite.Hub.Delete(ctx, v.DeepCopy()))
	eventually(t, normal, func() error { return noBinding(ctx, v) })
}

// serveValves makes an API server serve Valves at exactly these versions until the test ends. The last version is the
// storage version.
func serveValves(t *testing.T, c client.Client, versions ...string) {
	t.Helper()
	var served []any
	for i, version := range versions {
		served = append(served, map[string]any{
			"name": version, "served": true, "storage": i == len(versions)-1, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec":   map[string]any{"type": "object", "properties": map[string]any{"replicas": map[string]any{"type": "integer"}}},
				"status": map[string]any{"type": "object", "properties": map[string]any{"replicas": map[string]any{"type": "integer"}}},
			}}},
		})
	}
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": valveKind.Group, "scope": "Namespaced", "versions": served,
		"names": map[string]any{"plural": "valves", "singular": "valve", "kind": "Valve", "listKind": "ValveList"},
	}}}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("valves.test.hanse.dev")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), normal)
		defer cancel()
		must(t, client.IgnoreNotFound(c.Delete(ctx, crd.DeepCopy())))
		must(t, poll(ctx, normal, func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the definition of Valves is still there: %w", err)
			}
			return nil
		}))
	})
	must(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd.DeepCopy()), client.FieldOwner("e2e"), client.ForceOwnership))
	for _, version := range versions { // clients discover a new version after some time
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(valveKind.GroupKind().WithVersion(version))
		eventually(t, normal, func() error { return c.List(t.Context(), list) })
	}
}

func valve(namespace, name string) *unstructured.Unstructured {
	v := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(3)}}}
	v.SetGroupVersionKind(valveKind)
	v.SetNamespace(namespace)
	v.SetName(name)
	return v
}

func placeValves(t *testing.T, namespace string) {
	t.Helper()
	place(t, namespace, "valves", hubv1.ResourceSelector{APIGroup: valveKind.Group, Kind: valveKind.Kind},
		hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{shanghai, singapore}}})
}

func appliedOnBoth(t *testing.T, v *unstructured.Unstructured) {
	t.Helper()
	for _, m := range []string{shanghai, singapore} {
		eventually(t, normal, func() error { return rowIs(t.Context(), v, m, metav1.ConditionTrue, "") })
	}
}

func scaleValve(t *testing.T, v *unstructured.Unstructured, replicas int) {
	t.Helper()
	must(t, suite.Hub.Patch(t.Context(), v.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
}

// sentAt returns nil if the hub last applied the copy at this API version.
func sentAt(ctx context.Context, member string, v *unstructured.Unstructured, version string) error {
	copied, err := on(ctx, member, v)
	if err != nil {
		return err
	}
	for _, f := range copied.GetManagedFields() {
		if f.Manager == hubv1.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply && f.APIVersion == valveKind.Group+"/"+version {
			return nil
		}
	}
	return fmt.Errorf("on %s, %s was not sent at %s: %v", member, v.GetName(), version, copied.GetManagedFields())
}

// valveBindings returns the resourceVersions of the bindings of Valves by name.
func valveBindings(t *testing.T, namespace string) map[string]string {
	t.Helper()
	var list hubv1.ResourceBindingList
	must(t, suite.Hub.List(t.Context(), &list, client.InNamespace(namespace)))
	out := map[string]string{}
	for _, b := range list.Items {
		out[b.Name] = b.ResourceVersion
	}
	return out
}

// valveCopies returns the resourceVersions of the copies of Valves by member and name.
func valveCopies(t *testing.T, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range []string{shanghai, singapore} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(valveKind)
		must(t, suite.Members[m].List(t.Context(), list, client.InNamespace(namespace)))
		for _, v := range list.Items {
			out[m+"/"+v.GetName()] = v.GetResourceVersion()
		}
	}
	return out
}

// unwritten fails the test if a resourceVersion differs between before and after.
func unwritten(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, version := range before {
		if after[name] != version {
			t.Errorf("%s was written: version %s, was %s", name, after[name], version)
		}
	}
}
