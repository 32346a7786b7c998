package e2e

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestACRDThatIsDeletedOnTheHubDeletesNothingOnMembers deletes the CRD of a federated kind on the hub, which deletes
// all hub objects of the kind. The hub must not treat this as a deletion of single objects: the copies stay, also after
// a restart, and belong to the hub objects that are created again.
func TestACRDThatIsDeletedOnTheHubDeletesNothingOnMembers(t *testing.T) {
	ctx := t.Context()
	serveGadgets(t)
	t.Cleanup(func() { must(t, applyCRD(context.WithoutCancel(t.Context()), suite.Hub.Client, gadgetCRD)) })
	placeGadgets(t, "kept", singapore, shanghai)
	names := []string{"gear-0", "gear-1", "gear-2"}
	kept := func(name string) *unstructured.Unstructured {
		g := gadget(name)
		g.SetLabels(map[string]string{"set": "kept"})
		return g
	}
	for _, name := range names {
		g := kept(name)
		must(t, suite.Hub.Create(ctx, g))
		for _, m := range []string{singapore, shanghai} {
			eventually(t, normal, func() error { return rowIs(ctx, g, m, metav1.ConditionTrue, "") })
		}
	}
	before := gadgetUIDs(t)

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.test.hanse.dev"}}
	must(t, allowDeletion(ctx, crd)) // the deletion protection counts six copies
	must(t, suite.Hub.Delete(ctx, crd))
	eventually(t, normal, func() error {
		err := suite.Hub.Get(ctx, types.NamespacedName{Name: names[0]}, kept(names[0]))
		if meta.IsNoMatchError(err) || gone(ctx, crd) == nil {
			return nil
		}
		return fmt.Errorf("the hub still serves Gadgets: %w", err)
	})
	must(t, suite.hub.Stop())
	startHub(t)
	// The hub still withdraws the copy of a hub object that a user deletes. This shows that the hub is working, and had
	// time to delete the Gadgets by mistake.
	ns := namespace(t)
	w := widget(ns, "passer-by")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 3) })
	must(t, suite.Hub.Delete(ctx, w.DeepCopy()))
	eventually(t, normal, func() error { return goneFrom(ctx, shanghai, w) })
	sameCopies(t, before, gadgetUIDs(t))

	must(t, applyCRD(ctx, suite.Hub.Client, gadgetCRD))
	for _, name := range names {
		g := kept(name)
		must(t, unstructured.SetNestedField(g.Object, int64(7), "spec", "replicas"))
		eventually(t, normal, func() error { // clients discover the kind of a new CRD after some time
			return client.IgnoreAlreadyExists(suite.Hub.Create(ctx, g))
		})
		for _, m := range []string{singapore, shanghai} {
			eventually(t, 2*normal, func() error { return replicasOn(ctx, m, g, 7) })
		}
		eventually(t, normal, func() error {
			b, err := bindingOf(ctx, g)
			if err != nil {
				return err
			}
			if b.BindingSpec().ObjectRef.UID != g.GetUID() {
				return fmt.Errorf("the binding of %s does not point to the new object", name)
			}
			return rowIs(ctx, g, shanghai, metav1.ConditionTrue, "")
		})
	}
	sameCopies(t, before, gadgetUIDs(t))
	for _, name := range names {
		must(t, suite.Hub.Delete(ctx, kept(name)))
	}
	for _, name := range names {
		eventually(t, normal, func() error { return goneFrom(ctx, shanghai, kept(name)) })
		eventually(t, normal, func() error { return noBinding(ctx, kept(name)) })
	}
}

// gadgetUIDs returns the UIDs of all Gadgets with the label of copies, on all members.
func gadgetUIDs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range members {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(gadgetKind)
		must(t, suite.Members[m].List(t.Context(), &list, client.HasLabels{hubv1.HubLabel}))
		for i := range list.Items {
			out[m+"/"+list.Items[i].GetName()] = string(list.Items[i].GetUID())
		}
	}
	return out
}
