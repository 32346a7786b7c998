package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// mayAdopt gives a viewer the right to adopt existing objects in Shanghai.
func mayAdopt(t *testing.T, ns, name string) {
	t.Helper()
	name = ns + "-" + name
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-adopts"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, ResourceNames: []string{shanghai}, Verbs: []string{"adopt"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-adopts"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name + "-adopts"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hubv1.SystemNamespace, Name: name}},
		},
	} {
		must(t, suite.Hub.Create(t.Context(), o))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), o) })
	}
	right := authorizationv1.ResourceAttributes{Group: "hanse.dev", Resource: "memberclusters", Name: shanghai, Verb: "adopt"}
	user := "system:serviceaccount:" + hubv1.SystemNamespace + ":" + name
	eventually(t, normal, func() error { return mayDo(t.Context(), user, &right) })
}

// TestAUserTakesObjectsOverOneByOne adopts single objects with hansectl. Their placement does not adopt any object.
func TestAUserTakesObjectsOverOneByOne(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	before := foreign(t, ns, "same", 3)
	foreign(t, ns, "other", 1)
	placeWidgets(t, ns, shanghai, singapore)
	same, other := widget(ns, "same"), widget(ns, "other")
	must(t, suite.Hub.Create(ctx, same))
	must(t, suite.Hub.Create(ctx, other))
	eventually(t, normal, func() error {
		return errors.Join(
			rowTells(ctx, same, metav1.ConditionFalse, hubv1.ReasonAlreadyExists, "hansectl adopt"),
			rowIs(ctx, same, singapore, metav1.ConditionTrue, ""),
			rowIs(ctx, other, shanghai, metav1.ConditionFalse, hubv1.ReasonAlreadyExists),
			rowIs(ctx, other, singapore, metav1.ConditionTrue, ""))
	})
	update := rbacv1.PolicyRule{APIGroups: []string{widgetKind.Group}, Resources: []string{"widgets"}, Verbs: []string{"get", "update"}}
	reader, adopter := newViewer(t, ns, "reader", update), newViewer(t, ns, "adopter", update)
	mayAdopt(t, ns, "adopter")
	of := func(command, name string, flags ...string) []string {
		return append([]string{command, "widget/" + name, "-n", ns}, flags...)
	}

	reader.says(1, []string{"needs the verb adopt", "1 cluster could not be asked"}, of("adopt", "same", "--yes")...)
	reader.says(2, []string{"needs the verb adopt on MemberCluster " + shanghai}, of("diff", "other")...)
	adopter.says(0, []string{shanghai + "   Adoptable   nothing would change", singapore + "    Copy"}, of("adopt", "same", "--dry-run")...)
	must(t, rowIs(ctx, same, shanghai, metav1.ConditionFalse, hubv1.ReasonAlreadyExists))
	adopter.says(0, []string{shanghai + "   Adopted"}, of("adopt", "same", "--yes")...)
	eventually(t, normal, func() error {
		if err := rowIs(ctx, same, shanghai, metav1.ConditionTrue, ""); err != nil {
			return err
		}
		b, err := bindingOf(ctx, same)
		if err != nil {
			return err
		}
		if row := b.BindingStatus().Row(shanghai); !row.Adopted || row.UID != before.GetUID() {
			return fmt.Errorf("the row does not know that the copy was adopted: %+v", row)
		}
		return nil
	})

	adopter.says(1, []string{"Differs", ".spec.replicas", "1 object not taken over"}, of("adopt", "other", "--yes")...)
	adopter.says(1, []string{"on the cluster, not Hanse's", "-  replicas: 1", "+  replicas: 3", "AlreadyExists"}, of("diff", "other")...)
	must(t, replicasOn(ctx, shanghai, other, 1))
	adopter.says(0, []string{"would change .spec.replicas", shanghai + "   Adopted"}, of("adopt", "other", "--overwrite", "--yes")...)
	eventually(t, normal, func() error {
		return errors.Join(replicasOn(ctx, shanghai, other, 3), rowIs(ctx, other, shanghai, metav1.ConditionTrue, ""))
	})

	must(t, suite.Hub.Delete(ctx, same))
	eventually(t, normal, func() error { return goneFrom(ctx, singapore, same) })
	eventually(t, normal, func() error {
		left, err := on(ctx, shanghai, same)
		if err != nil {
			return err
		}
		if left.GetUID() != before.GetUID() || left.GetLabels()[hubv1.HubLabel] != "" {
			return fmt.Errorf("the adopted object is not left as it was: %v", left.Object["metadata"])
		}
		return nil
	})
}
