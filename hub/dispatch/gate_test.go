package dispatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// TestBadMembersDoNotDisturbOthers uses members that hang, fail, answer 429 or refuse, beside healthy members.
func TestBadMembersDoNotDisturbOthers(t *testing.T) {
	const objects = 200
	hangs := &fakeMember{name: "hangs", answer: func(ctx context.Context, _ string) member.Outcome {
		<-ctx.Done()
		return member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonUnreachable, Message: "timed out", Retry: member.RetrySoon}
	}}
	fails := &fakeMember{name: "fails", answer: func(context.Context, string) member.Outcome {
		return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonServerError, Message: "the cluster answered 503", Retry: member.RetrySoon}
	}}
	throttles := &fakeMember{name: "throttles", answer: func(context.Context, string) member.Outcome {
		return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonThrottled, Retry: member.RetryAfter, After: time.Minute}
	}}
	w := newWorld(t, takes("a"), takes("b"), takes("c"), hangs, fails, throttles)
	w.engage()
	for i := range objects {
		w.create(kind, fmt.Sprint("w", i))
	}
	for _, healthy := range []string{"a", "b", "c"} {
		w.eventually(9*time.Second, func() string { // shorter than the first call to the member that hangs
			if n := w.holds(healthy); n < objects {
				return fmt.Sprintf("%s has %d of %d objects", healthy, n, objects)
			}
			return ""
		})
	}
	w.eventually(5*time.Second, func() string { // even rows of objects that were never tried have the reason
		for i := range objects {
			if o := w.outcome("throttles", fmt.Sprint("w", i)); o.Reason != hubv1.ReasonThrottled {
				return fmt.Sprintf("object %d of the one that throttles: %+v", i, o)
			}
			if o := w.outcome("fails", fmt.Sprint("w", i)); o.Reason != hubv1.ReasonServerError {
				return fmt.Sprintf("object %d of the one that fails: %+v", i, o)
			}
		}
		return ""
	})
	for name, most := range map[string]int{"hangs": 8, "throttles": 8, "fails": 60} {
		m := w.members[name]
		m.mu.Lock()
		if m.served > most {
			t.Errorf("%s was called %d times for %d objects, want at most %d", name, m.served, objects, most)
		}
		m.mu.Unlock()
	}
}

// TestAMemberThatFailsHalfOfItsCallsGetsWhatItCanTake uses a member that answers 500 to a random half of its calls.
func TestAMemberThatFailsHalfOfItsCallsGetsWhatItCanTake(t *testing.T) {
	const objects = 125
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(7, 7))
	m := &fakeMember{name: "eu", answer: func(context.Context, string) member.Outcome {
		mu.Lock()
		defer mu.Unlock()
		if chance.IntN(2) == 0 {
			return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonServerError, Message: "500", Retry: member.RetrySoon}
		}
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
	}}
	w := newWorld(t, m)
	w.engage()
	for i := range objects {
		w.create(kind, fmt.Sprint("w", i))
	}
	w.eventually(28*time.Second, func() string {
		if n := w.holds("eu"); n < objects*3/4 {
			return fmt.Sprintf("%d of %d objects", n, objects)
		}
		return ""
	})
}

// TestAMemberThatRecoversGetsAllObjects holds back writes by a member that fails all calls. After the member recovers,
// the dispatcher must write all objects without an event.
func TestAMemberThatRecoversGetsAllObjects(t *testing.T) {
	for name, bad := range map[string]member.Outcome{
		"after server errors": {Applied: metav1.ConditionFalse, Reason: hubv1.ReasonServerError, Message: "503", Retry: member.RetrySoon},
		"after 429":           {Applied: metav1.ConditionFalse, Reason: hubv1.ReasonThrottled, Retry: member.RetryAfter, After: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			const objects = 100
			var mended atomic.Bool
			m := &fakeMember{name: "eu", answer: func(context.Context, string) member.Outcome {
				if mended.Load() {
					return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
				}
				return bad
			}}
			w := newWorld(t, m)
			w.engage()
			for i := range objects {
				w.create(kind, fmt.Sprint("w", i))
			}
			gate := w.dispatcher.queue("eu").gate
			w.eventually(5*time.Second, func() string {
				gate.mu.Lock()
				defer gate.mu.Unlock()
				if gate.closed == nil || len(gate.closed.keys) < objects/2 {
					return fmt.Sprintf("held: %+v", gate.closed)
				}
				return ""
			})
			mended.Store(true)
			w.eventually(10*time.Second, func() string {
				if n := w.holds("eu"); n < objects {
					return fmt.Sprintf("%d of %d objects", n, objects)
				}
				return ""
			})
		})
	}
}

// TestAMemberWhoseEndlessAnswersEndGetsAllAtItsFirstGoodAnswer uses a member whose answers are too large. The slow
// retries of the objects come after 30 s at the earliest.
func TestAMemberWhoseEndlessAnswersEndGetsAllAtItsFirstGoodAnswer(t *testing.T) {
	const objects = 20
	var mended atomic.Bool
	var always atomic.Int32 // number of calls for the object whose answer is always too large
	m := &fakeMember{name: "eu", answer: func(_ context.Context, name string) member.Outcome {
		if name == "always" {
			always.Add(1)
		}
		if name == "always" || !mended.Load() {
			return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonAnswerTooLarge, Message: "16 MiB", Retry: member.RetrySlowly}
		}
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
	}}
	w := newWorld(t, m)
	w.engage()
	calls := func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.served
	}
	w.create(kind, "always")
	for i := range objects {
		w.create(kind, fmt.Sprint("w", i))
	}
	w.eventually(5*time.Second, func() string {
		if n := calls(); n < objects+1 {
			return fmt.Sprintf("%d calls", n)
		}
		return ""
	})
	mended.Store(true)
	w.create(kind, "first")
	w.eventually(9*time.Second, func() string { // shorter than a slow retry
		if n := w.holds("eu"); n < objects+1 {
			return fmt.Sprintf("%d of %d objects", n, objects+1)
		}
		return ""
	})
	if n := always.Load(); n > objects/2 { // one call, one early retry, and calls for events of the object
		t.Errorf("the member was called %d times for the object whose answer is always too large: it was tried at every good answer", n)
	}
}

// TestASlowMemberGetsFewerConcurrentCalls uses a member whose calls succeed, but take longer than slowCall. Slow calls
// must lower the limit of concurrent calls to the member.
func TestASlowMemberGetsFewerConcurrentCalls(t *testing.T) {
	var slow atomic.Bool
	slow.Store(true)
	m := &fakeMember{name: "eu", answer: func(ctx context.Context, _ string) member.Outcome {
		if slow.Load() {
			timer := time.NewTimer(slowCall + 100*time.Millisecond)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
	}}
	w := newWorld(t, m)
	w.engage()
	for i := range 100 {
		w.create(kind, fmt.Sprint("w", i))
	}
	w.eventually(20*time.Second, func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.maxInFlight < 8 || m.atOnce > 2 {
			return fmt.Sprintf("%d under way, %d at most before", m.atOnce, m.maxInFlight)
		}
		return ""
	})
	slow.Store(false)
	w.eventually(20*time.Second, func() string {
		gate := w.dispatcher.queue("eu").gate
		gate.mu.Lock()
		defer gate.mu.Unlock()
		if gate.limit.width < 8 {
			return fmt.Sprintf("the member is fast again and %v may be at work", gate.limit.width)
		}
		return ""
	})
}

// TestAChangeOvertakesAReplay connects a member with 1,000 bindings, all of which the dispatcher then processes, and
// changes one more object.
func TestAChangeOvertakesAReplay(t *testing.T) {
	const replayed = 1000
	begun, goOn := make(chan string, replayed+2), make(chan struct{})
	m := &fakeMember{name: "eu", answer: func(_ context.Context, name string) member.Outcome {
		begun <- name
		<-goOn
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
	}}
	w := newWorld(t, m)
	w.dispatcher.opts.Workers = 1 // one worker, so that the calls have a fixed order
	for i := range replayed {
		w.add(kind, fmt.Sprintf("old-%04d", i))
	}
	w.engage()
	<-begun // the worker is busy, and the rest of the replay waits
	w.create(kind, "new")
	w.create(gvk("", "ConfigMap"), "new-map")
	close(goOn)
	next := []string{<-begun, <-begun}
	if slices.Sort(next); !slices.Equal(next, []string{"new", "new-map"}) {
		t.Errorf("the next calls are for %s", next)
	}
	w.eventually(30*time.Second, func() string {
		if n := w.holds("eu"); n < replayed+2 {
			return fmt.Sprintf("%d of %d objects", n, replayed+2)
		}
		return ""
	})
}

// TestKindsThatOthersNeedGoFirst sends the objects of a bundle to a new member on which each write takes some time.
func TestKindsThatOthersNeedGoFirst(t *testing.T) {
	m := &fakeMember{name: "eu", answer: func(context.Context, string) member.Outcome {
		timer := time.NewTimer(5 * time.Millisecond)
		<-timer.C
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
	}}
	w := newWorld(t, m)
	bundle := []schema.GroupVersionKind{
		gvk("", "Namespace"), gvk("apiextensions.k8s.io", "CustomResourceDefinition"),
		gvk("rbac.authorization.k8s.io", "Role"), gvk("", "Secret"), kind,
	}
	var want []string
	for _, k := range slices.Backward(bundle) {
		for i := range 3 {
			w.add(k, fmt.Sprint(k.Kind, i))
		}
	}
	for _, k := range bundle {
		want = append(want, k.Kind, k.Kind, k.Kind)
	}
	w.engage()
	w.eventually(10*time.Second, func() string {
		if n := w.holds("eu"); n < len(want) {
			return fmt.Sprintf("%d of %d objects", n, len(want))
		}
		return ""
	})
	var got []string
	for _, name := range m.written() {
		got = append(got, name[:len(name)-1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func gvk(group, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

func TestWithdrawalsHaveTheReverseOrder(t *testing.T) {
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "d"}
	b := hubv1.NewBinding(definition.BindingKey())
	b.BindingSpec().ObjectRef = hubv1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: definition.Kind, Name: "d"}
	absent := classFor(b, &hubv1.BindingTarget{State: hubv1.TargetAbsent})
	present := classFor(b, &hubv1.BindingTarget{State: hubv1.TargetPresent})
	if present <= 0 || absent >= 0 {
		t.Errorf("class %d, withdrawn %d", present, absent)
	}
	for _, class := range []int{present, absent, 0} {
		for _, priority := range []int{normalPriority, lowPriority} {
			if got := classOf(priority + class); got != class {
				t.Errorf("class %d at priority %d is read as %d", class, priority, got)
			}
		}
	}
}

// TestTheQueueOfANewLinkBeginsWhenTheOldOneHasEnded changes a member's address while a call is running.
func TestTheQueueOfANewLinkBeginsWhenTheOldOneHasEnded(t *testing.T) {
	calling, end := make(chan struct{}, 10), make(chan struct{})
	m := &fakeMember{name: "eu", answer: func(context.Context, string) member.Outcome {
		calling <- struct{}{}
		<-end
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
	}}
	w := newWorld(t, m)
	w.add(kind, "web")
	old, cancel := context.WithCancel(t.Context())
	if err := w.dispatcher.Engage(old, "eu"); err != nil {
		t.Fatal(err)
	}
	before := w.dispatcher.queue("eu")
	<-calling
	cancel()
	w.engage()
	after := w.dispatcher.queue("eu")
	if after == before {
		t.Fatal("there is no new queue")
	}
	w.eventually(10*time.Second, func() string { // the key waits in the new queue, and no worker takes it
		if after.gate.Len() == 0 {
			return "nothing is queued"
		}
		return ""
	})
	m.mu.Lock()
	maxInFlight := m.maxInFlight // read now, with one key: later, the new queue may work on two keys
	m.mu.Unlock()
	close(end)
	<-before.ended
	w.create(kind, "another")
	w.eventually(10*time.Second, func() string {
		if n := w.holds("eu"); n < 2 {
			return fmt.Sprintf("the new queue does not work: %d objects", n)
		}
		return ""
	})
	if maxInFlight > 1 {
		t.Error("the new queue worked while a call of the old one was under way")
	}
}
