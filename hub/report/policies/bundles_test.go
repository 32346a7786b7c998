package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// bound returns an object of a bundle. Its binding follows a placement, and has the condition Applied with this status.
// An empty status means that the condition is missing.
func bound(name string, applied metav1.ConditionStatus) bundled {
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Name: "web"}
	b.Status.ObservedGeneration = 2
	if applied != "" {
		b.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionApplied, Status: applied, Reason: "Reason" + string(applied), Message: "says " + string(applied)}}
	}
	b.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu", State: hubv1.TargetPresent}, {Name: "us", State: hubv1.TargetAbsent}}
	b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Generation: 5}}
	return bundled{id: hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: name}, generation: 5, binding: b}
}

// change lets f change the object's binding, and returns the object.
func (o bundled) change(f func(*hubv1.ResourceBinding)) bundled {
	f(o.binding.(*hubv1.ResourceBinding))
	return o
}

func unbound(name string) bundled { return bundled{id: bound(name, "").id} }

func TestTheConditionOfABundleIsTheWorstOfItsObjects(t *testing.T) {
	t.Parallel()
	unplaced := bound("c", metav1.ConditionTrue).change(func(b *hubv1.ResourceBinding) { b.Spec.PlacementRef = nil })
	outdated := bound("d", metav1.ConditionTrue).change(func(b *hubv1.ResourceBinding) { b.Status.ObservedGeneration = 1 })
	older := bound("d", metav1.ConditionTrue).change(func(b *hubv1.ResourceBinding) { b.Status.Clusters[0].Generation = 4 })
	unreported := bound("d", metav1.ConditionTrue).change(func(b *hubv1.ResourceBinding) { b.Status.Clusters = nil })
	const nothing = "no placement selects this bundle: add a resourceSelector with apiGroup hanse.dev to a placement"
	tests := map[string]struct {
		objects []bundled
		placed  int32
		want    metav1.Condition
	}{
		"all are True": {[]bundled{bound("a", "True"), bound("b", "True")}, 2, metav1.Condition{Status: "True", Reason: "Good"}},
		"one is False": {
			[]bundled{bound("a", "True"), bound("b", "False"), bound("e", "Unknown"), unbound("f")}, 3,
			metav1.Condition{Status: "False", Reason: "ReasonFalse", Message: "1 of 4 objects: ConfigMap shop/b: says False"},
		},
		"four are False": {
			[]bundled{bound("a", "False"), bound("b", "False"), bound("c", "False"), bound("d", "False")}, 4,
			metav1.Condition{Status: "False", Reason: "ReasonFalse", Message: "4 of 4 objects: ConfigMap shop/a: says False, ConfigMap shop/b: says False, ConfigMap shop/c: says False and 1 more"},
		},
		"one is Unknown": {
			[]bundled{bound("a", "True"), bound("b", "Unknown"), unbound("f")}, 2,
			metav1.Condition{Status: "Unknown", Reason: "ReasonUnknown", Message: "1 of 3 objects: ConfigMap shop/b: says Unknown"},
		},
		"one has no condition yet": {
			[]bundled{bound("a", "True"), bound("b", "")}, 2, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNotYetReported, Message: "1 of 2 objects: ConfigMap shop/b"},
		},
		"one has the condition of an earlier decision": {
			[]bundled{bound("a", "True"), outdated}, 2, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNotYetReported, Message: "1 of 2 objects: ConfigMap shop/d"},
		},
		"one has copies of an earlier manifest": {
			[]bundled{bound("a", "True"), older}, 2, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNotYetReported, Message: "1 of 2 objects: ConfigMap shop/d"},
		},
		"one has no row of a cluster yet": {
			[]bundled{bound("a", "True"), unreported}, 2, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNotYetReported, Message: "1 of 2 objects: ConfigMap shop/d"},
		},
		"one has no binding": {
			[]bundled{bound("a", "True"), unbound("b")}, 1, metav1.Condition{Status: "False", Reason: hubv1.ReasonPartlyPlaced, Message: "no placement selects 1 of 2 objects: ConfigMap shop/b"},
		},
		"one has a binding without a placement": {
			[]bundled{bound("a", "True"), unplaced}, 1, metav1.Condition{Status: "False", Reason: hubv1.ReasonPartlyPlaced, Message: "no placement selects 1 of 2 objects: ConfigMap shop/c"},
		},
		"an object that no revision on a cluster has yet does not count": {
			[]bundled{bound("a", "True"), {id: unbound("b").id, notOn: func(string) bool { return true }}}, 1, metav1.Condition{Status: "True", Reason: "Good"},
		},
		"none follows a placement": {[]bundled{unbound("a"), unplaced}, 0, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNothingPlaced, Message: nothing}},
		"there are no objects":     {nil, 0, metav1.Condition{Status: "Unknown", Reason: hubv1.ReasonNothingPlaced, Message: "the hub has stored no object of this bundle: the condition Stored says why"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.want.Type = hubv1.ConditionApplied
			if diff := cmp.Diff(tc.want, worstOf(hubv1.ConditionApplied, "Good", tc.objects)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			b := &hubv1.Bundle{Status: hubv1.BundleStatus{Objects: 7, Placed: 7}}
			foldBundle(b, tc.objects)
			status := b.Status
			if int(status.Objects) != len(tc.objects) || status.Placed != tc.placed {
				t.Errorf("counted are %d objects, %d placed", status.Objects, status.Placed)
			}
		})
	}
}

func TestTheConditionsOfABundleAreAboutItsStoredManifests(t *testing.T) {
	t.Parallel()
	stored := func(status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: hubv1.ConditionStored, Status: status, Reason: "R", ObservedGeneration: generation}
	}
	tests := map[string]struct {
		conditions []metav1.Condition
		want       int64
	}{
		"the newest ones":                         {[]metav1.Condition{stored("True", 3)}, 3},
		"the newest ones are not stored yet":      {[]metav1.Condition{stored("True", 2), {Type: hubv1.ConditionApplied, Status: "True", ObservedGeneration: 2}}, 2},
		"the newest ones are refused":             {[]metav1.Condition{stored("False", 3), {Type: hubv1.ConditionApplied, Status: "True", ObservedGeneration: 1}}, 1},
		"none were ever stored":                   {[]metav1.Condition{stored("False", 3)}, 0},
		"the hub has not looked at the manifests": {nil, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: hubv1.BundleStatus{Conditions: tc.conditions}}
			foldBundle(b, []bundled{bound("a", "True")})
			if c := meta.FindStatusCondition(b.Status.Conditions, hubv1.ConditionApplied); c == nil || c.ObservedGeneration != tc.want {
				t.Errorf("the condition Applied is %+v, want generation %d", c, tc.want)
			}
		})
	}
}

// heldRemovals are the held removals of one bundle. They wait for a user's confirmation.
type heldRemovals struct {
	of   hubv1.BundleReference
	held *hubv1.RemovalHeld
}

// Removal implements Removals.
func (h heldRemovals) Removal(kind, namespace, name string, was *hubv1.RemovalHeld) (*hubv1.RemovalHeld, *metav1.Condition) {
	if (hubv1.BundleReference{Kind: kind, Namespace: namespace, Name: name}) != h.of {
		return was, nil
	}
	return h.held, &metav1.Condition{Type: hubv1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: hubv1.ReasonTooManyRemovals}
}

func TestTheStatusOfABundleShowsItsHeldRemovals(t *testing.T) {
	t.Parallel()
	held := &hubv1.RemovalHeld{ID: "7f3a9c11", Copies: 114}
	for kind, namespace := range map[string]string{hubv1.BundleKind: "shop", hubv1.ClusterBundleKind: "", hubv1.FederatedOperatorKind: ""} {
		of := hubv1.BundleReference{Kind: kind, Namespace: namespace, Name: "web"}
		b := of.New()
		b.SetGeneration(3)
		o := Options{Removals: heldRemovals{of, held}}
		o.foldRemoval(kind, b, &b.BundleStatus().RemovalHeld, &b.BundleStatus().Conditions)
		c := meta.FindStatusCondition(b.BundleStatus().Conditions, hubv1.ConditionRemovalHeld)
		if hubv1.RemovalHeldOf(b) != held || c == nil || c.Reason != hubv1.ReasonTooManyRemovals || c.ObservedGeneration != 3 {
			t.Errorf("%s holds %+v, its condition is %+v", of, hubv1.RemovalHeldOf(b), c)
		}
		o.Removals = heldRemovals{} // this process does not know yet whether removals are held
		o.foldRemoval(kind, b, &b.BundleStatus().RemovalHeld, &b.BundleStatus().Conditions)
		if hubv1.RemovalHeldOf(b) != held {
			t.Errorf("an unknown state changes what %s holds to %+v", of, hubv1.RemovalHeldOf(b))
		}
	}
}
