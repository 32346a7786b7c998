package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

var (
	timedOut = member.Outcome{Reason: hubv1.ReasonUnreachable, Message: "timed out"}
	broken   = member.Outcome{Reason: hubv1.ReasonServerError, Message: "the cluster answered 500: etcdserver: request timed out"}
	webhook  = member.Outcome{Reason: hubv1.ReasonServerError, Message: `the cluster answered 500: failed calling webhook "a.b"`}
	tooMany  = member.Outcome{Reason: hubv1.ReasonThrottled, Retry: member.RetryAfter, After: 5 * time.Second}
	denied   = member.Outcome{Reason: hubv1.ReasonAdmissionDenied}
	written  = member.Outcome{Reason: hubv1.ReasonApplied}
	gadget   = schema.GroupKind{Group: "test.hanse.dev", Kind: "Gadget"}
)

func TestTheCircuitOpensWhenTheMemberFails(t *testing.T) {
	widget := kind.GroupKind()
	times := func(n int, o member.Outcome) (out []member.Outcome) {
		for range n {
			out = append(out, o)
		}
		return out
	}
	tests := map[string]struct {
		outcomes []member.Outcome // of calls one after the other, each begun when it may
		open     bool
		pause    time.Duration // at least so long, and at most a fifth more
		other    bool          // another kind may be tried during the pause
	}{
		"four failures in a row are chance":                  {outcomes: times(4, timedOut)},
		"five open it":                                       {outcomes: times(5, timedOut), open: true, pause: pauseFirst, other: true},
		"server errors count as well":                        {outcomes: times(5, broken), open: true, pause: pauseFirst, other: true},
		"each trial that fails doubles the pause":            {outcomes: times(8, broken), open: true, pause: 8 * pauseFirst, other: true},
		"the pause has a bound":                              {outcomes: times(40, broken), open: true, pause: pauseMost, other: true},
		"an answer between failures is a good sign":          {outcomes: append(append(times(4, broken), denied), times(4, broken)...)},
		"a trial that succeeds closes it":                    {outcomes: append(times(6, timedOut), written)},
		"a webhook that fails is not the member's fault":     {outcomes: times(20, webhook)},
		"what is refused is not the member's fault":          {outcomes: times(20, denied)},
		"429 pauses everything at once for as long as asked": {outcomes: times(1, tooMany), open: true, pause: 5 * time.Second},
		"429 to the trial pauses for as long again":          {outcomes: times(3, tooMany), open: true, pause: 5 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, at := &circuit{}, now
			for i, o := range tc.outcomes {
				if c.open {
					at = c.until
				}
				if !c.enter(widget, at) {
					t.Fatalf("call %d may not be made", i)
				}
				c.leave(widget, at, at, o)
			}
			if c.open != tc.open {
				t.Fatalf("open is %v, want %v", c.open, tc.open)
			}
			if !tc.open {
				return
			}
			if pause := c.until.Sub(at); pause < tc.pause || pause > tc.pause*6/5 {
				t.Errorf("the pause is %s, want %s and up to a fifth more", pause, tc.pause)
			}
			if c.enter(widget, at) {
				t.Error("the kind that failed may be tried during the pause")
			}
			if got := c.enter(gadget, at); got != tc.other {
				t.Errorf("another kind may be tried: %v, want %v", got, tc.other)
			}
			if tc.other && c.enter(schema.GroupKind{Kind: "Third"}, c.until) {
				t.Error("two may be tried at a time")
			}
		})
	}
}

// TestAShareOfFailuresOpensNoCircuit has a member that fails calls by chance, a hundred of which are made in a second,
// and then all of them.
func TestAShareOfFailuresOpensNoCircuit(t *testing.T) {
	for _, percent := range []int{10, 50, 75} {
		chance := rand.New(rand.NewPCG(1, uint64(percent)))
		c, at := &circuit{}, now
		call := func(o member.Outcome) {
			at = at.Add(10 * time.Millisecond)
			c.leave(kind.GroupKind(), at, at, o)
		}
		call(written)
		for i := range 2000 {
			o := written
			if chance.IntN(100) < percent {
				o = broken
			}
			if call(o); c.open {
				t.Fatalf("%d %% of failures have opened it after %d calls", percent, i)
			}
		}
		died := at
		for range 1000 {
			if call(broken); c.open {
				break
			}
		}
		if wait := at.Sub(died); !c.open || wait > slowCall+time.Second {
			t.Errorf("after %d %%: open is %v %s after the member has died", percent, c.open, wait)
		}
	}
}

func TestCallsThatBeganBeforeThePauseDoNotEndIt(t *testing.T) {
	c := &circuit{}
	c.leave(kind.GroupKind(), now, now.Add(time.Second), tooMany)
	if _, release := c.leave(kind.GroupKind(), now, now.Add(2*time.Second), written); release || !c.open {
		t.Error("a call that was under way has ended the pause")
	}
}

func TestOfWhatIsHeldTheFreshestGoesFirst(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	c := &circuit{}
	for _, k := range []heldKey{
		{due: due{key("failed"), 0}, failed: true}, {due: due{key("replayed"), lowPriority}}, {due: due{key("changed"), 0}},
		{due: due{key("definition"), 3}}, {due: due{key("also changed"), 0}}, {due: due{key("replayed"), lowPriority}},
	} {
		c.hold(k)
	}
	var got []string
	for {
		k, ok := c.take()
		if !ok {
			break
		}
		got = append(got, k.key.Name)
	}
	if diff := cmp.Diff([]string{"definition", "changed", "also changed", "replayed", "failed"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
