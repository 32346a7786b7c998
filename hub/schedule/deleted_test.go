package schedule

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestHowOftenLiveIsAskedAboutADeletedObject(t *testing.T) {
	t.Parallel()
	ending := absent("eu", hubv1.ReasonObjectDeleted, hubv1.RemovalDelete)
	other := bound(ending)
	other.Spec.ObjectRef.UID = "b"
	tests := map[string]struct {
		later   *hubv1.ResourceBinding
		after   time.Duration
		between func(*testing.T, *Scheduler)
		want    int
	}{
		"once for the decision and the steps after it":           {later: bound(ending), want: 1},
		"again while a cluster shall hold it":                    {later: bound(present("eu"), ending), want: 2},
		"again if the binding is for another object":             {later: other, want: 2},
		"once until the answer is old":                           {later: bound(ending), after: deletedHolds - time.Second, want: 1},
		"again if the answer is old":                             {later: bound(ending), after: deletedHolds, want: 2},
		"again if it was seen to live":                           {later: bound(ending), between: seenAlive, want: 2},
		"again if it had no binding, and one is there once more": {later: bound(ending), between: seenUnbound, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := testclock.NewFakePassiveClock(now)
			hub := &hubObjects{asked: map[key]int{}}
			s := New(Options{Templates: hub, Clock: clock})
			looksGone(t, s, bound(present("eu")))
			if tc.between != nil {
				tc.between(t, s)
			}
			clock.SetTime(now.Add(tc.after))
			looksGone(t, s, tc.later)
			if got := hub.asked[object]; got != tc.want {
				t.Errorf("Live was asked %d times, want %d", got, tc.want)
			}
		})
	}
}

func looksGone(t *testing.T, s *Scheduler, b hubv1.BindingObject) {
	t.Helper()
	if o, err := s.find(t.Context(), decide.Object{ID: object}, b); err != nil || o.State != decide.Deleted {
		t.Errorf("state %d, want Deleted (error %v)", o.State, err)
	}
}

func seenAlive(t *testing.T, s *Scheduler) {
	t.Helper()
	hub := s.opts.Templates.(*hubObjects)
	hub.cached = map[key]*unstructured.Unstructured{object: template("a")}
	defer delete(hub.cached, object)
	if o, err := s.find(t.Context(), decide.Object{ID: object}, bound(present("eu"))); err != nil || o.State != decide.Exists {
		t.Errorf("state %d, want Exists (error %v)", o.State, err)
	}
}

func seenUnbound(t *testing.T, s *Scheduler) {
	t.Helper()
	looksGone(t, s, nil)
}
