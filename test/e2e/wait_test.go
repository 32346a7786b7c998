package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// normal is the longest time for any change that no fault delays, on a machine that also runs another shard and the
// tests on real nodes.
const normal = 60 * time.Second

// poll calls check until it returns nil. After the time-out, poll returns the last error of check.
func poll(ctx context.Context, timeout time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", timeout, err)
		case <-tick.C:
		}
	}
}

// eventually fails the test if check does not return nil within the time-out.
func eventually(t *testing.T, timeout time.Duration, check func() error) {
	t.Helper()
	if err := poll(t.Context(), timeout, check); err != nil {
		t.Fatalf("%v\nend of the hub's log:\n%s", err, suite.hub.LogTail())
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func memberReady(ctx context.Context, name string) error {
	return memberCondition(ctx, name, hubv1.ConditionReady, metav1.ConditionTrue, "")
}

// memberCondition returns nil if the MemberCluster has the condition with this status, and with this reason unless
// reason is empty.
func memberCondition(ctx context.Context, name, conditionType string, status metav1.ConditionStatus, reason string) error {
	var mcl hubv1.MemberCluster
	if err := suite.Hub.Get(ctx, types.NamespacedName{Name: name}, &mcl); err != nil {
		return err
	}
	c := meta.FindStatusCondition(mcl.Status.Conditions, conditionType)
	if c == nil || c.Status != status || (reason != "" && c.Reason != reason) {
		return fmt.Errorf("MemberCluster %s: condition %s is %+v, want %s %s", name, conditionType, c, status, reason)
	}
	return nil
}

// namespace creates a namespace on the hub. After the test, it deletes the namespace and all federated objects in it.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	must(t, suite.Hub.Create(t.Context(), ns))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), normal)
		defer cancel()
		w := widget(ns.Name, "")
		if err := suite.Hub.DeleteAllOf(ctx, w, client.InNamespace(ns.Name)); err != nil {
			t.Errorf("removing the widgets of %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

var widgetKind = schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Widget"}

// widget returns a Widget with 3 replicas.
func widget(namespace, name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(3)}}}
	w.SetGroupVersionKind(widgetKind)
	w.SetNamespace(namespace)
	w.SetName(name)
	return w
}

// manyRemovals is a removal limit so high that the hub never holds removals. Tests of other features use this limit.
var manyRemovals = &hubv1.RemovalLimit{Copies: ptr.To[int32](1000)}

// placeWidgets creates a Placement named "widgets" for all Widgets of the namespace, with manyRemovals as removal
// limit. Without names, it selects every cluster.
func placeWidgets(t *testing.T, namespace string, names ...string) *hubv1.Placement {
	t.Helper()
	p := &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "widgets"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}},
			Clusters:          hubv1.ClusterSelection{Names: names},
			AllowEmpty:        true,
			RemovalLimit:      manyRemovals,
		},
	}
	if len(names) == 0 {
		p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	}
	must(t, suite.Hub.Create(t.Context(), p))
	return p
}

// on returns the copy of a hub object on a member.
func on(ctx context.Context, member string, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	copied := &unstructured.Unstructured{}
	copied.SetGroupVersionKind(obj.GroupVersionKind())
	err := suite.Members[member].Get(ctx, client.ObjectKeyFromObject(obj), copied)
	return copied, err
}

// replicasOn returns nil if the copy on the member has this spec.replicas.
func replicasOn(ctx context.Context, member string, obj *unstructured.Unstructured, want int64) error {
	copied, err := on(ctx, member, obj)
	if err != nil {
		return fmt.Errorf("on %s: %w", member, err)
	}
	if got, _, _ := unstructured.NestedInt64(copied.Object, "spec", "replicas"); got != want {
		return fmt.Errorf("on %s: spec.replicas is %d, want %d", member, got, want)
	}
	return nil
}

// goneFrom returns nil if the object does not exist on the member.
func goneFrom(ctx context.Context, member string, obj *unstructured.Unstructured) error {
	_, err := on(ctx, member, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) { // a member that does not serve the kind has no copy
		return nil
	}
	return errors.Join(fmt.Errorf("%s %s is still on %s", obj.GetKind(), obj.GetName(), member), err)
}

// bindingOf returns the binding of a hub object.
func bindingOf(ctx context.Context, obj *unstructured.Unstructured) (hubv1.BindingObject, error) {
	gvk := obj.GroupVersionKind()
	id := hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	b := hubv1.NewBinding(id.BindingKey())
	return b, suite.Hub.Get(ctx, id.BindingKey(), b)
}

// rowIs returns nil if the object's row for the cluster has this Applied status, and this reason unless reason is
// empty.
func rowIs(ctx context.Context, obj *unstructured.Unstructured, cluster string, applied metav1.ConditionStatus, reason string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	row := b.BindingStatus().Row(cluster)
	if row == nil || row.Applied != applied || (reason != "" && row.Reason != reason) {
		return fmt.Errorf("row of %s on %s is %+v, want %s %s", obj.GetName(), cluster, row, applied, reason)
	}
	return nil
}

// bindingCondition returns nil if the object's binding has the condition with this status, and with this reason unless
// reason is empty.
func bindingCondition(ctx context.Context, obj *unstructured.Unstructured, conditionType string, status metav1.ConditionStatus, reason string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, conditionType)
	if c == nil || c.Status != status || (reason != "" && c.Reason != reason) {
		return fmt.Errorf("binding of %s: condition %s is %+v, want %s %s", obj.GetName(), conditionType, c, status, reason)
	}
	return nil
}

// everyCluster returns a selection of all clusters.
func everyCluster() hubv1.ClusterSelection {
	return hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
}

// place creates a Placement with this spec for one selector, with manyRemovals as removal limit.
func place(t *testing.T, namespace, name string, s hubv1.ResourceSelector, spec hubv1.PlacementSpec) *hubv1.Placement {
	t.Helper()
	spec.ResourceSelectors = []hubv1.ResourceSelector{s}
	spec.AllowEmpty, spec.RemovalLimit = true, manyRemovals
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	must(t, suite.Hub.Create(t.Context(), p))
	return p
}

// configMap returns a ConfigMap with one key.
func configMap(namespace, name string) *unstructured.Unstructured {
	cm := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": "value"}}}
	cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	cm.SetNamespace(namespace)
	cm.SetName(name)
	return cm
}

// breakMember sets a fault on the link to a member. The fault ends with the test, or earlier by mendMember.
func breakMember(t *testing.T, member string, fault ...string) {
	t.Helper()
	must(t, suite.Fault(t.Context(), member, fault...))
	t.Cleanup(func() { mendMember(t, member) })
}

// mendMember ends the fault of the link to a member, and waits until the member is ready again.
func mendMember(t *testing.T, member string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 90*time.Second)
	defer cancel()
	must(t, suite.Fault(ctx, member, "none"))
	must(t, poll(ctx, 60*time.Second, func() error { return memberReady(ctx, member) }))
}

// restoreCRD applies the original Widget CRD to a member, and waits until the member serves it.
func restoreCRD(t *testing.T, member string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 60*time.Second)
	defer cancel()
	must(t, poll(ctx, 60*time.Second, func() error {
		return applyCRD(ctx, suite.Members[member].Client, "testdata/widget-crd.yaml")
	}))
}

// noBinding returns nil if the object has no binding.
func noBinding(ctx context.Context, obj *unstructured.Unstructured) error {
	_, err := bindingOf(ctx, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(fmt.Errorf("the binding of %s is still there", obj.GetName()), err)
}

// observedPlacement returns nil if the hub has observed the current generation of the placement.
func observedPlacement(ctx context.Context, p *hubv1.Placement) error {
	var now hubv1.Placement
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return err
	}
	if now.Status.ObservedGeneration != now.Generation {
		return fmt.Errorf("placement %s is at generation %d, observed %d", p.Name, now.Generation, now.Status.ObservedGeneration)
	}
	return nil
}

func contains(s, part string) bool { return strings.Contains(s, part) }

func toJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return string(raw)
}
