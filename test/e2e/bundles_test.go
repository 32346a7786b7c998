package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestABundleIsOnMembersAndNotOnTheHub stores a bundle with the rights of its ServiceAccount, then places, overrides,
// changes and deletes its objects. In between, it restarts the hub.
func TestABundleIsOnMembersAndNotOnTheHub(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	web, settings := deployment(ns, "web"), configMap(ns, "settings")
	b := bundle(t, ns, "web", web, settings)
	eventually(t, normal, func() error {
		return bundleIs(ctx, b, hubv1.ConditionStored, metav1.ConditionFalse, hubv1.ReasonAccountMayNot,
			"ServiceAccount "+ns+"/default of the hub needs the right to create, delete, get, update configmaps in namespace "+ns+
				"; create, delete, get, update deployments.apps in namespace "+ns+"; the stored objects stay")
	})
	serviceAccount(t, ns, "default", ns)
	again(t, b)
	eventually(t, normal, func() error {
		return bundleIs(ctx, b, hubv1.ConditionStored, metav1.ConditionTrue, hubv1.ReasonStored, "")
	})
	eventually(t, normal, func() error {
		return bundleIs(ctx, b, hubv1.ConditionApplied, metav1.ConditionUnknown, hubv1.ReasonNothingPlaced, "no placement selects this bundle: ")
	})

	overrideKind(t, ns, "regional", "", "ConfigMap", hubv1.OverrideRule{Name: "shanghai", Clusters: new(inRegion("cn-shanghai")), MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"data":{"key":"shanghai"}}`)}})
	place(t, ns, "web", hubv1.ResourceSelector{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.BundleKind, Name: "web"},
		hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{singapore, shanghai}}})
	for m, value := range map[string]string{singapore: "value", shanghai: "shanghai"} {
		eventually(t, normal, func() error { return valueOn(ctx, m, settings, value) })
		eventually(t, normal, func() error { return replicasOn(ctx, m, web, 1) })
	}
	for _, condition := range []string{hubv1.ConditionApplied, hubv1.ConditionHealthy} {
		eventually(t, 2*normal, func() error { return bundleIs(ctx, b, condition, metav1.ConditionTrue, "", "") })
	}
	for _, o := range []*unstructured.Unstructured{web, settings} {
		if err := gone(ctx, o.DeepCopy()); err != nil {
			t.Error(err)
		}
		if err := goneFrom(ctx, frankfurt, o); err != nil {
			t.Error(err)
		}
	}
	if b.Status.Objects != 2 || b.Status.Placed != 2 {
		t.Errorf("the status counts %d objects, %d placed, want 2 and 2", b.Status.Objects, b.Status.Placed)
	}

	t.Run("hansectl shows an object of the bundle, although the hub has no such object", func(t *testing.T) {
		v := newViewer(t, ns, "reader",
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"bundles"}, Verbs: []string{"get", "list"}})
		v.says(0, []string{"Deployment " + ns + "/web   in Bundle " + ns + "/web", "APPLIED 2/2", shanghai, singapore}, "status", "deployment", "web", "-n", ns)
		v.says(0, []string{"Deployment.apps " + ns + "/web (Bundle " + ns + "/web)   Placement/web   2/2"}, "status", "-n", ns)
		v.says(0, []string{"Bundle " + ns + "/web   generation 1   objects 2   placed 2", "Stored=True", "Deployment.apps " + ns + "/web   Placement/web   2/2"}, "status", "bundle", "web", "-n", ns)
		v.says(0, []string{"Bundle " + ns + "/web\n", "Deployment web\n", shanghai, "ConfigMap settings\n"}, "tree", "bundle", "web", "-n", ns)
		v.says(0, []string{"Placement " + ns + "/web\n", "Deployment web (Bundle " + ns + "/web)\n"}, "tree", "web", "-n", ns)
		v.says(0, []string{"# " + singapore + ": as on the hub\n", "kind: Deployment", "# " + shanghai}, "render", "deployment/web", "-n", ns)
		v.says(0, []string{`rule "shanghai"`, "key: shanghai"}, "render", "configmap/settings", "-n", ns, "--cluster", shanghai)
		v.says(0, nil, "diff", "deployment", "web", "-n", ns)
		v.says(0, []string{"Deployment " + ns + "/web in Bundle " + ns + "/web: 2 clusters selected by Placement " + ns + "/web", "hansectl computes the same decision as the hub"}, "explain", "deployment", "web", "-n", ns)
		_, fault, code := runHansectl(t, "withdraw", "deployment", "web", "-n", ns, "--yes", "--kubeconfig", v.kubeconfig)
		if want := "is an object of Bundle " + ns + "/web, and the hub itself has no such object: remove the object from"; code != 1 || !strings.Contains(fault, want) {
			t.Errorf("hansectl withdraw ends with %d, want 1 and %q:\n%s", code, want, fault)
		}
	})
	t.Run("a hub that was killed makes one write for a change of one object", func(t *testing.T) {
		must(t, suite.hub.Kill())
		restarted := time.Now()
		startHub(t)
		must(t, unstructured.SetNestedField(web.Object, int64(2), "spec", "replicas"))
		setManifests(t, b, web, settings)
		for _, m := range []string{singapore, shanghai} {
			eventually(t, normal, func() error { return replicasOn(ctx, m, web, 2) })
			eventually(t, normal, func() error { return rowIs(ctx, web, m, metav1.ConditionTrue, "") })
			for object, want := range map[string]int{"web": 1, "settings": 0} {
				if got := writeTimes(t, suite.Members[m].AuditLog, object, restarted); len(got) != want {
					t.Errorf("%s on %s was written at %v, want %d writes", object, m, got, want)
				}
			}
		}
	})
	t.Run("a bundle that cannot be read keeps its copies", func(t *testing.T) {
		wrong := configMap("elsewhere", "settings")
		setManifests(t, b, wrong)
		eventually(t, normal, func() error {
			return bundleIs(ctx, b, hubv1.ConditionStored, metav1.ConditionFalse, hubv1.ReasonManifestInvalid, "")
		})
		for _, o := range []*unstructured.Unstructured{web, settings} {
			if _, err := on(ctx, singapore, o); err != nil {
				t.Errorf("%s on %s: %v", o.GetName(), singapore, err)
			}
		}
	})
	t.Run("a stored Secret that is deleted by hand comes back, and no copy goes", func(t *testing.T) {
		setManifests(t, b, web, settings)
		eventually(t, normal, func() error {
			return bundleIs(ctx, b, hubv1.ConditionStored, metav1.ConditionTrue, hubv1.ReasonStored, "")
		})
		before := time.Now()
		must(t, suite.Hub.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(hubv1.SystemNamespace), client.MatchingLabels{hubv1.ManifestLabel: "true"}))
		eventually(t, normal, func() error { return storedSecrets(ctx, 2) })
		eventually(t, normal, func() error { return rowIs(ctx, settings, singapore, metav1.ConditionTrue, "") })
		if got := writeTimes(t, suite.Members[singapore].AuditLog, "settings", before); len(got) > 0 {
			t.Errorf("the copy was written at %v", got)
		}
	})
	t.Run("an object that leaves the bundle leaves the members, and the others stay", func(t *testing.T) {
		setManifests(t, b, web)
		for _, m := range []string{singapore, shanghai} {
			eventually(t, normal, func() error { return goneFrom(ctx, m, settings) })
			must(t, replicasOn(ctx, m, web, 2))
		}
		eventually(t, normal, func() error { return storedSecrets(ctx, 1) })
	})
	must(t, suite.Hub.Delete(ctx, b.DeepCopy()))
	for _, m := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return goneFrom(ctx, m, web) })
	}
	eventually(t, normal, func() error { return storedSecrets(ctx, 0) })
	eventually(t, normal, func() error {
		if _, err := bindingOf(ctx, web); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the binding is still there: %w", err)
		}
		return nil
	})
}

// TestAClusterBundleBringsAKindAndItsObjects sends a CRD that the hub does not have, and a custom resource of this CRD.
// An OverridePolicy in the namespace of the custom resource has no effect on it. The CRD is deleted on a cluster after
// its last custom resource.
func TestAClusterBundleBringsAKindAndItsObjects(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	definition := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: valves.test.hanse.dev}
spec:
  group: test.hanse.dev
  scope: Namespaced
  names: {plural: valves, singular: valve, kind: Valve, listKind: ValveList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}}}}}
`), &definition.Object))
	main := valve(ns, "main")
	serviceAccount(t, hubv1.SystemNamespace, "operators", "")
	b := &hubv1.ClusterBundle{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{"team": ns}}, Spec: hubv1.BundleSpec{
		ServiceAccountName: "operators", Manifests: manifests(t, main, definition),
	}}
	overrideKind(t, ns, "tenant", valveKind.Group, valveKind.Kind, hubv1.OverrideRule{Name: "more", MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"replicas":9}}`)}})
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: hubv1.ClusterPlacementSpec{PlacementSpec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{
			APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.ClusterBundleKind, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": ns}},
		}},
		Clusters: hubv1.ClusterSelection{Names: []string{singapore, frankfurt}}, AllowEmpty: true, RemovalLimit: manyRemovals,
		Deletion: hubv1.DeletionPolicy{WhenDeleted: hubv1.RemovalDelete},
	}}}
	for _, o := range []client.Object{p, b} {
		must(t, suite.Hub.Create(ctx, o))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), o) })
	}
	for _, m := range []string{singapore, frankfurt} {
		t.Cleanup(func() { removeDefinition(t, suite.Members[m], definition) })
		eventually(t, 2*normal, func() error { return replicasOn(ctx, m, main, 3) })
	}
	eventually(t, normal, func() error { return bundleIs(ctx, b, hubv1.ConditionApplied, metav1.ConditionTrue, "", "") })
	if _, err := suite.Hub.RESTMapper().RESTMapping(valveKind.GroupKind()); !meta.IsNoMatchError(err) {
		t.Errorf("the hub serves the kind: %v", err)
	}

	t.Run("another bundle cannot take an object", func(t *testing.T) {
		serviceAccount(t, ns, "default", ns)
		other := bundle(t, ns, "other", main)
		eventually(t, normal, func() error {
			return bundleIs(ctx, other, hubv1.ConditionStored, metav1.ConditionFalse, hubv1.ReasonIdentityTaken,
				"Valve.test.hanse.dev "+ns+"/main: ClusterBundle "+ns+" has this object: remove it from one of the two; the stored objects stay")
		})
	})
	local := valve(ns, "local") // a user of the member created this object
	must(t, suite.Members[singapore].Create(ctx, local))
	must(t, suite.Hub.Delete(ctx, b.DeepCopy()))
	for _, m := range []string{singapore, frankfurt} {
		eventually(t, normal, func() error { return goneFrom(ctx, m, main) })
	}
	eventually(t, normal, func() error { return goneFrom(ctx, frankfurt, definition) })
	eventually(t, normal, func() error {
		return rowIs(ctx, definition, singapore, metav1.ConditionFalse, hubv1.ReasonDefinitionKept)
	})
	eventually(t, normal, func() error { // in the first attempt the copy may still exist
		return rowSays(ctx, definition, singapore, "there are objects of Valve.test.hanse.dev (1, such as "+ns+"/local): delete them")
	})
	must(t, suite.Members[singapore].Get(ctx, client.ObjectKeyFromObject(local), local))
	must(t, suite.Members[singapore].Delete(ctx, local))
	eventually(t, normal, func() error { return goneFrom(ctx, singapore, definition) })
}

// TestTheManifestsOfABundleMayBeInAConfigMap also removes most manifests from the ConfigMap. The hub holds the removal
// of their copies, also after a restart, until the manifests come back or a user confirms the removal.
func TestTheManifestsOfABundleMayBeInAConfigMap(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	const all, left = 10, 2
	serviceAccount(t, ns, "default", ns)
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: hubv1.BundleSpec{ConfigMaps: []hubv1.ConfigMapSource{{Name: "manifests"}}}}
	must(t, suite.Hub.Create(ctx, b))
	eventually(t, normal, func() error {
		return bundleIs(ctx, b, hubv1.ConditionStored, metav1.ConditionFalse, hubv1.ReasonConfigMapMissing, "ConfigMap "+ns+"/manifests does not exist; the stored objects stay")
	})
	var widgets []*unstructured.Unstructured
	for i := range all {
		widgets = append(widgets, widget(ns, fmt.Sprintf("w-%d", i)))
	}
	source := configMap(ns, "manifests")
	has := func(objects ...*unstructured.Unstructured) {
		t.Helper()
		data := map[string]any{}
		for _, m := range objects {
			raw, err := m.MarshalJSON()
			must(t, err)
			data[m.GetName()+".json"] = string(raw)
		}
		must(t, unstructured.SetNestedMap(source.Object, data, "data"))
		must(t, suite.Hub.Update(ctx, source))
		again(t, b)
	}
	must(t, suite.Hub.Create(ctx, source))
	has(widgets...)
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bundles"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.BundleKind}},
		Clusters:          everyCluster(),
		RemovalLimit:      &hubv1.RemovalLimit{Copies: ptr.To[int32](5), Percent: ptr.To[int32](20)}, // the default, see guard_test.go
	}}
	must(t, suite.Hub.Create(ctx, p))
	for _, w := range widgets {
		for _, m := range members {
			eventually(t, normal, func() error { return replicasOn(ctx, m, w, 3) })
		}
	}
	before := memberUIDs(ctx, t, ns)

	has(widgets[:left]...)
	var held *hubv1.RemovalHeld
	eventually(t, normal, func() (err error) { held, err = heldOfBundle(ctx, b, (all-left)*len(members)); return err })
	if len(held.Causes) != 1 || !strings.HasPrefix(held.Causes[0], hubv1.ReasonObjectDeleted) {
		t.Errorf("held is %+v", held)
	}
	for _, w := range widgets[left:] {
		eventually(t, normal, func() error { return targetsAre(ctx, w, true) })
	}
	must(t, suite.hub.Kill())
	startHub(t)
	drifted, err := on(ctx, singapore, widgets[left])
	must(t, err)
	must(t, unstructured.SetNestedField(drifted.Object, int64(7), "spec", "replicas"))
	must(t, suite.Members[singapore].Update(ctx, drifted))
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, widgets[left], 3) }) // a held copy is still repaired
	restarted, err := heldOfBundle(ctx, b, int(held.Copies))
	must(t, err)
	if restarted.ID != held.ID || !restarted.Since.Equal(&held.Since) {
		t.Errorf("after a restart of the hub %+v is held, before it %+v", restarted, held)
	}
	sameCopies(t, before, memberUIDs(ctx, t, ns))

	has(widgets...)
	eventually(t, normal, func() error {
		return bundleIs(ctx, b, hubv1.ConditionRemovalHeld, metav1.ConditionFalse, hubv1.ReasonRemovalCancelled, "")
	})
	for _, w := range widgets {
		eventually(t, normal, func() error { return targetsAre(ctx, w, false) })
	}
	sameCopies(t, before, memberUIDs(ctx, t, ns))

	has(widgets[:left]...)
	first := held.ID
	eventually(t, normal, func() (err error) {
		if held, err = heldOfBundle(ctx, b, (all-left)*len(members)); err == nil && held.ID == first {
			err = fmt.Errorf("the second removal has the id %s of the first", first)
		}
		return err
	})
	out, err := suite.Hansectl(ctx, "confirm", "bundle", b.Name, "-n", ns, "--yes")
	must(t, err)
	if !strings.Contains(out, held.ID+" confirmed") {
		t.Errorf("hansectl confirm says\n%s", out)
	}
	for _, w := range widgets[left:] {
		for _, m := range members {
			eventually(t, normal, func() error { return goneFrom(ctx, m, w) })
		}
	}
	eventually(t, normal, func() error {
		return bundleIs(ctx, b, hubv1.ConditionRemovalHeld, metav1.ConditionFalse, hubv1.ReasonRemovalConfirmed, "")
	})

	must(t, suite.Hub.Delete(ctx, source))
	again(t, b)
	eventually(t, normal, func() error {
		return bundleIs(ctx, b, hubv1.ConditionStored, metav1.ConditionFalse, hubv1.ReasonConfigMapMissing, "")
	})
	must(t, replicasOn(ctx, singapore, widgets[0], 3))
	must(t, suite.Hub.Delete(ctx, b.DeepCopy()))
	for _, m := range members {
		eventually(t, normal, func() error { return goneFrom(ctx, m, widgets[0]) })
	}
}

// heldOfBundle returns the held removals in the bundle's status, once they contain this number of copies on all
// members.
func heldOfBundle(ctx context.Context, b *hubv1.Bundle, copies int) (*hubv1.RemovalHeld, error) {
	if err := bundleIs(ctx, b, hubv1.ConditionRemovalHeld, metav1.ConditionTrue, hubv1.ReasonTooManyRemovals, ""); err != nil {
		return nil, err
	}
	held := b.Status.RemovalHeld
	if held == nil || int(held.Copies) != copies || !slices.Equal(held.Clusters, members) {
		return nil, fmt.Errorf("removalHeld is %+v", held)
	}
	return held, nil
}

func removeDefinition(t *testing.T, c client.Client, definition *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	must(t, client.IgnoreNotFound(c.Delete(ctx, definition.DeepCopy())))
	must(t, poll(ctx, normal, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition.DeepCopy()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is still there: %w", definition.GetName(), err)
		}
		return nil
	}))
}

// bundle returns a Bundle of these objects, with the ServiceAccount default.
func bundle(t *testing.T, ns, name string, objects ...*unstructured.Unstructured) *hubv1.Bundle {
	t.Helper()
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: hubv1.BundleSpec{Manifests: manifests(t, objects...)}}
	must(t, suite.Hub.Create(t.Context(), b))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), b.DeepCopy()) })
	return b
}

func overrideKind(t *testing.T, ns, name, group, kind string, rule hubv1.OverrideRule) {
	t.Helper()
	p := overrideOf(ns, name, rule)
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: group, Kind: kind}}
	must(t, suite.Hub.Create(t.Context(), p))
}

func manifests(t *testing.T, objects ...*unstructured.Unstructured) []runtime.RawExtension {
	t.Helper()
	var out []runtime.RawExtension
	for _, o := range objects {
		raw, err := o.MarshalJSON()
		must(t, err)
		out = append(out, runtime.RawExtension{Raw: raw})
	}
	return out
}

func setManifests(t *testing.T, b *hubv1.Bundle, objects ...*unstructured.Unstructured) {
	t.Helper()
	before := b.DeepCopy()
	b.Spec.Manifests = manifests(t, objects...)
	must(t, suite.Hub.Patch(t.Context(), b, client.MergeFrom(before)))
}

// again changes a label of a bundle, so that the hub reconciles the bundle at once.
func again(t *testing.T, b client.Object) {
	t.Helper()
	must(t, suite.Hub.Patch(t.Context(), b, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"test.hanse.dev/look":"%d"}}}`, time.Now().UnixNano()))))
}

// serviceAccount creates a ServiceAccount with all rights in the namespace in, or in all namespaces if in is empty.
func serviceAccount(t *testing.T, ns, name, in string) {
	t.Helper()
	ctx := t.Context()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	must(t, client.IgnoreAlreadyExists(suite.Hub.Create(ctx, sa)))
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + name}, Subjects: subjects, RoleRef: role}
	if in != "" {
		binding = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, Subjects: subjects, RoleRef: role}
	}
	must(t, suite.Hub.Create(ctx, binding))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), binding) })
}

// bundleIs returns nil if the bundle has the condition with this reason, and its message starts with this text.
func bundleIs(ctx context.Context, b hubv1.BundleObject, conditionType string, status metav1.ConditionStatus, reason, message string) error {
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
		return err
	}
	c := meta.FindStatusCondition(b.BundleStatus().Conditions, conditionType)
	if c == nil || c.Status != status || (reason != "" && c.Reason != reason) || !strings.HasPrefix(c.Message, message) || c.ObservedGeneration != b.GetGeneration() {
		return fmt.Errorf("condition %s of the bundle %s at generation %d is %+v, want %s %s %q", conditionType, b.GetName(), b.GetGeneration(), c, status, reason, message)
	}
	return nil
}

// storedSecrets returns nil if the hub has this number of Secrets with the objects of bundles.
func storedSecrets(ctx context.Context, want int) error {
	var list corev1.SecretList
	if err := suite.Hub.List(ctx, &list, client.InNamespace(hubv1.SystemNamespace), client.MatchingLabels{hubv1.ManifestLabel: "true"}); err != nil {
		return err
	}
	if len(list.Items) != want {
		return fmt.Errorf("the hub stores %d objects of bundles, want %d", len(list.Items), want)
	}
	return nil
}

// valueOn returns nil if data.key of the ConfigMap's copy on the member equals want.
func valueOn(ctx context.Context, member string, obj *unstructured.Unstructured, want string) error {
	copied, err := on(ctx, member, obj)
	if err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedString(copied.Object, "data", "key"); got != want {
		return fmt.Errorf("on %s: data.key of %s is %q, want %q", member, obj.GetName(), got, want)
	}
	return nil
}
