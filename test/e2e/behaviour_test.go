package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAManagedFieldThatIsEditedOnAMemberIsPutBack(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "drift")
	placeWidgets(t, ns, singapore, shanghai)
	must(t, suite.Hub.Create(t.Context(), w))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 3) })
	eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionTrue, "") })

	copied, err := on(t.Context(), shanghai, w)
	must(t, err)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9,"note":"mine"}}`))
	must(t, suite.Members[shanghai].Patch(t.Context(), copied, patch, client.FieldOwner("by-hand")))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 3) })
	copied, err = on(t.Context(), shanghai, w)
	must(t, err)
	if note, _, _ := unstructured.NestedString(copied.Object, "spec", "note"); note != "mine" {
		t.Errorf("spec.note is %q: a field that is not the hub's was reverted", note)
	}
	must(t, suite.Members[shanghai].Delete(t.Context(), copied))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 3) })
}

func TestAControllerThatKeepsFightingForAFieldIsContested(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "contested")
	placeWidgets(t, ns, frankfurt)
	must(t, suite.Hub.Create(t.Context(), w))
	eventually(t, normal, func() error { return rowIs(t.Context(), w, frankfurt, metav1.ConditionTrue, "") })

	// This client fights the hub: it sets the field again whenever the hub restores the field.
	eventually(t, 60*time.Second, func() error {
		copied, err := on(t.Context(), frankfurt, w)
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedInt64(copied.Object, "spec", "replicas"); got == 3 {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`))
			if err := suite.Members[frankfurt].Patch(t.Context(), copied, patch, client.FieldOwner("opponent")); err != nil {
				return err
			}
		}
		return rowIs(t.Context(), w, frankfurt, metav1.ConditionFalse, hubv1.ReasonContested)
	})
	eventually(t, normal, func() error {
		return bindingCondition(t.Context(), w, hubv1.ConditionContested, metav1.ConditionTrue, hubv1.ReasonContested)
	})
	b, err := bindingOf(t.Context(), w)
	must(t, err)
	if got := b.BindingStatus().Row(frankfurt).Message; !contains(got, "opponent") || !contains(got, "replicas") {
		t.Errorf("the message does not name manager and field: %q", got)
	}
}

func TestALabelMovesAClusterIntoAndOutOfASelector(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "labelled")
	p := &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "by-label"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}},
			Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{ns: "in"}}},
			AllowEmpty:        true,
		},
	}
	must(t, suite.Hub.Create(t.Context(), p))
	must(t, suite.Hub.Create(t.Context(), w))
	setLabel := func(value any) {
		t.Helper()
		mcl := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: singapore}}
		raw := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, ns, toJSON(t, value))
		must(t, suite.Hub.Patch(t.Context(), mcl, client.RawPatch(types.MergePatchType, []byte(raw))))
	}
	t.Cleanup(func() {
		mcl := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: singapore}}
		_ = suite.Hub.Patch(context.WithoutCancel(t.Context()), mcl, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, ns)))
	})
	eventually(t, normal, func() error {
		return bindingCondition(t.Context(), w, hubv1.ConditionScheduled, metav1.ConditionFalse, hubv1.ReasonNoClusterSelected)
	})
	setLabel("in")
	eventually(t, normal, func() error { return replicasOn(t.Context(), singapore, w, 3) })
	eventually(t, normal, func() error { return rowIs(t.Context(), w, singapore, metav1.ConditionTrue, "") })
	setLabel(nil)
	eventually(t, normal, func() error { return goneFrom(t.Context(), singapore, w) })
	eventually(t, normal, func() error {
		b, err := bindingOf(t.Context(), w)
		if err != nil {
			return err
		}
		if n := len(b.BindingSpec().Clusters); n != 0 {
			return fmt.Errorf("the binding still has %d entries", n)
		}
		for _, r := range b.BindingStatus().Decision.Rejected {
			if r.Reason == hubv1.ReasonNotSelected && r.Count == 3 {
				return nil
			}
		}
		return fmt.Errorf("the decision does not say why: %+v", b.BindingStatus().Decision)
	})
}

func TestAHubObjectIsDeletedWhileAMemberIsDown(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "farewell")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(t.Context(), w))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(t.Context(), w, m, metav1.ConditionTrue, "") })
	}
	breakMember(t, frankfurt, "blackhole")
	eventually(t, 60*time.Second, func() error {
		return memberCondition(t.Context(), frankfurt, hubv1.ConditionReady, metav1.ConditionFalse, "")
	})
	must(t, suite.Hub.Delete(t.Context(), w.DeepCopy()))
	for _, m := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return goneFrom(t.Context(), m, w) })
	}
	eventually(t, normal, func() error {
		b, err := bindingOf(t.Context(), w)
		if err != nil {
			return err
		}
		if rows := b.BindingStatus().Clusters; len(rows) != 1 || rows[0].Name != frankfurt || rows[0].Reason == "" {
			return fmt.Errorf("rows are %+v, want the one of %s with what it waits for", rows, frankfurt)
		}
		return nil
	})
	mendMember(t, frankfurt)
	eventually(t, 60*time.Second, func() error { return goneFrom(t.Context(), frankfurt, w) })
	eventually(t, normal, func() error { return noBinding(t.Context(), w) })
}

func TestACRDThatIsDeletedOnAMemberHoldsUpItsKindThereOnly(t *testing.T) {
	ns := namespace(t)
	w, cm := widget(ns, "uncrd"), configMap(ns, "bystander")
	placeWidgets(t, ns)
	place(t, ns, "configmaps", hubv1.ResourceSelector{Kind: "ConfigMap", Name: "bystander"}, hubv1.PlacementSpec{Clusters: everyCluster()})
	must(t, suite.Hub.Create(t.Context(), w))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(t.Context(), w, m, metav1.ConditionTrue, "") })
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.hanse.dev"}}
	must(t, suite.Members[singapore].Delete(t.Context(), crd))
	t.Cleanup(func() { restoreCRD(t, singapore) })
	eventually(t, 60*time.Second, func() error {
		return rowIs(t.Context(), w, singapore, metav1.ConditionFalse, hubv1.ReasonKindNotServed)
	})
	must(t, suite.Hub.Create(t.Context(), cm))
	eventually(t, normal, func() error { return rowIs(t.Context(), cm, singapore, metav1.ConditionTrue, "") })
	must(t, replicasOn(t.Context(), shanghai, w, 3))
	var hubWidget unstructured.Unstructured
	hubWidget.SetGroupVersionKind(widgetKind)
	must(t, suite.Hub.Get(t.Context(), client.ObjectKeyFromObject(w), &hubWidget))

	restoreCRD(t, singapore)
	eventually(t, 90*time.Second, func() error { return replicasOn(t.Context(), singapore, w, 3) })
	eventually(t, normal, func() error { return rowIs(t.Context(), w, singapore, metav1.ConditionTrue, "") })
}

func TestANamespaceIsMadeOnDemandOrAskedForInClearWords(t *testing.T) {
	ns := namespace(t)
	made, asked := widget(ns, "made"), widget(ns, "asked")
	place(t, ns, "asked", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind, Name: "asked"}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai}}, Apply: hubv1.ApplyPolicy{CreateNamespace: ptr.To(false)},
	})
	must(t, suite.Hub.Create(t.Context(), asked))
	eventually(t, normal, func() error {
		return rowIs(t.Context(), asked, shanghai, metav1.ConditionFalse, hubv1.ReasonNamespaceMissing)
	})
	place(t, ns, "made", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind, Name: "made"}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai}},
	})
	must(t, suite.Hub.Create(t.Context(), made))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, made, 3) })
	var onMember corev1.Namespace
	must(t, suite.Members[shanghai].Get(t.Context(), types.NamespacedName{Name: ns}, &onMember))
	if _, ok := onMember.Labels[hubv1.OnDemandLabel]; !ok {
		t.Errorf("namespace %s on the member lacks the label %s: %v", ns, hubv1.OnDemandLabel, onMember.Labels)
	}
	eventually(t, 90*time.Second, func() error { return rowIs(t.Context(), asked, shanghai, metav1.ConditionTrue, "") })
}

func TestMetadataOfTheHubDoesNotTravel(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "luggage")
	w.SetFinalizers([]string{"test.hanse.dev/hold"})
	w.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "00000000-0000-0000-0000-000000000000"}})
	w.SetLabels(map[string]string{"app": "web", "argocd.argoproj.io/instance": "x"})
	w.SetAnnotations(map[string]string{"note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
	placeWidgets(t, ns, singapore)
	must(t, suite.Hub.Create(t.Context(), w))
	t.Cleanup(func() {
		_ = suite.Hub.Patch(context.WithoutCancel(t.Context()), widget(ns, "luggage"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	eventually(t, normal, func() error { return replicasOn(t.Context(), singapore, w, 3) })
	copied, err := on(t.Context(), singapore, w)
	must(t, err)
	if len(copied.GetFinalizers()) != 0 || len(copied.GetOwnerReferences()) != 0 {
		t.Errorf("finalizers %v or owner references %v travelled", copied.GetFinalizers(), copied.GetOwnerReferences())
	}
	if l := copied.GetLabels(); l["app"] != "web" || l["argocd.argoproj.io/instance"] != "" {
		t.Errorf("labels on the member: %v", l)
	}
	if a := copied.GetAnnotations(); a["note"] != "kept" || a["kubectl.kubernetes.io/last-applied-configuration"] != "" {
		t.Errorf("annotations on the member: %v", a)
	}
	must(t, suite.Hub.Patch(t.Context(), widget(ns, "luggage"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

func TestAPlacementIsNarrowedOrDeleted(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "narrowed")
	p := placeWidgets(t, ns)
	must(t, suite.Hub.Create(t.Context(), w))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(t.Context(), w, m, metav1.ConditionTrue, "") })
	}
	narrow := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"clusters":{"excludedNames":[%q]}}}`, frankfurt))
	must(t, suite.Hub.Patch(t.Context(), p, narrow))
	eventually(t, normal, func() error { return goneFrom(t.Context(), frankfurt, w) })

	must(t, suite.Hub.Delete(t.Context(), p))
	eventually(t, normal, func() error {
		return bindingCondition(t.Context(), w, hubv1.ConditionScheduled, metav1.ConditionTrue, hubv1.ReasonPlacementGone)
	})
	for _, m := range []string{singapore, shanghai} {
		must(t, replicasOn(t.Context(), m, w, 3))
	}
	// The copies still follow the hub object. Only the list of clusters no longer changes.
	must(t, suite.Hub.Patch(t.Context(), widget(ns, "narrowed"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 4) })
	must(t, suite.Hub.Delete(t.Context(), w.DeepCopy()))
	eventually(t, normal, func() error { return goneFrom(t.Context(), shanghai, w) })
}

func TestAnObjectThatComesBackUnderItsNameKeepsItsCopies(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "phoenix")
	placeWidgets(t, ns, shanghai)
	must(t, suite.Hub.Create(t.Context(), w))
	eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionTrue, "") })
	// The hub object is deleted and created again at once. The hub may delete the copy or give it a new owner annotation
	// in between. In the end, the copy must equal the new hub object.
	must(t, suite.Hub.Delete(t.Context(), w.DeepCopy()))
	again := widget(ns, "phoenix")
	must(t, unstructured.SetNestedField(again.Object, int64(6), "spec", "replicas"))
	must(t, suite.Hub.Create(t.Context(), again))
	eventually(t, 60*time.Second, func() error { return replicasOn(t.Context(), shanghai, again, 6) })
	eventually(t, normal, func() error {
		b, err := bindingOf(t.Context(), again)
		if err != nil {
			return err
		}
		if b.BindingSpec().ObjectRef.UID != again.GetUID() {
			return errors.New("the binding does not point to the new object")
		}
		return rowIs(t.Context(), again, shanghai, metav1.ConditionTrue, "")
	})
}

func TestPreemptionTakesAnObjectOverOnlyWhenAsked(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "wanted")
	placeWidgets(t, ns, shanghai)
	must(t, suite.Hub.Create(t.Context(), w))
	eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionTrue, "") })
	rival := place(t, ns, "rival", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{singapore}}, Priority: 10,
	})
	eventually(t, normal, func() error {
		b, err := bindingOf(t.Context(), w)
		if err != nil {
			return err
		}
		if len(b.BindingStatus().OtherPlacements) != 1 || b.BindingSpec().PlacementRef.Name != "widgets" {
			return fmt.Errorf("follows %s, others %v", b.BindingSpec().PlacementRef.Name, b.BindingStatus().OtherPlacements)
		}
		return nil
	})
	must(t, suite.Hub.Patch(t.Context(), rival, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"preemption":"Always"}}`))))
	eventually(t, normal, func() error { return replicasOn(t.Context(), singapore, w, 3) })
	eventually(t, normal, func() error { return goneFrom(t.Context(), shanghai, w) })
}

func TestSuspendHoldsWritesBack(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "held")
	p := placeWidgets(t, ns, singapore, shanghai)
	must(t, suite.Hub.Create(t.Context(), w))
	for _, m := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return rowIs(t.Context(), w, m, metav1.ConditionTrue, "") })
	}
	must(t, suite.Hub.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":{"clusters":[%q]}}}`, shanghai))))
	must(t, poll(t.Context(), normal, func() error { // the hub must observe the suspension before the edit
		return observedPlacement(t.Context(), p)
	}))
	must(t, suite.Hub.Patch(t.Context(), widget(ns, "held"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))))
	eventually(t, normal, func() error { return replicasOn(t.Context(), singapore, w, 5) })
	eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionFalse, hubv1.ReasonSuspended) })
	must(t, replicasOn(t.Context(), shanghai, w, 3))
	must(t, suite.Hub.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":{"clusters":null}}}`))))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 5) })
}

func TestAMemberObjectOnPauseIsLeftAlone(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "paused")
	placeWidgets(t, ns, shanghai)
	must(t, suite.Hub.Create(t.Context(), w))
	eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionTrue, "") })
	copied, err := on(t.Context(), shanghai, w)
	must(t, err)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	raw := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}},"spec":{"replicas":8}}`, hubv1.PauseAnnotation, until)
	must(t, suite.Members[shanghai].Patch(t.Context(), copied, client.RawPatch(types.MergePatchType, raw)))
	eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionFalse, hubv1.ReasonPaused) })
	must(t, replicasOn(t.Context(), shanghai, w, 8))
	must(t, suite.Members[shanghai].Patch(t.Context(), copied, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, hubv1.PauseAnnotation))))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 3) })
}

func TestAnExistingObjectIsAdoptedOnlyWhenAsked(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "foreign")
	must(t, suite.Members[shanghai].Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	foreign := widget(ns, "foreign")
	must(t, unstructured.SetNestedField(foreign.Object, int64(1), "spec", "replicas"))
	must(t, suite.Members[shanghai].Create(t.Context(), foreign))
	p := placeWidgets(t, ns, shanghai)
	must(t, suite.Hub.Create(t.Context(), w))
	eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionFalse, hubv1.ReasonAlreadyExists) })
	must(t, replicasOn(t.Context(), shanghai, w, 1))
	must(t, suite.Hub.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"apply":{"adoption":"Always"}}}`))))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 3) })
}
