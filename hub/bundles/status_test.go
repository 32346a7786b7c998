package bundles

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// bound is an object with a binding that follows a placement, whose condition Applied has this status; "" is none.
func bound(name string, applied metav1.ConditionStatus) object {
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Name: "web"}
	b.Status.ObservedGeneration = 2
	if applied != "" {
		b.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionApplied, Status: applied, Reason: "Reason" + string(applied), Message: "says " + string(applied)}}
	}
	b.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu", State: hubv1.TargetPresent}, {Name: "us", State: hubv1.TargetAbsent}}
	b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Generation: 5}}
	return object{hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: name}, 5, b}
}

// change returns the object with a change of its binding.
func (o object) change(f func(*hubv1.ResourceBinding)) object {
	f(o.binding.(*hubv1.ResourceBinding))
	return o
}

func unbound(name string) object { return object{id: bound(name, "").id} }

func TestTheConditionOfABundleIsTheWorstOfItsObjects(t *testing.T) {
	t.Parallel()
	unplaced := bound("c", metav1.ConditionTrue).change(func(b *hubv1.ResourceBinding) { b.Spec.PlacementRef = nil })
	outdated := bound("d", metav1.ConditionTrue).change(func(b *hubv1.ResourceBinding) { b.Status.ObservedGeneration = 1 })
	older := bound("d", metav1.ConditionTrue).change(func(b *hubv1.ResourceBinding) { b.Status.Clusters[0].Generation = 4 })
	unreported := bound("d", metav1.ConditionTrue).change(func(b *hubv1.ResourceBinding) { b.Status.Clusters = nil })
	const nothing = "no placement selects this bundle: select it by a resourceSelector with apiGroup hanse.dev"
	tests := map[string]struct {
		objects []object
		placed  int32
		want    metav1.Condition
	}{
		"all are True": {[]object{bound("a", "True"), bound("b", "True")}, 2, metav1.Condition{Status: "True", Reason: "Good"}},
		"one is False": {
			[]object{bound("a", "True"), bound("b", "False"), bound("e", "Unknown"), unbound("f")}, 3,
			metav1.Condition{Status: "False", Reason: "ReasonFalse", Message: "ConfigMap shop/b: says False"},
		},
		"four are False": {
			[]object{bound("d", "False"), bound("c", "False"), bound("b", "False"), bound("a", "False")}, 4,
			metav1.Condition{Status: "False", Reason: "ReasonFalse", Message: "ConfigMap shop/a: says False; ConfigMap shop/b: says False; ConfigMap shop/c: says False; and 1 more"},
		},
		"one is Unknown": {
			[]object{bound("a", "True"), bound("b", "Unknown"), unbound("f")}, 2,
			metav1.Condition{Status: "Unknown", Reason: "ReasonUnknown", Message: "ConfigMap shop/b: says Unknown"},
		},
		"one has no condition yet": {
			[]object{bound("a", "True"), bound("b", "")}, 2, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNotYetReported, Message: "ConfigMap shop/b"},
		},
		"one has the condition of an earlier decision": {
			[]object{bound("a", "True"), outdated}, 2, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNotYetReported, Message: "ConfigMap shop/d"},
		},
		"one has copies of an earlier manifest": {
			[]object{bound("a", "True"), older}, 2, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNotYetReported, Message: "ConfigMap shop/d"},
		},
		"one has no row of a cluster yet": {
			[]object{bound("a", "True"), unreported}, 2, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNotYetReported, Message: "ConfigMap shop/d"},
		},
		"one has no binding": {
			[]object{bound("a", "True"), unbound("b")}, 1, metav1.Condition{Status: "False", Reason: hubv1.ReasonPartlyPlaced, Message: "these objects follow no placement: ConfigMap shop/b"},
		},
		"one has a binding without a placement": {
			[]object{bound("a", "True"), unplaced}, 1, metav1.Condition{Status: "False", Reason: hubv1.ReasonPartlyPlaced, Message: "these objects follow no placement: ConfigMap shop/c"},
		},
		"none follows a placement": {[]object{unbound("a"), unplaced}, 0, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNothingPlaced, Message: nothing}},
		"there are no objects":     {nil, 0, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNothingPlaced, Message: nothing}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.want.Type = hubv1.ConditionApplied
			if diff := cmp.Diff(tc.want, worst(hubv1.ConditionApplied, "Good", tc.objects)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			status := hubv1.BundleStatus{Objects: 7, Placed: 7}
			fold(&status, tc.objects)
			if int(status.Objects) != len(tc.objects) || status.Placed != tc.placed {
				t.Errorf("counted are %d objects, %d placed", status.Objects, status.Placed)
			}
		})
	}
}
