package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAnObjectOfAnotherHubIsLeftToIt creates a hub object whose copy on one member belongs to another hub. The suite's
// hub must neither write nor delete this copy, even if the placement adopts existing objects.
func TestAnObjectOfAnotherHubIsLeftToIt(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	const otherHub, otherObject = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	must(t, suite.Members[shanghai].Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	theirs := widget(ns, "wanted-twice")
	must(t, unstructured.SetNestedField(theirs.Object, int64(1), "spec", "replicas"))
	id := hubv1.ObjectIdentity{Group: widgetKind.Group, Kind: widgetKind.Kind, Namespace: ns, Name: theirs.GetName()}
	theirs.SetLabels(map[string]string{hubv1.HubLabel: otherHub})
	theirs.SetAnnotations(map[string]string{hubv1.OwnerAnnotation: id.Owner(types.UID(otherObject)), hubv1.DigestAnnotation: "theirs"})
	must(t, suite.Members[shanghai].Apply(ctx, client.ApplyConfigurationFromUnstructured(theirs.DeepCopy()), client.FieldOwner(hubv1.FieldManager)))
	before, err := on(ctx, shanghai, theirs)
	must(t, err)

	w := widget(ns, theirs.GetName())
	place(t, ns, "adopting", widgets()[0], hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{singapore, shanghai}}, Apply: hubv1.ApplyPolicy{Adoption: hubv1.AdoptionAlways},
	})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonOwnedByOther) })
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
	b, err := bindingOf(ctx, w)
	must(t, err)
	if got := b.BindingStatus().Row(shanghai).Message; !strings.Contains(got, otherHub) {
		t.Errorf("the message does not name the other hub: %q", got)
	}
	must(t, suite.Hub.Delete(ctx, w.DeepCopy()))
	eventually(t, normal, func() error { return goneFrom(ctx, singapore, w) })
	eventually(t, normal, func() error { return noBinding(ctx, w) })
	now, err := on(ctx, shanghai, theirs)
	must(t, err)
	if now.GetUID() != before.GetUID() || now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the other hub's object was written: %v", now.Object["metadata"])
	}
}
