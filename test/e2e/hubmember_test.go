package e2e

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestTheHubIsAlsoAMember joins the hub to itself, with all rights of a member. The hub must list itself as a member,
// but must neither write nor delete its own hub objects.
func TestTheHubIsAlsoAMember(t *testing.T) {
	ctx := t.Context()
	hub := suite.Hub.Name
	must(t, suite.InstallMember(ctx, suite.Hub, kinds))
	must(t, suite.Join(ctx, suite.Hub, nil))
	self := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: hub}}
	t.Cleanup(func() { removeSelf(t, self) })
	eventually(t, normal, func() error { return memberReady(ctx, hub) })

	ns := namespace(t)
	w, cm := widget(ns, "template"), configMap(ns, "template")
	byName := hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{hub, shanghai}}}
	p := place(t, ns, "here-and-there", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, byName)
	place(t, ns, "configmaps", hubv1.ResourceSelector{Kind: "ConfigMap", Name: "template"}, byName)
	must(t, suite.Hub.Create(ctx, w))
	must(t, suite.Hub.Create(ctx, cm))
	for _, obj := range []*unstructured.Unstructured{w, cm} {
		eventually(t, normal, func() error { return rowIs(ctx, obj, hub, metav1.ConditionTrue, hubv1.ReasonIsTemplate) })
		eventually(t, normal, func() error { return rowIs(ctx, obj, shanghai, metav1.ConditionTrue, "") })
	}
	untouched(t, w)
	untouched(t, cm)

	judgeBy(t, p, "object.spec.replicas == 3 ? 'Degraded' : 'Healthy'")
	for _, m := range []string{hub, shanghai} {
		eventually(t, normal, func() error { return healthIs(ctx, w, m, hubv1.HealthDegraded, "") })
	}

	exclude := []byte(`{"spec":{"clusters":{"excludedNames":["` + hub + `"]}}}`)
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, exclude)))
	eventually(t, normal, func() error { return noRow(ctx, w, hub) })
	untouched(t, w)
	must(t, replicasOn(ctx, shanghai, w, 3))

	must(t, suite.Hub.Patch(ctx, self, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"leave":{"policy":"Delete"}}}`))))
	must(t, suite.Hub.Delete(ctx, self))
	eventually(t, normal, func() error { return gone(ctx, self) })
	eventually(t, normal, func() error { return noRow(ctx, cm, hub) })
	untouched(t, w)
	untouched(t, cm)

	used, _, err := readAudit(suite.Hub.AuditLog, math.MaxInt64, "system:serviceaccount:"+hubv1.SystemNamespace+":hanse")
	must(t, err)
	for what := range used {
		if verb, _, _ := strings.Cut(what, " "); verb != "get" && verb != "list" && verb != "watch" {
			t.Errorf("the hub as a member was asked to %s", what)
		}
	}
}

// untouched fails the test if the hub object has labels or annotations of a copy, has another UID or generation than
// created, or is being deleted.
func untouched(t *testing.T, created *unstructured.Unstructured) {
	t.Helper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(created.GroupVersionKind())
	must(t, suite.Hub.Get(t.Context(), client.ObjectKeyFromObject(created), now))
	must(t, unmarked(now))
	if now.GetUID() != created.GetUID() || now.GetGeneration() != created.GetGeneration() || now.GetDeletionTimestamp() != nil {
		t.Errorf("the %s on the hub was written or deleted: %v", created.GetKind(), now.Object["metadata"])
	}
}

// noRow returns nil if neither spec.clusters nor the rows of the object's binding name the cluster.
func noRow(ctx context.Context, obj *unstructured.Unstructured, cluster string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	if b.BindingSpec().Target(cluster) != nil || b.BindingStatus().Row(cluster) != nil {
		return fmt.Errorf("the binding of %s still names %s", obj.GetName(), cluster)
	}
	return nil
}

// removeSelf removes the hub's MemberCluster for itself, also after a failed test.
func removeSelf(t *testing.T, self *hubv1.MemberCluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*normal)
	defer cancel()
	_ = suite.Hub.Delete(ctx, self)
	must(t, poll(ctx, normal, func() error { return gone(ctx, self) }))
	must(t, client.IgnoreNotFound(suite.Hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: self.Name}})))
	must(t, suite.UninstallMember(ctx, suite.Hub))
}
