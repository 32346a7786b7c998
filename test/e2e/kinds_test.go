package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestADeploymentGoesOutFromAHubThatRunsNone(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	d := deployment(ns, "web")
	place(t, ns, "deployments", hubv1.ResourceSelector{APIGroup: "apps", Kind: "Deployment"}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{singapore, shanghai}},
	})
	must(t, suite.Hub.Create(ctx, d))
	for _, m := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return replicasOn(ctx, m, d, 1) })
	}
	// Controllers on the members run the Deployment, and the hub must not report their writes as drift.
	eventually(t, 2*normal, func() error { return bindingCondition(ctx, d, hubv1.ConditionHealthy, metav1.ConditionTrue, "") })
	eventually(t, normal, func() error { return bindingCondition(ctx, d, hubv1.ConditionApplied, metav1.ConditionTrue, "") })
	eventually(t, normal, func() error {
		return bindingCondition(ctx, d, hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten)
	})
	must(t, suite.Hub.Delete(ctx, d.DeepCopy()))
	for _, m := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return goneFrom(ctx, m, d) })
	}
}

func deployment(namespace, name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	d := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(1),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "example.org/web:1"}}},
		},
	}}}
	d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	d.SetNamespace(namespace)
	d.SetName(name)
	return d
}

func TestAConfigMapFollowsItsTemplate(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	cm := configMap(ns, "settings")
	place(t, ns, "configmaps", hubv1.ResourceSelector{Kind: "ConfigMap", Name: "settings"}, hubv1.PlacementSpec{Clusters: everyCluster()})
	must(t, suite.Hub.Create(ctx, cm))
	for _, m := range members {
		eventually(t, normal, func() error { return dataOn(ctx, m, cm, "value") })
	}
	must(t, suite.Hub.Patch(ctx, configMap(ns, "settings"), client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"other"}}`))))
	for _, m := range members {
		eventually(t, normal, func() error { return dataOn(ctx, m, cm, "other") })
	}
	must(t, suite.Hub.Delete(ctx, cm.DeepCopy()))
	for _, m := range members {
		eventually(t, normal, func() error { return goneFrom(ctx, m, cm) })
	}
	eventually(t, normal, func() error { return noBinding(ctx, cm) })
}

// dataOn returns nil if the ConfigMap's copy has this value.
func dataOn(ctx context.Context, member string, cm *unstructured.Unstructured, want string) error {
	copied, err := on(ctx, member, cm)
	if err != nil {
		return fmt.Errorf("on %s: %w", member, err)
	}
	if got, _, _ := unstructured.NestedString(copied.Object, "data", "key"); got != want {
		return fmt.Errorf("on %s: key is %q, want %q", member, got, want)
	}
	return nil
}

func TestAClusterPlacementSelectsClusterScopedObjects(t *testing.T) {
	ctx := t.Context()
	serveGadgets(t)
	g := gadget("wheel")
	placeGadgets(t, g.GetName(), singapore, shanghai)
	must(t, suite.Hub.Create(ctx, g))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), g) })
	for _, m := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return replicasOn(ctx, m, g, 3) })
	}
	must(t, goneFrom(ctx, frankfurt, g))
	eventually(t, normal, func() error {
		return bindingCondition(ctx, g, hubv1.ConditionStatusWritten, metav1.ConditionFalse, hubv1.ReasonNoStatusSubresource)
	})
	must(t, suite.Hub.Delete(ctx, g.DeepCopy()))
	for _, m := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return goneFrom(ctx, m, g) })
	}
	eventually(t, normal, func() error { return noBinding(ctx, g) })
}

func TestAClusterPlacementWithANamespaceSelectorSelectsNamespacedObjects(t *testing.T) {
	ctx := t.Context()
	in, out := namespace(t), namespace(t)
	must(t, suite.Hub.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"team":%q}}}`, in))))
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: in}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}}
	p.Spec.Clusters = hubv1.ClusterSelection{Names: []string{shanghai}}
	p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": in}}
	must(t, suite.Hub.Create(ctx, p))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), p) })
	selected, other := widget(in, "selected"), widget(out, "other")
	must(t, suite.Hub.Create(ctx, other))
	must(t, suite.Hub.Create(ctx, selected))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, selected, 3) })
	must(t, noBinding(ctx, other))
	// A new label on the namespace also selects objects that already exist in it.
	must(t, suite.Hub.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: out}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"team":%q}}}`, in))))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, other, 3) })
}

func TestADefinitionIsRemovedFromMembersOnlyWhenAsked(t *testing.T) {
	ctx := t.Context()
	crd := trinketCRD()
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "e2e-trinkets"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "apiextensions.k8s.io", Kind: crd.GetKind(), Name: crd.GetName()}}
	p.Spec.Clusters = hubv1.ClusterSelection{Names: []string{singapore, shanghai}}
	p.Spec.Deletion.WhenDeleted = hubv1.RemovalDelete // whenUnselected keeps its default
	must(t, suite.Hub.Create(ctx, p))
	must(t, suite.Hub.Create(ctx, crd))
	t.Cleanup(func() {
		clean := context.WithoutCancel(t.Context())
		_ = suite.Hub.Delete(clean, p)
		_ = suite.Hub.Delete(clean, trinketCRD())
		_ = suite.Members[singapore].Delete(clean, trinketCRD())
	})
	for _, m := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return rowIs(ctx, crd, m, metav1.ConditionTrue, "") })
	}
	exclude := fmt.Appendf(nil, `{"spec":{"clusters":{"excludedNames":[%q]}}}`, singapore)
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, exclude)))
	eventually(t, normal, func() error { return noRow(ctx, crd, singapore) })
	must(t, suite.Hub.Delete(ctx, trinketCRD()))
	eventually(t, normal, func() error { return goneFrom(ctx, shanghai, crd) })
	eventually(t, normal, func() error { return noBinding(ctx, crd) })
	left, err := on(ctx, singapore, crd)
	must(t, err)
	must(t, unmarked(left))
}

// TestADefinitionThatATaintOrphanedComesBackWithIt taints a member, so that the hub leaves the copy of a CRD there.
// When the taint is removed, the hub must manage this copy again. A custom resource that a user of the member created
// must still exist.
func TestADefinitionThatATaintOrphanedComesBackWithIt(t *testing.T) {
	ctx := t.Context()
	crd := trinketCRD()
	crd.SetName("keepsakes.test.hanse.dev")
	names := map[string]any{"kind": "Keepsake", "listKind": "KeepsakeList", "plural": "keepsakes", "singular": "keepsake"}
	must(t, unstructured.SetNestedMap(crd.Object, names, "spec", "names"))
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "e2e-keepsakes"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "apiextensions.k8s.io", Kind: crd.GetKind(), Name: crd.GetName()}}
	p.Spec.Clusters = hubv1.ClusterSelection{Names: []string{shanghai}}
	must(t, suite.Hub.Create(ctx, p))
	must(t, suite.Hub.Create(ctx, crd.DeepCopy()))
	t.Cleanup(func() {
		clean := context.WithoutCancel(t.Context())
		patchMember(t, shanghai, `{"taints":null}`)
		_ = suite.Hub.Delete(clean, p)
		_ = suite.Hub.Delete(clean, crd.DeepCopy())
		_ = suite.Members[shanghai].Delete(clean, crd.DeepCopy())
	})
	eventually(t, normal, func() error { return rowIs(ctx, crd, shanghai, metav1.ConditionTrue, "") })
	before, err := on(ctx, shanghai, crd)
	must(t, err)
	theirs := &unstructured.Unstructured{Object: map[string]any{}}
	theirs.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Keepsake"})
	theirs.SetNamespace("default")
	theirs.SetName("theirs")
	// Clients discover the kind of a new CRD after some time.
	eventually(t, normal, func() error { return suite.Members[shanghai].Create(ctx, theirs) })

	patchMember(t, shanghai, `{"taints":[{"key":"maintenance","effect":"NoExecute"}]}`)
	eventually(t, normal, func() error { return noRow(ctx, crd, shanghai) })
	left, err := on(ctx, shanghai, crd)
	must(t, err)
	must(t, unmarked(left))
	patchMember(t, shanghai, `{"taints":null}`)
	eventually(t, normal, func() error { return rowIs(ctx, crd, shanghai, metav1.ConditionTrue, "") })
	now, err := on(ctx, shanghai, crd)
	must(t, err)
	if now.GetUID() != before.GetUID() || now.GetLabels()[hubv1.HubLabel] == "" {
		t.Errorf("it was made again, or is not the hub's: labels %v", now.GetLabels())
	}
	_, err = on(ctx, shanghai, theirs)
	must(t, err)
}

// trinketCRD returns the CRD of a kind that no other test uses.
func trinketCRD() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "test.hanse.dev", "scope": "Namespaced",
		"names": map[string]any{"kind": "Trinket", "listKind": "TrinketList", "plural": "trinkets", "singular": "trinket"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		}},
	}}}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("trinkets.test.hanse.dev")
	return crd
}

func TestAKindThatTheHubWouldActOnIsRefused(t *testing.T) {
	ctx := t.Context()
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "e2e-roles"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "view"}}
	p.Spec.Clusters = everyCluster()
	must(t, suite.Hub.Create(ctx, p))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), p) })
	eventually(t, normal, func() error {
		var now hubv1.ClusterPlacement
		if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			return err
		}
		for _, c := range now.Status.Conditions {
			if c.Type == hubv1.ConditionAccepted && c.Reason == hubv1.ReasonHubWouldRun && strings.Contains(c.Message, "ClusterRole") && strings.Contains(c.Message, "hubExecution") {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", now.Status.Conditions)
	})
	view := &unstructured.Unstructured{}
	view.SetGroupVersionKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"})
	view.SetName("view")
	must(t, noBinding(ctx, view))
}

var gadgetKind = schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Gadget"}

// gadget returns a cluster-scoped Gadget with 3 replicas and a label with its name.
func gadget(name string) *unstructured.Unstructured {
	g := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(3)}}}
	g.SetGroupVersionKind(gadgetKind)
	g.SetName(name)
	g.SetLabels(map[string]string{"set": name})
	return g
}

// serveGadgets applies the Gadget CRD to the hub and all members.
func serveGadgets(t *testing.T) {
	t.Helper()
	must(t, applyCRD(t.Context(), suite.Hub.Client, gadgetCRD))
	clients := []client.Client{suite.Hub.Client}
	for _, m := range members {
		must(t, applyCRD(t.Context(), suite.Members[m].Client, gadgetCRD))
		clients = append(clients, suite.Members[m].Client)
	}
	// Clients discover the kind of a new CRD after some time.
	for _, c := range clients {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gadgetKind)
		eventually(t, normal, func() error { return c.List(t.Context(), list) })
	}
}

const gadgetCRD = "testdata/gadget-crd.yaml"

// placeGadgets creates a ClusterPlacement for the Gadgets with the label set=<set>, until the test ends.
func placeGadgets(t *testing.T, set string, clusters ...string) {
	t.Helper()
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-gadgets-"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{
		APIGroup: gadgetKind.Group, Kind: gadgetKind.Kind, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": set}},
	}}
	p.Spec.Clusters = hubv1.ClusterSelection{Names: clusters}
	must(t, suite.Hub.Create(t.Context(), p))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), p) })
}
