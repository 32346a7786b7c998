package report

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// cached is a cache with at most one binding. With a real cache, a test cannot control in which order the reporter and
// dispatch see a change.
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

// TestWhatIsKeptOfAnOutcomeWhoseBindingHasChanged: dispatch and the reporter see the same change of the binding at
// different times.
func TestWhatIsKeptOfAnOutcomeWhoseBindingHasChanged(t *testing.T) {
	suspended := refusedBy(hubv1.ReasonSuspended)
	another := bindingOf(1, present("a"))
	another.UID = "another"
	tests := map[string]struct {
		known   *hubv1.ResourceBinding // the binding of the reporter's last event; nil if there was no event
		tried   *hubv1.ResourceBinding
		cached  *hubv1.ResourceBinding // the binding in the cache; nil if it is deleted
		outcome member.Outcome
		want    string // the reason of the outcome that is kept
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
				opts: Options{Client: &cached{binding: tc.cached}, Clock: clock.RealClock{}, Shard: Shard{Holds: func(string) bool { return true }}},
				ctx:  t.Context(), entries: map[types.NamespacedName]*entry{},
			}
			if tc.known != nil {
				r.bindingChanged(tc.known, pace.FirstResult)
			}
			r.Record(tc.tried, "a", tc.outcome)
			if tc.known != nil && tc.cached != nil { // now the delayed events arrive
				if tc.known.UID != tc.cached.UID {
					r.bindingGone(tc.known)
				}
				r.bindingChanged(tc.cached, pace.FirstResult)
			}
			got := ""
			if e := r.entries[client.ObjectKeyFromObject(tc.tried)]; e != nil {
				got = e.results.outcomes["a"].Reason
			} else if tc.cached != nil {
				t.Fatal("the binding is not known")
			}
			if got != tc.want {
				t.Errorf("kept: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheClassOfAnOutcome(t *testing.T) {
	rendered := appliedAt(1)
	rendered.Hash = "other"
	silent := member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonUnreachable}
	tests := map[string]struct {
		before  []member.Outcome // outcomes of an earlier window
		earlier []member.Outcome // outcomes of the same window
		last    member.Outcome
		want    pace.Class
	}{
		"a copy that was applied is a first result":           {last: appliedAt(1), want: pace.FirstResult},
		"a copy that is refused is a failure":                 {last: refusedBy(hubv1.ReasonForbidden), want: pace.Failure},
		"a member that is silent is silent for many objects":  {last: silent, want: pace.Many},
		"an edited policy applies many objects again":         {before: []member.Outcome{appliedAt(1)}, last: rendered, want: pace.Many},
		"a change of the object is a first result":            {before: []member.Outcome{appliedAt(1)}, last: appliedAt(2), want: pace.FirstResult},
		"a first result beside one of a silent member counts": {earlier: []member.Outcome{silent}, last: appliedAt(1), want: pace.FirstResult},
		"a failure before a first result counts":              {earlier: []member.Outcome{refusedBy(hubv1.ReasonForbidden)}, last: appliedAt(1), want: pace.Failure},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Reporter{
				opts:    Options{Clock: clock.RealClock{}, Shard: Shard{Holds: func(string) bool { return true }}},
				entries: map[types.NamespacedName]*entry{},
			}
			b := bindingOf(1, present("a"))
			r.bindingChanged(b, pace.Many)
			key := client.ObjectKeyFromObject(b)
			for _, o := range tc.before {
				r.Record(b, "a", o)
			}
			r.shut(key)
			for _, o := range append(tc.earlier, tc.last) {
				r.Record(b, "a", o)
			}
			if got, _ := r.pending(key); got != tc.want {
				t.Errorf("class %d, want %d", got, tc.want)
			}
		})
	}
}
