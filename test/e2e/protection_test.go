package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

func TestABindingIsRefusedToAnAdminOutsideTheBreakGlassGroup(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "bound")
	placeWidgets(t, ns, shanghai)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionTrue, "") })
	b, err := bindingOf(ctx, w)
	must(t, err)

	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"in":"an-emergency"}}}`))
	saysAll(t, suite.Hub.Delete(ctx, b.DeepCopyObject().(client.Object)), "are written by the hub alone", "group hanse:break-glass")
	saysAll(t, suite.Hub.Patch(ctx, b.DeepCopyObject().(client.Object), label), "are written by the hub alone")
	config := rest.CopyConfig(suite.Hub.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters", "hanse:break-glass"}}
	breakGlass, err := client.New(config, client.Options{Scheme: fleet.Scheme()})
	must(t, err)
	must(t, breakGlass.Patch(ctx, b.DeepCopyObject().(client.Object), label))
}

func TestANamespaceWithPlacedCopiesIsDeletedOnlyWhenAllowed(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	placeWidgets(t, ns)
	const objects = 2
	for i := range objects {
		must(t, suite.Hub.Create(ctx, widget(ns, fmt.Sprintf("w-%d", i))))
	}
	eventually(t, normal, func() error { return allApplied(ctx, ns, objects) })
	var held corev1.Namespace
	must(t, suite.Hub.Get(ctx, types.NamespacedName{Name: ns}, &held))
	eventually(t, normal, func() error { // the hub counts the copies with a delay of a second
		if err := suite.Hub.Delete(ctx, held.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("deleting a namespace with %d copies: %w", objects*len(members), err)
		}
		return nil
	})
	saysAll(t, suite.Hub.Delete(ctx, held.DeepCopy()), "it holds more than 5 placed copies",
		"kubectl annotate namespaces "+ns+" --overwrite hanse.dev/allow-deletion="+string(held.UID))
	for i := range objects {
		must(t, replicasOn(ctx, shanghai, widget(ns, fmt.Sprintf("w-%d", i)), 3))
	}
	must(t, allowDeletion(ctx, &held))
	must(t, suite.Hub.Delete(ctx, &held))
}

// TestTheHubsTokenChangesNothingButAStatus: otherwise the owner reference would have the garbage collector delete the
// Deployment.
func TestTheHubsTokenChangesNothingButAStatus(t *testing.T) {
	ctx := t.Context()
	d := deploymentWith(namespace(t), "bounded", "none", "none")
	must(t, suite.Hub.Create(ctx, d))
	config, err := suite.Hub.AsServiceAccount(ctx, "hanse-hub")
	must(t, err)
	hub, err := client.New(config, client.Options{Scheme: fleet.Scheme()})
	must(t, err)
	patch := func(body string) error {
		return hub.Status().Patch(ctx, d.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(body)))
	}
	for _, metadata := range []string{
		`{"annotations":{"example.com/stolen":"yes"}}`, `{"finalizers":["example.com/theirs"]}`,
		`{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"missing","uid":"6f1c0000-0000-4000-8000-000000000000"}]}`,
	} {
		saysAll(t, patch(`{"metadata":`+metadata+`}`), "the hub writes only the status of users' objects")
	}
	must(t, patch(`{"status":{"replicas":0}}`))
}

// allowDeletion sets the annotation of an object on the hub that allows its deletion in spite of the deletion
// protection.
func allowDeletion(ctx context.Context, o client.Object) error {
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.AllowDeletionAnnotation, o.GetUID())
	return suite.Hub.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}
