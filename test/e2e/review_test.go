package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestRowsSayThatAClusterHasNoSecret deletes the Secret of a member. No row of the member may still look healthy.
func TestRowsSayThatAClusterHasNoSecret(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "cut-off")
	placeWidgets(t, ns, frankfurt)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, frankfurt, metav1.ConditionTrue, "") })
	t.Cleanup(func() {
		setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
		must(t, poll(context.WithoutCancel(t.Context()), time.Minute, func() error { return memberReady(context.WithoutCancel(t.Context()), frankfurt) }))
	})
	must(t, suite.Hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: frankfurt}}))
	eventually(t, normal, func() error {
		return rowIs(ctx, w, frankfurt, metav1.ConditionUnknown, hubv1.ReasonSecretMissing)
	})
	setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
	eventually(t, normal, func() error { return rowIs(ctx, w, frankfurt, metav1.ConditionTrue, "") })
}

// TestASuspendedPlacementThatIsDeletedHoldsNoWithdrawalUp deletes a suspended placement together with its object, as
// the uninstallation of a chart would do.
func TestASuspendedPlacementThatIsDeletedHoldsNoWithdrawalUp(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "suspended")
	p := placeWidgets(t, ns, shanghai)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionTrue, "") })
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":{"dispatching":true}}}`))))
	eventually(t, normal, func() error { return observedPlacement(ctx, p) })
	must(t, suite.Hub.Delete(ctx, widget(ns, "suspended")))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonSuspended) })
	must(t, suite.Hub.Delete(ctx, p))
	eventually(t, normal, func() error { return goneFrom(ctx, shanghai, w) })
	eventually(t, normal, func() error {
		if _, err := bindingOf(ctx, w); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the binding is still there"), err)
		}
		return nil
	})
}

// TestAFieldConflictThatWasSettledIsSeen changes a field of a copy as another field manager, and then changes it back.
// The other manager still owns the field, and the hub must clear the conflict in the row although no field of the copy
// differs any more.
func TestAFieldConflictThatWasSettledIsSeen(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "argued")
	p := placeWidgets(t, ns, singapore)
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"apply":{"fieldConflict":"Report"}}}`))))
	eventually(t, normal, func() error { return observedPlacement(ctx, p) })
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
	set := func(replicas int) {
		t.Helper()
		raw := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		must(t, suite.Members[singapore].Patch(ctx, widget(ns, "argued"), client.RawPatch(types.MergePatchType, raw), client.FieldOwner("kubectl-edit")))
	}
	set(9)
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionFalse, hubv1.ReasonFieldConflict) })
	set(3)
	eventually(t, 2*normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
}
