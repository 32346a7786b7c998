package report

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// cached is a cache with one binding at most. In which order others hear of it cannot be told a real one.
type cached struct {
	client.Client
	binding *hubv1.ResourceBinding
}

// Get implements client.Reader.
func (c *cached) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.binding == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	c.binding.DeepCopyInto(into.(*hubv1.ResourceBinding))
	return nil
}

// TestWhatIsKeptOfAnOutcomeWhoseBindingHasChanged has dispatch and the reporter hear of the same change one after the
// other.
func TestWhatIsKeptOfAnOutcomeWhoseBindingHasChanged(t *testing.T) {
	suspended := refusedBy(hubv1.ReasonSuspended)
	another := bindingOf(1, present("a"))
	another.UID = "another"
	tests := map[string]struct {
		known   *hubv1.ResourceBinding // to the reporter, by the last event
		tried   *hubv1.ResourceBinding
		cached  *hubv1.ResourceBinding // nil if it is gone
		outcome member.Outcome
		want    string // the reason that is kept in the end
	}{
		"that of the decision that is known": {
			bindingOf(1, present("a")), bindingOf(1, present("a")), bindingOf(1, present("a")), suspended, hubv1.ReasonSuspended,
		},
		"that of a withdrawal whose event is yet to come, though its reason is that of any decision": {
			bindingOf(1, present("a")), bindingOf(2, absent("a")), bindingOf(2, absent("a")), suspended, hubv1.ReasonSuspended,
		},
		"that of another binding of the name, whose event is yet to come": {
			bindingOf(3, present("a")), another, another, suspended, hubv1.ReasonSuspended,
		},
		"none of a copy that is to be withdrawn by now": {
			bindingOf(2, absent("a")), bindingOf(1, present("a")), bindingOf(2, absent("a")), appliedAt(1), "",
		},
		"none of a withdrawal of what is wanted again": {
			bindingOf(2, present("a")), bindingOf(1, absent("a")), bindingOf(2, present("a")), refusedBy(hubv1.ReasonWithdrawn), "",
		},
		"none of a binding that another has taken the name of": {
			another, bindingOf(3, present("a")), another, suspended, "",
		},
		"none of a binding that is gone": {
			nil, bindingOf(1, present("a")), nil, suspended, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Reporter{
				opts: Options{Client: &cached{binding: tc.cached}, Clock: clock.RealClock{}, Holds: func(string) bool { return true }},
				ctx:  t.Context(), throttle: &throttle{clock: clock.RealClock{}}, entries: map[types.NamespacedName]*entry{},
			}
			if tc.known != nil {
				r.bindingChanged(tc.known, normalPriority)
			}
			r.Record(tc.tried, "a", tc.outcome)
			if tc.known != nil && tc.cached != nil { // the events that were yet to come
				if tc.known.UID != tc.cached.UID {
					r.bindingGone(tc.known)
				}
				r.bindingChanged(tc.cached, normalPriority)
			}
			got := ""
			if e := r.entries[client.ObjectKeyFromObject(tc.tried)]; e != nil {
				got = e.outcomes["a"].Reason
			} else if tc.cached != nil {
				t.Fatal("the binding is not known")
			}
			if got != tc.want {
				t.Errorf("kept: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatNobodyKnowsOfManyObjectsIsToldOneAfterTheOther(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := testclock.NewFakePassiveClock(now)
	r := &Reporter{
		opts:     Options{Clock: clock, Holds: func(string) bool { return true }},
		throttle: &throttle{clock: clock}, entries: map[types.NamespacedName]*entry{},
		unsure: turns{per: perUnsure, longest: longestUnsures},
	}
	silent := member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonUnreachable}
	due := func(name string, last member.Outcome, told bool) time.Duration {
		b := bindingOf(1, present("good"), present("bad"))
		b.Name = name
		r.bindingChanged(b, normalPriority)
		r.Record(b, "good", appliedAt(1))
		w := &r.entries[client.ObjectKeyFromObject(b)].window
		if told {
			w.shut(now)
		}
		r.Record(b, "bad", last)
		return w.due.Sub(now)
	}
	for _, step := range []struct {
		what string
		last member.Outcome
		told bool // what is known of the other member
		want time.Duration
	}{
		{"the first object", silent, true, 0},
		{"the second", silent, true, perUnsure},
		{"one of which something else is to be told", silent, false, 0},
		{"one that is refused", refusedBy(hubv1.ReasonForbidden), true, 0},
		{"the third", silent, true, 2 * perUnsure},
	} {
		if got := due(step.what, step.last, step.told); got != step.want {
			t.Errorf("%s: told after %s, want %s", step.what, got, step.want)
		}
	}
}
