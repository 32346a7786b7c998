package protect

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// authoredObjects returns for each kind with recorded authors a function that makes an object of this author.
func authoredObjects() map[string]func(name string) client.Object {
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "authored", Annotations: map[string]string{hubv1.ChangedByAnnotation: name}}
	}
	place := hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}}, Clusters: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}}
	override := hubv1.OverridePolicySpec{ResourceSelectors: place.ResourceSelectors, Rules: []hubv1.OverrideRule{{Name: "r", MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"data":{"a":"b"}}`)}}}}
	bundle := hubv1.BundleSpec{Manifests: []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}}}
	return map[string]func(name string) client.Object{
		"Placement": func(n string) client.Object {
			return &hubv1.Placement{ObjectMeta: named("default", n), Spec: place}
		},
		"ClusterPlacement": func(n string) client.Object {
			return &hubv1.ClusterPlacement{ObjectMeta: named("", n), Spec: hubv1.ClusterPlacementSpec{PlacementSpec: place}}
		},
		"OverridePolicy": func(n string) client.Object {
			return &hubv1.OverridePolicy{ObjectMeta: named("default", n), Spec: override}
		},
		"ClusterOverridePolicy": func(n string) client.Object {
			return &hubv1.ClusterOverridePolicy{ObjectMeta: named("", n), Spec: hubv1.ClusterOverridePolicySpec{OverridePolicySpec: override}}
		},
		"Bundle": func(n string) client.Object {
			return &hubv1.Bundle{ObjectMeta: named("default", n), Spec: bundle}
		},
		"ClusterBundle": func(n string) client.Object {
			return &hubv1.ClusterBundle{ObjectMeta: named("", n), Spec: bundle}
		},
		"FederatedOperator": func(n string) client.Object {
			return &hubv1.FederatedOperator{ObjectMeta: named("", n), Spec: hubv1.FederatedOperatorSpec{BundleSpec: bundle}}
		},
	}
}

// TestNoUserSetsTheNameOfAnotherAuthor runs without a hub, so that no webhook records the author.
func TestNoUserSetsTheNameOfAnotherAuthor(t *testing.T) {
	admin, ctx := installed(t), t.Context()
	const alice, bob, by = "authors-alice", "authors-bob", hubv1.ChangedByAnnotation
	for _, user := range []string{alice, bob} {
		grant(t, admin, "protect-"+user, user, rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}})
	}
	asAlice, asBob, inAnEmergency := as(t, alice), as(t, bob), as(t, bob, inEmergency)
	objects := authoredObjects()
	eventually(t, func() error { // the API server reads its policies by watches
		if err := asBob.Create(ctx, objects["Placement"](alice), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a placement in the name of another user: %w", err)
		}
		return nil
	})
	spec := func(n int) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"priority":%d}}`, n))
	}
	both := func(spec, name string) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}},"spec":%s}`, by, name, spec))
	}
	const words = "its annotation hanse.dev/changed-by would name " + alice + " as the author of a change by " + bob
	for kind, of := range objects {
		t.Run(kind, func(t *testing.T) {
			refused(t, asBob.Create(ctx, of(alice)), words, "remove the annotation in the same request")
			none := of("")
			none.SetAnnotations(nil)
			must(t, asBob.Create(ctx, none, client.DryRunAll))
			o := of(alice)
			must(t, asAlice.Create(ctx, o))
			t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(ctx), o) })
			for name, c := range map[string]client.Client{"a user": asBob, "a user in an emergency": inAnEmergency} {
				t.Run(name, func(t *testing.T) {
					change := func(p client.Patch) error { return c.Patch(ctx, of(alice), p, client.DryRunAll) }
					refused(t, change(annotated(by, `"carol"`)), "would name carol")
					refused(t, change(annotated(by, `""`)), "would name  as")
					must(t, change(annotated(by, `"`+bob+`"`)))
					must(t, change(annotated(by, "null")))
					must(t, change(annotated("a", `"b"`)))
				})
			}
			for _, verb := range []string{"approve", "pause", "skip", "promote", "undo"} {
				p := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"hanse.dev/rollout-%s":"x"}}}`, verb))
				refused(t, asBob.Patch(ctx, of(alice), p), words)
				p = client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"hanse.dev/rollout-%s":"x",%q:null}}}`, verb, by))
				must(t, asBob.Patch(ctx, of(alice), p, client.DryRunAll))
				must(t, asAlice.Patch(ctx, of(alice), annotated("hanse.dev/rollout-"+verb, `"x"`)))
				refused(t, asBob.Patch(ctx, of(alice), annotated("hanse.dev/rollout-"+verb, "null")), words)
			}
		})
	}
	t.Run("a change of the spec", func(t *testing.T) {
		p := objects["Placement"](alice)
		p.SetName("respecified")
		must(t, asAlice.Create(ctx, p))
		t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(ctx), p) })
		again := func() client.Object {
			return &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "respecified"}}
		}
		refused(t, asBob.Patch(ctx, again(), spec(1)), words)
		refused(t, asBob.Patch(ctx, again(), both(`{"priority":1}`, `"carol"`)), "would name carol")
		must(t, asBob.Patch(ctx, again(), both(`{"priority":1}`, `null`), client.DryRunAll))
		must(t, asAlice.Patch(ctx, again(), spec(1)))
		must(t, asBob.Patch(ctx, again(), both(`{"priority":2}`, `"`+bob+`"`)))
		must(t, asBob.Patch(ctx, again(), spec(3)))
		must(t, as(t, theHub).Status().Patch(ctx, again(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":7}}`))))
	})
}
