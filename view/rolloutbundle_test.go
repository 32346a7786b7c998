package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestABundleIsRolledOutAsOneObject(t *testing.T) {
	t.Parallel()
	gears := &hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "gears"}
	waits, back := hubv1.BindingRollout{Phase: hubv1.RolloutWaitingForApproval, Wave: "rest"}, hubv1.BindingRollout{Phase: hubv1.RolloutRolledBack}
	complete, failed := hubv1.BindingRollout{Phase: hubv1.RolloutComplete}, hubv1.BindingRollout{Phase: hubv1.RolloutRolledBack, RolledBack: 2}
	alone := func(name string, of *hubv1.BundleReference, r hubv1.BindingRollout) *hubv1.ResourceBinding {
		b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
		b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, Bundle: of}
		b.Spec.Rollout = &r
		return b
	}
	follows := func(name string, r hubv1.BindingRollout) *hubv1.ResourceBinding {
		b := alone(name, gears, r)
		b.Annotations = map[string]string{hubv1.SetFollowedAnnotation: "true"}
		return b
	}
	for name, tc := range map[string]struct {
		objects []hubv1.BindingObject
		want    []string
	}{
		"the object that changes stands for the bundle": {
			[]hubv1.BindingObject{follows("a", complete), follows("b", waits), alone("c", nil, waits)}, []string{"FederatedOperator gears", "ConfigMap shop/c"},
		},
		"a bundle that was rolled back is one": {
			[]hubv1.BindingObject{follows("a", failed), follows("b", back)}, []string{"FederatedOperator gears"},
		},
		"a bundle that changes after a rollback is one": {
			[]hubv1.BindingObject{follows("a", back), follows("b", waits), follows("c", back)}, []string{"FederatedOperator gears"},
		},
		"objects with rollouts of their own are shown as such": {
			[]hubv1.BindingObject{alone("a", gears, waits), alone("b", gears, waits), alone("c", gears, back)}, []string{"ConfigMap shop/a", "ConfigMap shop/b", "ConfigMap shop/c"},
		},
	} {
		var got []string
		for _, o := range PlacementRolloutOf(&hubv1.Placement{}, tc.objects).Objects {
			got = append(got, o.Name())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
