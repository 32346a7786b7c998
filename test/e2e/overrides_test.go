package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheMostSpecificOverrideWinsAndAnAdminHasTheLastWord(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "ranked")
	placeWidgets(t, ns)
	// The policies are created in an order that differs from their precedence.
	override(t, ns, "by-name", replicasRule("named", 6, hubv1.RuleClusters{Names: []string{frankfurt}}))
	override(t, ns, "everywhere", replicasRule("all", 4, hubv1.RuleClusters{}))
	override(t, ns, "by-region",
		replicasRule("shanghai", 5, inRegion("cn-shanghai")), replicasRule("frankfurt", 8, inRegion("eu-central-1")))
	must(t, suite.Hub.Create(ctx, w))
	for member, want := range map[string]int64{singapore: 4, shanghai: 5, frankfurt: 6} {
		eventually(t, normal, func() error { return replicasOn(ctx, member, w, want) })
	}

	admin := &hubv1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	admin.Spec.Tier = hubv1.TierAdmin
	admin.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}}
	admin.Spec.ResourceSelectors = widgets()
	admin.Spec.Rules = []hubv1.OverrideRule{replicasRule("quota", 2, inRegion("eu-central-1"))}
	must(t, suite.Hub.Create(ctx, admin))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), admin) })
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 2) })
	must(t, replicasOn(ctx, shanghai, w, 5))
	eventually(t, normal, func() error {
		var now hubv1.ClusterOverridePolicy
		if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(admin), &now); err != nil {
			return err
		}
		if len(now.Status.Rules) != 1 || now.Status.Rules[0].Rank != "Admin/0/region/1" || now.Status.Rules[0].Clusters != 1 || now.Status.Rules[0].Objects != 1 {
			return fmt.Errorf("rules are %+v", now.Status.Rules)
		}
		return nil
	})
	must(t, suite.Hub.Delete(ctx, admin))
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 6) })
}

func TestPoliciesOfEqualRankThatDisagreeAreNamed(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "disputed")
	placeWidgets(t, ns)
	override(t, ns, "left", replicasRule("l", 5, inRegion("cn-shanghai")))
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 5) })
	right := override(t, ns, "right", replicasRule("r", 7, inRegion("cn-shanghai")))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonOverrideConflict) })
	must(t, replicasOn(ctx, shanghai, w, 5))
	for policy, other := range map[string]string{"left": "right", "right": "left"} {
		eventually(t, normal, func() error { return conflicted(ctx, ns, policy, metav1.ConditionTrue, ns+"/"+other) })
	}
	// A change of the hub object must still reach the clusters without a conflict.
	must(t, suite.Hub.Patch(ctx, widget(ns, "disputed"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"note":"news"}}`))))
	eventually(t, normal, func() error { return specOn(ctx, singapore, w, "note", "news") })
	must(t, replicasOn(ctx, shanghai, w, 5))

	priority := []byte(`[{"op":"add","path":"/spec/rules/0/priority","value":10}]`)
	must(t, suite.Hub.Patch(ctx, right, client.RawPatch(types.JSONPatchType, priority)))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 7) })
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionTrue, "") })
	for _, policy := range []string{"left", "right"} {
		eventually(t, normal, func() error { return conflicted(ctx, ns, policy, metav1.ConditionFalse, "") })
	}
}

func TestAMergePatchAddsReplacesAndRemoves(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "merged")
	must(t, unstructured.SetNestedField(w.Object, "template", "spec", "note"))
	must(t, unstructured.SetNestedStringSlice(w.Object, []string{"a", "b"}, "spec", "tags"))
	placeWidgets(t, ns, singapore, shanghai)
	override(t, ns, "merge", hubv1.OverrideRule{
		Name: "m", Clusters: &hubv1.RuleClusters{Names: []string{shanghai}},
		MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"size":"large","note":null,"tags":["c"]}}`)},
	})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return specOn(ctx, shanghai, w, "size", "large") })
	copied, err := on(ctx, shanghai, w)
	must(t, err)
	if _, found, _ := unstructured.NestedString(copied.Object, "spec", "note"); found {
		t.Error("null did not remove spec.note")
	}
	if tags, _, _ := unstructured.NestedStringSlice(copied.Object, "spec", "tags"); strings.Join(tags, ",") != "c" {
		t.Errorf("the list was not replaced as a whole: %v", tags)
	}
	eventually(t, normal, func() error { return specOn(ctx, singapore, w, "note", "template") })
}

func TestAPolicyThatIsCorrectedHeals(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "patient")
	placeWidgets(t, ns, shanghai)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionTrue, "") })
	rule := replicasRule("r", 6, hubv1.RuleClusters{})
	rule.Patches[0].Path = "/spec/replica/count"
	policy := override(t, ns, "typo", rule)
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid) })
	must(t, replicasOn(ctx, shanghai, w, 3))
	must(t, suite.Hub.Patch(ctx, policy, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/rules/0/patches/0/path","value":"/spec/replicas"}]`))))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 6) })
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionTrue, "") })
}

func widgets() []hubv1.ResourceSelector {
	return []hubv1.ResourceSelector{{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}}
}

// replicasRule returns a rule that replaces spec.replicas in the selected clusters, or in all clusters if clusters is
// empty.
func replicasRule(name string, replicas int, clusters hubv1.RuleClusters) hubv1.OverrideRule {
	rule := hubv1.OverrideRule{Name: name, Patches: []hubv1.PatchOperation{
		{Op: hubv1.PatchReplace, Path: "/spec/replicas", Value: &apiextensionsv1.JSON{Raw: fmt.Append(nil, replicas)}},
	}}
	if clusters.LabelSelector != nil || len(clusters.Names) > 0 {
		rule.Clusters = &clusters
	}
	return rule
}

func inRegion(region string) hubv1.RuleClusters {
	return hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: region}}}
}

// override creates an OverridePolicy with these rules for the Widgets of a namespace.
func override(t *testing.T, namespace, name string, rules ...hubv1.OverrideRule) *hubv1.OverridePolicy {
	t.Helper()
	p := overrideOf(namespace, name, rules...)
	must(t, suite.Hub.Create(t.Context(), p))
	return p
}

func overrideOf(namespace, name string, rules ...hubv1.OverrideRule) *hubv1.OverridePolicy {
	return &hubv1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       hubv1.OverridePolicySpec{ResourceSelectors: widgets(), Rules: rules},
	}
}

// conflicted returns nil if the policy has the condition Conflicted with this status, and its message contains the
// words.
func conflicted(ctx context.Context, namespace, policy string, status metav1.ConditionStatus, words string) error {
	var now hubv1.OverridePolicy
	if err := suite.Hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: policy}, &now); err != nil {
		return err
	}
	c := meta.FindStatusCondition(now.Status.Conditions, hubv1.ConditionConflicted)
	if c == nil || c.Status != status || !strings.Contains(c.Message, words) {
		return fmt.Errorf("policy %s: Conflicted is %+v, want %s %q", policy, c, status, words)
	}
	return nil
}

// specOn returns nil if a field of the copy's spec has this string as value.
func specOn(ctx context.Context, member string, obj *unstructured.Unstructured, field, want string) error {
	copied, err := on(ctx, member, obj)
	if err != nil {
		return fmt.Errorf("on %s: %w", member, err)
	}
	if got, _, _ := unstructured.NestedString(copied.Object, "spec", field); got != want {
		return fmt.Errorf("on %s: spec.%s is %q, want %q", member, field, got, want)
	}
	return nil
}
