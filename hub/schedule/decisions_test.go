package schedule

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestADecisionThatChangesOnlyItsMessageIsRecognised(t *testing.T) {
	t.Parallel()
	before := decide.Status{Scheduled: metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled, Message: "3 of 3 clusters", ObservedGeneration: 1}}
	for name, test := range map[string]struct {
		change            func(*decide.Status)
		changed, asBefore bool
	}{
		"the same":        {func(*decide.Status) {}, false, true},
		"another message": {func(d *decide.Status) { d.Scheduled.Message = "2 of 3 clusters" }, true, true},
		"other rejections": {func(d *decide.Status) {
			d.Decision = &hubv1.DecisionStatus{Rejected: []hubv1.RejectedClusters{{Reason: hubv1.ReasonClusterNotReady, Count: 1}}}
		}, true, true},
		"another spec":   {func(d *decide.Status) { d.Scheduled.ObservedGeneration = 2 }, true, false},
		"another reason": {func(d *decide.Status) { d.Scheduled.Reason = hubv1.ReasonSuspended }, true, false},
		"another status": {func(d *decide.Status) { d.Scheduled.Status = metav1.ConditionFalse }, true, false},
	} {
		var all decisions
		key := types.NamespacedName{Namespace: "shop", Name: "web"}
		if changed, asBefore := all.set(key, before); !changed || asBefore {
			t.Errorf("the first decision: changed %t, as before %t", changed, asBefore)
		}
		now := before
		test.change(&now)
		if changed, asBefore := all.set(key, now); changed != test.changed || asBefore != test.asBefore {
			t.Errorf("%s: changed %t, as before %t; want %t, %t", name, changed, asBefore, test.changed, test.asBefore)
		}
	}
}
