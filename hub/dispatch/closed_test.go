package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
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

// closing is the gate of a member's queue, without workers. A gate limits the concurrent calls to its member. The test
// sets the clock of the gate.
type closing struct {
	*gate
	now *testclock.FakePassiveClock
}

func newClosing(t *testing.T) *closing {
	t.Helper()
	clock := testclock.NewFakePassiveClock(now)
	g := newGate("eu", 8, clock)
	t.Cleanup(g.ShutDown)
	return &closing{gate: g, now: clock}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

// may reports whether the gate allows a call now, for the object with this name and kind.
func (c *closing) may(name string, kind schema.GroupKind) bool {
	_, held := c.enter(call{key: named(name), kind: kind})
	return !held
}

// answer ends a call that took this time and had this outcome.
func (c *closing) answer(name string, kind schema.GroupKind, took time.Duration, o member.Outcome) {
	began := c.now.Now()
	c.now.SetTime(began.Add(took))
	c.leave(call{key: named(name), kind: kind, began: began}, o)
	c.Done(named(name))
}

// pick advances the clock to the next trial, which is a single call to a member that has failed all calls. Without
// failures, it does nothing.
func (c *closing) pick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.closed; h != nil {
		c.now.SetTime(h.until)
		c.try(h)
	}
}

func TestTheLimitClosesWhenTheMemberFails(t *testing.T) {
	widget := kind.GroupKind()
	times := func(n int, o member.Outcome) (out []member.Outcome) {
		for range n {
			out = append(out, o)
		}
		return out
	}
	tests := map[string]struct {
		outcomes []member.Outcome // outcomes of calls; each call waits until it is allowed
		closed   bool
		pause    time.Duration // minimum pause; the maximum is a fifth more
		other    bool          // whether another kind may be tried during the pause
	}{
		"four failures in a row are chance":                  {outcomes: times(4, timedOut)},
		"five close it":                                      {outcomes: times(5, timedOut), closed: true, pause: pace.FirstRetry, other: true},
		"server errors count as well":                        {outcomes: times(5, broken), closed: true, pause: pace.FirstRetry, other: true},
		"each trial that fails doubles the pause":            {outcomes: times(8, broken), closed: true, pause: 8 * pace.FirstRetry, other: true},
		"the pause has a bound":                              {outcomes: times(40, broken), closed: true, pause: pace.MaxRetry, other: true},
		"an answer between failures is a good sign":          {outcomes: append(append(times(4, broken), denied), times(4, broken)...)},
		"a trial that succeeds opens it":                     {outcomes: append(times(6, timedOut), written)},
		"a webhook that fails is not the member's fault":     {outcomes: times(20, webhook)},
		"what is refused is not the member's fault":          {outcomes: times(20, denied)},
		"429 pauses everything at once for as long as asked": {outcomes: times(1, tooMany), closed: true, pause: 5 * time.Second},
		"429 to the trial pauses for as long again":          {outcomes: times(3, tooMany), closed: true, pause: 5 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClosing(t)
			for i, o := range tc.outcomes {
				c.pick()
				if !c.may("w", widget) {
					t.Fatalf("call %d may not be made", i)
				}
				c.answer("w", widget, 0, o)
			}
			if closed := c.closed != nil; closed != tc.closed || closed != (c.limit.width == 0) {
				t.Fatalf("closed is %v with a limit of %v, want %v", closed, c.limit.width, tc.closed)
			}
			if !tc.closed {
				return
			}
			if pause := c.closed.until.Sub(c.now.Now()); pause < tc.pause || pause > tc.pause*6/5 {
				t.Errorf("the pause is %s, want %s and up to a fifth more", pause, tc.pause)
			}
			if c.may("w", widget) {
				t.Error("the kind that failed may be tried during the pause")
			}
			if got := c.may("g", gadget); got != tc.other {
				t.Errorf("another kind may be tried: %v, want %v", got, tc.other)
			}
			if c.pick(); tc.other && (c.may("t", schema.GroupKind{Kind: "Third"}) || c.may("w", widget)) {
				t.Error("two may be tried at a time")
			}
		})
	}
}

// TestRandomFailuresDoNotStopAMember uses a member that fails random calls, at a hundred calls per second, and then
// fails all calls.
func TestRandomFailuresDoNotStopAMember(t *testing.T) {
	for _, percent := range []int{10, 50, 75} {
		chance := rand.New(rand.NewPCG(1, uint64(percent)))
		c := newClosing(t)
		answer := func(o member.Outcome) { c.answer("w", kind.GroupKind(), 10*time.Millisecond, o) }
		answer(written)
		for i := range 2000 {
			o := written
			if chance.IntN(100) < percent {
				o = broken
			}
			if answer(o); c.closed != nil {
				t.Fatalf("%d %% of failures have closed it after %d calls", percent, i)
			}
		}
		died := c.now.Now()
		for range 1000 {
			if answer(broken); c.closed != nil {
				break
			}
		}
		if wait := c.now.Now().Sub(died); c.closed == nil || wait > slowCall+time.Second {
			t.Errorf("after %d %%: closed is %v %s after the member has died", percent, c.closed != nil, wait)
		}
	}
}

func TestCallsThatBeganBeforeThePauseDoNotEndIt(t *testing.T) {
	c := newClosing(t)
	c.answer("w", kind.GroupKind(), time.Second, tooMany)
	c.leave(call{key: named("v"), kind: kind.GroupKind(), began: now}, written)
	if c.closed == nil || c.limit.width > 0 {
		t.Error("a call that was under way has ended the pause")
	}
}

func TestAMemberThatAnswersAgainIsAskedForOneThingAtATimeAtFirst(t *testing.T) {
	c := newClosing(t)
	c.answer("w", kind.GroupKind(), 0, tooMany)
	c.pick()
	if !c.may("w", kind.GroupKind()) {
		t.Fatal("the trial may not be made")
	}
	c.answer("w", kind.GroupKind(), 0, written)
	if c.closed != nil || c.limit.width != 1 {
		t.Errorf("closed is %v, the limit %v", c.closed != nil, c.limit.width)
	}
}

func TestAKeyThatArrivedDuringThePauseIsTriedFirst(t *testing.T) {
	c := newClosing(t)
	c.answer("failed", kind.GroupKind(), 0, tooMany)
	if c.may("came", kind.GroupKind()) {
		t.Fatal("it may be tried during the pause")
	}
	c.pick()
	if c.may("failed", kind.GroupKind()) || !c.may("came", kind.GroupKind()) {
		t.Errorf("the trial is %s", c.closed.trial)
	}
}

func TestTheHeldKeyWithTheLatestChangeGoesFirst(t *testing.T) {
	h := newHold()
	h.keep(due{named("failed"), 0}, true)
	for _, d := range []due{
		{named("replayed"), lowPriority}, {named("changed"), 0}, {named("definition"), 3}, {named("also changed"), 0}, {named("replayed"), lowPriority},
	} {
		h.keep(d, false)
	}
	var got []string
	for {
		d, ok := h.take()
		if !ok {
			break
		}
		got = append(got, d.key.Name)
	}
	if diff := cmp.Diff([]string{"definition", "changed", "also changed", "replayed", "failed"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestTheHighestPriorityIsHandedOutFirst(t *testing.T) {
	c := newClosing(t)
	c.add(due{named("replayed"), lowPriority}, due{named("raised"), lowPriority}, due{named("changed"), 0})
	c.add(due{named("raised"), 1}, due{named("also changed"), 0}, due{named("changed"), lowPriority})
	var got []string
	for range 4 {
		key, _ := c.Get()
		got = append(got, fmt.Sprint(key.Name, " ", c.running[key]))
		c.Done(key)
	}
	if diff := cmp.Diff([]string{"raised 1", "changed 0", "also changed 0", "replayed -100"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestANextTryKeepsItsPriority(t *testing.T) {
	c := newClosing(t)
	c.add(due{named("definition"), 3})
	key, _ := c.Get()
	c.AddAfter(key, time.Millisecond)
	c.Done(key)
	key, _ = c.Get()
	if c.running[key] != 3 {
		t.Errorf("priority %d", c.running[key])
	}
}

func TestAWorkerThatWaitsLeavesWhenTheQueueIsShutDown(t *testing.T) {
	for name, tc := range map[string]struct {
		priorities []int // priorities of keys that are added in this order and never done
	}{
		"for a key":                     {},
		"for a place":                   {priorities: []int{0, 0, 0, 0, 0, 0, 0, 0}},
		"for a higher rank to be ready": {priorities: []int{3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			c, left := newClosing(t), make(chan bool)
			for i, priority := range tc.priorities {
				if c.add(due{named(fmt.Sprint(i)), priority}); priority == tc.priorities[0] {
					_, _ = c.Get()
				}
			}
			go func() {
				_, shutdown := c.Get()
				left <- shutdown
			}()
			c.ShutDown()
			if !<-left {
				t.Error("it was given a key")
			}
		})
	}
}
