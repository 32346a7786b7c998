package protect

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/charts"
)

const (
	anAuthor = "author" // may write objects and placements, but has none of the verbs for rollouts
	anEditor = "editor" // has the ClusterRole hanse-edit of the chart
)

// rulesOf returns the rules of a ClusterRole in the chart.
func rulesOf(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	for _, o := range charts.Render(t, "hanse-hub/templates/user-roles.yaml", map[string]any{"userRoles": map[string]any{"aggregate": false}}) {
		if o.GetName() == name {
			var role rbacv1.ClusterRole
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
			return role.Rules
		}
	}
	t.Fatalf("the chart has no ClusterRole %s", name)
	return nil
}

// annotated returns a patch that sets an annotation, or removes it if value is null.
func annotated(name, value string) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, name, value))
}

func TestWhoSteersARolloutNeedsTheVerb(t *testing.T) {
	admin := installed(t)
	ctx := t.Context()
	writes := []rbacv1.PolicyRule{
		{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"placements", "clusterplacements", "bundles", "federatedoperators"}, Verbs: []string{"get", "create", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}},
	}
	grant(t, admin, "protect-author", anAuthor, writes...)
	grant(t, admin, "protect-editor-writes", anEditor, writes...)
	grant(t, admin, "protect-editor", anEditor, rulesOf(t, "hanse-edit")...)
	author, editor, owner := as(t, anAuthor), as(t, anEditor), as(t, aTenant)

	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "steered"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	must(t, author.Create(ctx, p))
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "steered"}}
	must(t, author.Create(ctx, cm))
	bundle := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "steered"}}
	operator := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "steered"}}
	bundle.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}}
	operator.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"steered"}}`)}}
	must(t, author.Create(ctx, bundle))
	must(t, author.Create(ctx, operator))
	t.Cleanup(func() {
		for _, o := range []client.Object{p, cm, bundle, operator} {
			_ = admin.Delete(context.WithoutCancel(ctx), o)
		}
	})
	eventually(t, func() error { // the API server reads its policies by watches
		if err := author.Patch(ctx, p.DeepCopy(), annotated(hubv1.RolloutPauseAnnotation, `"true"`), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a pause without the verb: %w", err)
		}
		return nil
	})

	t.Run("an author has none of the verbs", func(t *testing.T) {
		for _, verb := range []string{"approve", "pause", "skip", "promote"} {
			refused(t, author.Patch(ctx, p.DeepCopy(), annotated("hanse.dev/rollout-"+verb, `"x"`)),
				"author needs the right to the verb rollout-"+verb+" on placements.hanse.dev in namespace default")
		}
		refused(t, author.Patch(ctx, cm.DeepCopy(), annotated(hubv1.RolloutUndoAnnotation, `"6"`)),
			"author needs the right to the verb rollout-undo on placements.hanse.dev in namespace default")
		refused(t, author.Patch(ctx, cm.DeepCopy(), annotated(hubv1.RolloutUndoAcknowledgeAnnotation, `"v1"`)),
			"author needs the right to the verb rollout-undo on placements.hanse.dev in namespace default")
	})
	t.Run("an author cannot undo a bundle or an operator", func(t *testing.T) {
		refused(t, author.Patch(ctx, bundle.DeepCopy(), annotated(hubv1.RolloutUndoAnnotation, `"6"`)),
			"author needs the right to the verb rollout-undo on placements.hanse.dev in namespace default")
		refused(t, author.Patch(ctx, operator.DeepCopy(), annotated(hubv1.RolloutUndoAnnotation, `"6"`)),
			"author needs the right to the verb rollout-undo on clusterplacements.hanse.dev")
		must(t, author.Patch(ctx, bundle.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))))
		must(t, editor.Patch(ctx, bundle.DeepCopy(), annotated(hubv1.RolloutUndoAnnotation, `"6"`)))
	})
	t.Run("nor can an author create what has such an annotation", func(t *testing.T) {
		forged := p.DeepCopy()
		forged.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "forged", Annotations: map[string]string{hubv1.RolloutApproveAnnotation: "asia@2099-01-01T00:00:00Z"}}
		refused(t, author.Create(ctx, forged), "the verb rollout-approve")
		must(t, owner.Create(ctx, forged, client.DryRunAll))
	})
	t.Run("the role of the chart for editors has pause and undo", func(t *testing.T) {
		must(t, editor.Patch(ctx, p.DeepCopy(), annotated(hubv1.RolloutPauseAnnotation, `"true"`)))
		must(t, editor.Patch(ctx, cm.DeepCopy(), annotated(hubv1.RolloutUndoAnnotation, `"6"`)))
		refused(t, editor.Patch(ctx, p.DeepCopy(), annotated(hubv1.RolloutApproveAnnotation, `"asia@2026-11-26T10:00:00Z"`)), "the verb rollout-approve")
		refused(t, editor.Patch(ctx, p.DeepCopy(), annotated(hubv1.RolloutPromoteAnnotation, `"2026-11-26T10:00:00Z CVE"`)), "the verb rollout-promote")
	})
	t.Run("whoever may do everything else may not take an annotation away, and may change everything else", func(t *testing.T) {
		refused(t, author.Patch(ctx, p.DeepCopy(), annotated(hubv1.RolloutPauseAnnotation, "null")), "the verb rollout-pause")
		refused(t, author.Patch(ctx, cm.DeepCopy(), annotated(hubv1.RolloutUndoAnnotation, `"7"`)), "the verb rollout-undo")
		must(t, author.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}},"spec":{"priority":1}}`))))
		must(t, author.Patch(ctx, cm.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"b"}}`))))
	})
	t.Run("in an emergency everything goes", func(t *testing.T) {
		must(t, as(t, anAuthor, inEmergency).Patch(ctx, p.DeepCopy(), annotated(hubv1.RolloutPromoteAnnotation, `"2026-11-26T10:00:00Z fire"`), client.DryRunAll))
	})
}

func TestOfAClusterPlacementTheVerbIsOnClusterPlacements(t *testing.T) {
	admin := installed(t)
	ctx := t.Context()
	const one = "one-placement"
	grant(t, admin, "protect-one-writes", one,
		rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"clusterplacements"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"placements"}, Verbs: []string{"rollout-pause"}})
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "steered"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "apps", Kind: "Deployment"}}
	p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	must(t, admin.Create(ctx, p))
	t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(ctx), p) })
	pause, user := annotated(hubv1.RolloutPauseAnnotation, `"true"`), as(t, one)
	eventually(t, func() error { // the API server reads its policies by watches
		if err := user.Patch(ctx, p.DeepCopy(), pause, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a pause without the verb: %w", err)
		}
		return nil
	})
	refused(t, user.Patch(ctx, p.DeepCopy(), pause), "one-placement needs the right to the verb rollout-pause on clusterplacements.hanse.dev")
	grant(t, admin, "protect-one", one, rbacv1.PolicyRule{
		APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"clusterplacements"}, ResourceNames: []string{"steered"}, Verbs: []string{"rollout-pause"},
	})
	must(t, user.Patch(ctx, p.DeepCopy(), pause))
}
