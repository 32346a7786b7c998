package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// foreign creates a Widget in Shanghai that has no labels or annotations of a copy.
func foreign(t *testing.T, ns, name string, replicas int64) *unstructured.Unstructured {
	t.Helper()
	err := suite.Members[shanghai].Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	must(t, client.IgnoreAlreadyExists(err))
	w := widget(ns, name)
	must(t, unstructured.SetNestedField(w.Object, replicas, "spec", "replicas"))
	must(t, suite.Members[shanghai].Create(t.Context(), w))
	return w
}

func patchSpec(t *testing.T, c client.Client, obj client.Object, merge string) {
	t.Helper()
	must(t, c.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(merge)), client.FieldOwner("e2e-by-hand")))
}

// rowTells returns nil if the object's row for Shanghai has this status and reason, and its message contains the text.
func rowTells(ctx context.Context, obj *unstructured.Unstructured, applied metav1.ConditionStatus, reason, message string) error {
	if err := rowIs(ctx, obj, shanghai, applied, reason); err != nil {
		return err
	}
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	if got := b.BindingStatus().Row(shanghai).Message; !strings.Contains(got, message) {
		return fmt.Errorf("the row says %q, which has no %q", got, message)
	}
	return nil
}

func TestAnObjectIsAdoptedIfNothingOfItChanges(t *testing.T) {
	ns := namespace(t)
	before := foreign(t, ns, "same", 3)
	foreign(t, ns, "other", 1)
	p := placeWidgets(t, ns, shanghai)
	patchSpec(t, suite.Hub, p, `{"spec":{"apply":{"adoption":"IfNoDiff"}}}`)
	same, other := widget(ns, "same"), widget(ns, "other")
	must(t, suite.Hub.Create(t.Context(), same))
	must(t, suite.Hub.Create(t.Context(), other))
	eventually(t, normal, func() error { return rowIs(t.Context(), same, shanghai, metav1.ConditionTrue, "") })
	eventually(t, normal, func() error {
		return rowTells(t.Context(), other, metav1.ConditionFalse, hubv1.ReasonAlreadyExists, ".spec.replicas")
	})
	copied, err := on(t.Context(), shanghai, same)
	must(t, err)
	if copied.GetUID() != before.GetUID() || copied.GetLabels()[hubv1.HubLabel] == "" {
		t.Errorf("it was replaced, or not adopted: %v", copied.GetLabels())
	}
	must(t, replicasOn(t.Context(), shanghai, other, 1))
}

func TestAPlacementThatOnlyReportsTouchesNothing(t *testing.T) {
	ns := namespace(t)
	foreign(t, ns, "differs", 1)
	foreign(t, ns, "same", 3)
	place(t, ns, "widgets", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai}}, Apply: hubv1.ApplyPolicy{Mode: hubv1.ApplyReportOnly, Adoption: hubv1.AdoptionAlways},
	})
	differs, same, missing := widget(ns, "differs"), widget(ns, "same"), widget(ns, "missing")
	for _, w := range []*unstructured.Unstructured{differs, same, missing} {
		must(t, suite.Hub.Create(t.Context(), w))
	}
	eventually(t, normal, func() error {
		return errors.Join(
			rowTells(t.Context(), differs, metav1.ConditionFalse, hubv1.ReasonDiffers, ".spec.replicas"),
			rowIs(t.Context(), same, shanghai, metav1.ConditionTrue, hubv1.ReasonInSync),
			rowIs(t.Context(), missing, shanghai, metav1.ConditionFalse, hubv1.ReasonMissing))
	})
	must(t, replicasOn(t.Context(), shanghai, differs, 1))
	must(t, goneFrom(t.Context(), shanghai, missing))
	copied, err := on(t.Context(), shanghai, same)
	must(t, err)
	if n := len(copied.GetManagedFields()); n != 1 || copied.GetLabels() != nil {
		t.Errorf("it was written: labels %v, %d managers", copied.GetLabels(), n)
	}

	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "widgets"}}
	patchSpec(t, suite.Hub, p, `{"spec":{"apply":{"mode":"Enforce"}}}`)
	for _, w := range []*unstructured.Unstructured{differs, same, missing} {
		eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 3) })
		eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionTrue, "") })
	}
	patchSpec(t, suite.Hub, p, `{"spec":{"apply":{"mode":"ReportOnly"}}}`)
	// The edit must come after the hub has observed the placement.
	must(t, poll(t.Context(), normal, func() error { return observedPlacement(t.Context(), p) }))
	copied, err = on(t.Context(), shanghai, missing)
	must(t, err)
	patchSpec(t, suite.Members[shanghai].Client, copied, `{"spec":{"replicas":7}}`)
	eventually(t, normal, func() error {
		return rowTells(t.Context(), missing, metav1.ConditionFalse, hubv1.ReasonDiffers, ".spec.replicas")
	})
	must(t, suite.Hub.Delete(t.Context(), widget(ns, "missing")))
	eventually(t, normal, func() error { return noBinding(t.Context(), missing) })
	must(t, replicasOn(t.Context(), shanghai, missing, 7))
}

func TestAMemberOwnedFieldIsLeftToTheMember(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "owned")
	place(t, ns, "widgets", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai, singapore}}, Apply: hubv1.ApplyPolicy{MemberOwnedFields: []string{"/spec/replicas"}},
	})
	must(t, suite.Hub.Create(t.Context(), w))
	for _, m := range []string{shanghai, singapore} {
		eventually(t, normal, func() error { return replicasOn(t.Context(), m, w, 3) })
		eventually(t, normal, func() error { return rowIs(t.Context(), w, m, metav1.ConditionTrue, "") })
	}
	copied, err := on(t.Context(), shanghai, w)
	must(t, err)
	patchSpec(t, suite.Members[shanghai].Client, copied, `{"spec":{"replicas":8,"size":"large"}}`)
	patchSpec(t, suite.Hub, widget(ns, "owned"), `{"spec":{"replicas":5,"size":"small"}}`)
	for m, want := range map[string]int64{shanghai: 8, singapore: 3} {
		eventually(t, normal, func() error {
			copied, err := on(t.Context(), m, w)
			if err != nil {
				return err
			}
			if size, _, _ := unstructured.NestedString(copied.Object, "spec", "size"); size != "small" {
				return fmt.Errorf("size on %s is %q", m, size)
			}
			return rowIs(t.Context(), w, m, metav1.ConditionTrue, "")
		})
		must(t, replicasOn(t.Context(), m, w, want))
	}
}

// threeOf returns a Deployment with three replicas.
func threeOf(ns, name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	d := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(3), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}},
		},
	}}}
	d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	d.SetNamespace(ns)
	d.SetName(name)
	return d
}

func placeDeployments(t *testing.T, ns string, deletion hubv1.DeletionPolicy) {
	t.Helper()
	place(t, ns, "deployments", hubv1.ResourceSelector{APIGroup: "apps", Kind: "Deployment"}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai}}, Deletion: deletion,
	})
}

func TestReplicasThatAnAutoscalerSetAreLeftToIt(t *testing.T) {
	ns := namespace(t)
	d := threeOf(ns, "scaled")
	placeDeployments(t, ns, hubv1.DeletionPolicy{})
	must(t, suite.Hub.Create(t.Context(), d))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), threeOf(ns, "scaled")) })
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, d, 3) })
	hpa := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"minReplicas": int64(5), "maxReplicas": int64(9),
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
	}}}
	hpa.SetAPIVersion("autoscaling/v2")
	hpa.SetKind("HorizontalPodAutoscaler")
	hpa.SetNamespace(ns)
	hpa.SetName("scaled")
	must(t, suite.Members[shanghai].Create(t.Context(), hpa))
	eventually(t, 90*time.Second, func() error { return replicasOn(t.Context(), shanghai, d, 5) })
	eventually(t, normal, func() error {
		return rowTells(t.Context(), d, metav1.ConditionTrue, hubv1.ReasonAutoscaled, "/spec/replicas is left to the autoscaler")
	})
	patchSpec(t, suite.Hub, threeOf(ns, "scaled"), `{"spec":{"replicas":4,"minReadySeconds":1}}`)
	eventually(t, normal, func() error {
		copied, err := on(t.Context(), shanghai, d)
		if err != nil {
			return err
		}
		if n, _, _ := unstructured.NestedInt64(copied.Object, "spec", "minReadySeconds"); n != 1 {
			return errors.New("the edit has not come through")
		}
		return nil
	})
	must(t, replicasOn(t.Context(), shanghai, d, 5))
}

func TestACopyThatLostItsMarksIsMarkedAgain(t *testing.T) {
	for name, merge := range map[string]string{
		"labels-and-annotations": `{"metadata":{"labels":null,"annotations":null},"spec":{"replicas":8}}`,
		"managed-fields":         `{"metadata":{"managedFields":[{}],"annotations":null},"spec":{"replicas":8}}`,
	} {
		t.Run(name, func(t *testing.T) {
			ns := namespace(t)
			w := widget(ns, name)
			// No other field manager changes this field, so the hub's managedFields entry stays.
			must(t, unstructured.SetNestedField(w.Object, "small", "spec", "size"))
			placeWidgets(t, ns, shanghai)
			must(t, suite.Hub.Create(t.Context(), w))
			eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionTrue, "") })
			before, err := on(t.Context(), shanghai, w)
			must(t, err)
			patchSpec(t, suite.Members[shanghai].Client, before.DeepCopy(), merge)
			eventually(t, normal, func() error {
				copied, err := on(t.Context(), shanghai, w)
				if err != nil {
					return err
				}
				if copied.GetLabels()[hubv1.HubLabel] == "" || copied.GetAnnotations()[hubv1.OwnerAnnotation] == "" || copied.GetUID() != before.GetUID() {
					return fmt.Errorf("labels %v, annotations %v", copied.GetLabels(), copied.GetAnnotations())
				}
				return replicasOn(t.Context(), shanghai, w, 3)
			})
			eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionTrue, "") })
		})
	}
}

func TestAnOrphanIsLeftWithoutMarks(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "orphan")
	place(t, ns, "widgets", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai}}, Deletion: hubv1.DeletionPolicy{WhenDeleted: hubv1.RemovalOrphan},
	})
	must(t, suite.Hub.Create(t.Context(), w))
	eventually(t, normal, func() error { return rowIs(t.Context(), w, shanghai, metav1.ConditionTrue, "") })
	must(t, suite.Hub.Delete(t.Context(), w.DeepCopy()))
	eventually(t, normal, func() error { return noBinding(t.Context(), w) })
	copied, err := on(t.Context(), shanghai, w)
	must(t, err)
	for _, m := range copied.GetManagedFields() {
		if m.Manager == hubv1.FieldManager {
			t.Errorf("manager %+v", m)
		}
	}
	if len(copied.GetLabels())+len(copied.GetAnnotations()) > 0 {
		t.Errorf("labels %v, annotations %v", copied.GetLabels(), copied.GetAnnotations())
	}
}

// TestPropagationDecidesWhetherDependentsGoFirst blocks the deletion of a ReplicaSet by a finalizer. With foreground
// deletion, its Deployment must wait for the ReplicaSet. With background deletion, the Deployment must not wait.
func TestPropagationDecidesWhetherDependentsGoFirst(t *testing.T) {
	const hold = "test.hanse.dev/hold"
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground} {
		t.Run(string(propagation), func(t *testing.T) {
			ns := namespace(t)
			d := threeOf(ns, "parent")
			placeDeployments(t, ns, hubv1.DeletionPolicy{PropagationPolicy: propagation})
			must(t, suite.Hub.Create(t.Context(), d))
			member := suite.Members[shanghai]
			var sets appsv1.ReplicaSetList
			eventually(t, normal, func() error {
				if err := member.List(t.Context(), &sets, client.InNamespace(ns)); err != nil || len(sets.Items) != 1 {
					return fmt.Errorf("%d ReplicaSets: %w", len(sets.Items), err)
				}
				return nil
			})
			eventually(t, normal, func() error { return rowIs(t.Context(), d, shanghai, metav1.ConditionTrue, "") })
			child := &sets.Items[0]
			patchSpec(t, member.Client, child.DeepCopy(), `{"metadata":{"finalizers":["`+hold+`"]}}`)
			release := func() error {
				merge := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				return client.IgnoreNotFound(member.Patch(context.WithoutCancel(t.Context()), child.DeepCopy(), merge))
			}
			t.Cleanup(func() { _ = release() })
			must(t, suite.Hub.Delete(t.Context(), d.DeepCopy()))
			if propagation == metav1.DeletePropagationForeground {
				eventually(t, normal, func() error {
					return rowTells(t.Context(), d, metav1.ConditionFalse, hubv1.ReasonFinalizersRemain, metav1.FinalizerDeleteDependents)
				})
				must(t, release())
			}
			eventually(t, normal, func() error { return goneFrom(t.Context(), shanghai, d) })
			eventually(t, normal, func() error { return noBinding(t.Context(), d) })
			if propagation == metav1.DeletePropagationBackground {
				must(t, member.Get(t.Context(), client.ObjectKeyFromObject(child), child))
			}
		})
	}
}

func TestACopyOfAnEarlierObjectIsWithdrawnFromAMemberThatWasAway(t *testing.T) {
	ns := namespace(t)
	w := widget(ns, "older")
	p := placeWidgets(t, ns, singapore, frankfurt)
	must(t, suite.Hub.Create(t.Context(), w))
	for _, m := range []string{singapore, frankfurt} {
		eventually(t, normal, func() error { return rowIs(t.Context(), w, m, metav1.ConditionTrue, "") })
	}
	breakMember(t, frankfurt, "blackhole")
	eventually(t, 60*time.Second, func() error {
		return memberCondition(t.Context(), frankfurt, hubv1.ConditionReady, metav1.ConditionFalse, "")
	})
	must(t, suite.Hub.Delete(t.Context(), w.DeepCopy()))
	again := widget(ns, "older")
	must(t, suite.Hub.Create(t.Context(), again))
	eventually(t, normal, func() error {
		b, err := bindingOf(t.Context(), again)
		if err == nil && b.BindingSpec().ObjectRef.UID != again.GetUID() {
			err = errors.New("the binding does not point to the new object")
		}
		return err
	})
	patchSpec(t, suite.Hub, p, fmt.Sprintf(`{"spec":{"clusters":{"names":[%q]}}}`, singapore))
	eventually(t, normal, func() error {
		b, err := bindingOf(t.Context(), again)
		if err != nil {
			return err
		}
		if target := b.BindingSpec().Target(frankfurt); target == nil || target.State != hubv1.TargetAbsent {
			return fmt.Errorf("the entry of %s is %+v", frankfurt, target)
		}
		return nil
	})
	mendMember(t, frankfurt)
	eventually(t, 60*time.Second, func() error { return goneFrom(t.Context(), frankfurt, again) })
	eventually(t, normal, func() error { return replicasOn(t.Context(), singapore, again, 3) })
}
