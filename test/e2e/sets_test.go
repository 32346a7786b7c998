package e2e

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// versioned returns a ConfigMap with a version.
func versioned(ns, name, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": ns, "name": name}, "data": map[string]any{"version": version},
	}}
}

// versionOn returns nil if a member has a ConfigMap in this version.
func versionOn(ctx context.Context, member string, m *unstructured.Unstructured) error {
	copied, err := on(ctx, member, m)
	if err != nil {
		return err
	}
	want, _, _ := unstructured.NestedString(m.Object, "data", "version")
	if is, _, _ := unstructured.NestedString(copied.Object, "data", "version"); is != want {
		return fmt.Errorf("%s has version %q of ConfigMap %s, want %q", member, is, m.GetName(), want)
	}
	return nil
}

// setIs returns nil if the rollout of a bundle as a whole has this phase and wave.
func setIs(ctx context.Context, b hubv1.BundleObject, phase hubv1.RolloutPhase, wave string) error {
	var s hubv1.SetRollout
	if err := suite.Hub.Get(ctx, hubv1.ReferenceTo(b).SetRolloutKey(hubv1.SystemNamespace), &s); err != nil {
		return err
	}
	if r := s.Spec.Rollout; r == nil || r.Phase != phase || r.Wave != wave {
		return fmt.Errorf("the rollout of %s is %+v, want phase %s and wave %q", b.GetName(), r, phase, wave)
	}
	return nil
}

// TestAnUpgradeOfABundleMovesAsOneSet upgrades a bundle wave by wave. The new version changes one object, adds two and
// removes one. A cluster of the second wave refuses an added object. The whole bundle then returns to the version
// before, also on the first wave, and the audit log of the last cluster has no write of the new version.
func TestAnUpgradeOfABundleMovesAsOneSet(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	serviceAccount(t, hubv1.SystemNamespace, ns, "")
	settings, old, upgraded, added := versioned(ns, "settings", "1"), versioned(ns, "old", "1"), versioned(ns, "settings", "2"), versioned(ns, "added", "2")
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": ns},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}}},
	}}
	b := &hubv1.ClusterBundle{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: hubv1.BundleSpec{ServiceAccountName: ns, Manifests: manifests(t, settings, old)}}
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: hubv1.ClusterPlacementSpec{PlacementSpec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.ClusterBundleKind, Name: ns}},
		Clusters:          hubv1.ClusterSelection{Names: []string{frankfurt, singapore, shanghai}}, AllowEmpty: true, RemovalLimit: manyRemovals,
		Deletion: hubv1.DeletionPolicy{WhenDeleted: hubv1.RemovalDelete},
		Rollout: &hubv1.RolloutPolicy{SettleSeconds: new(int32), OnFailure: hubv1.FailureRollback, Waves: []hubv1.RolloutWave{
			{Name: "europe", Clusters: &hubv1.RuleClusters{Names: []string{frankfurt}}},
			{Name: "singapore", Clusters: &hubv1.RuleClusters{Names: []string{singapore}}},
			{Name: "rest"},
		}},
	}}}
	for _, o := range []client.Object{p, b} {
		must(t, suite.Hub.Create(ctx, o))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), o) })
	}
	here := []string{frankfurt, singapore, shanghai}
	hasFirst := func(m string) {
		t.Helper()
		for _, o := range []*unstructured.Unstructured{settings, old} {
			eventually(t, 2*normal, func() error { return versionOn(ctx, m, o) })
		}
		for _, o := range []*unstructured.Unstructured{added, role} {
			eventually(t, normal, func() error { return goneFrom(ctx, m, o) })
		}
	}
	for _, m := range here {
		hasFirst(m)
	}
	eventually(t, normal, func() error { return setIs(ctx, b, hubv1.RolloutComplete, "") })

	refused := &hubv1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: hubv1.ClusterOverridePolicySpec{OverridePolicySpec: hubv1.OverridePolicySpec{
		ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: added.GetName()}},
		Rules: []hubv1.OverrideRule{{
			Name: "singapore", Clusters: &hubv1.RuleClusters{Names: []string{singapore}}, MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"data":{"not/a/key":"x"}}`)},
		}},
	}}}
	refused.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}}
	must(t, suite.Hub.Create(ctx, refused))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), refused) })
	eventually(t, normal, func() error {
		if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		b.Spec.Manifests = manifests(t, upgraded, added, role)
		return suite.Hub.Update(ctx, b)
	})
	eventually(t, 2*normal, func() error { return versionOn(ctx, frankfurt, added) })
	eventually(t, 2*normal, func() error { return setIs(ctx, b, hubv1.RolloutRolledBack, "") })
	for _, m := range here {
		hasFirst(m)
	}
	writes := auditedWrites(t, suite.Members[shanghai].AuditLog, func(e auditEvent) bool {
		return e.ObjectRef.Name == ns || e.ObjectRef.Namespace == ns && (e.ObjectRef.Name == "added" || e.Verb == "delete")
	})
	if len(writes) > 0 {
		t.Errorf("%s got %d writes of the version that failed before it: %+v", shanghai, len(writes), writes[0].ObjectRef)
	}
}
