package dispatch

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// TestOneTryFindsOutThatANamespaceIsBackForAllItsObjects uses a member on which the namespace is being deleted for some
// time.
func TestOneTryFindsOutThatANamespaceIsBackForAllItsObjects(t *testing.T) {
	const objects = 400
	var active atomic.Bool
	m := &fakeMember{name: "eu", answer: func(context.Context, string) member.Outcome {
		if active.Load() {
			return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
		}
		return member.Outcome{
			Applied: metav1.ConditionFalse, Reason: hubv1.ReasonNamespaceTerminate, Message: "it is being deleted", Retry: member.RetrySlowly,
		}
	}}
	w := newWorld(t, m)
	w.engage()
	for i := range objects {
		w.create(kind, fmt.Sprint("w", i))
	}
	calls := func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.served
	}
	w.eventually(10*time.Second, func() string {
		for i := range objects {
			o := w.outcome("eu", fmt.Sprint("w", i))
			if o.Reason != hubv1.ReasonNamespaceTerminate || o.Applied != metav1.ConditionFalse || o.Message != "it is being deleted" {
				return fmt.Sprintf("object %d: %+v", i, o)
			}
		}
		return ""
	})
	before := calls()
	if before > 20 {
		t.Errorf("%d calls for %d objects of one namespace, want one for each worker and a few tries", before, objects)
	}
	w.eventually(2*pace.AnswerWithin, func() string { // the hub keeps trying while the namespace cannot hold objects
		if calls() == before {
			return "no try"
		}
		return ""
	})
	active.Store(true)
	w.eventually(2*pace.AnswerWithin, func() string {
		if n := w.holds("eu"); n < objects {
			return fmt.Sprintf("%d of %d objects", n, objects)
		}
		return ""
	})
}

// TestAnObjectThatIsGoneHoldsUpNoneOfItsNamespace uses a member without the namespace. For such a namespace, the
// dispatcher tries one object from time to time. The test deletes the object that would be tried next.
func TestAnObjectThatIsGoneHoldsUpNoneOfItsNamespace(t *testing.T) {
	var active atomic.Bool
	m := &fakeMember{name: "eu", answer: func(context.Context, string) member.Outcome {
		if active.Load() {
			return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
		}
		return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonNamespaceMissing, Retry: member.RetrySlowly}
	}}
	w := newWorld(t, m)
	first := w.add(kind, "first")
	w.engage()
	w.eventually(5*time.Second, func() string {
		if o := w.outcome("eu", "first"); o.Reason != hubv1.ReasonNamespaceMissing {
			return fmt.Sprintf("%+v", o)
		}
		return ""
	})
	w.create(kind, "second")
	w.eventually(5*time.Second, func() string {
		if o := w.outcome("eu", "second"); o.Reason != hubv1.ReasonNamespaceMissing {
			return fmt.Sprintf("%+v", o)
		}
		return ""
	})
	w.mu.Lock()
	for key, b := range w.bindings {
		if b == first {
			delete(w.bindings, key)
		}
	}
	w.mu.Unlock()
	active.Store(true)
	w.eventually(2*pace.AnswerWithin, func() string {
		if n := w.holds("eu"); n != 1 {
			return fmt.Sprintf("%d objects, want the second alone", n)
		}
		return ""
	})
}

// TestAnEventOfAnObjectIsNoTrialOfItsNamespace repeatedly queues all objects of a namespace that is being deleted on
// the member. Only about one try per second may call the member, however many events occur.
func TestAnEventOfAnObjectIsNoTrialOfItsNamespace(t *testing.T) {
	const objects, events = 20, 50
	m := &fakeMember{name: "eu", answer: func(context.Context, string) member.Outcome {
		return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonNamespaceTerminate, Retry: member.RetrySlowly}
	}}
	w := newWorld(t, m)
	w.engage()
	for i := range objects {
		w.create(kind, fmt.Sprint("w", i))
	}
	held := func() string {
		for i := range objects {
			if o := w.outcome("eu", fmt.Sprint("w", i)); o.Reason != hubv1.ReasonNamespaceTerminate {
				return fmt.Sprintf("object %d: %+v", i, o)
			}
		}
		return ""
	}
	w.eventually(10*time.Second, held)
	for range events {
		for i := range objects {
			w.mu.Lock()
			delete(w.outcomes["eu"], fmt.Sprint("w", i))
			w.mu.Unlock()
			w.create(kind, fmt.Sprint("w", i))
		}
		w.eventually(10*time.Second, held)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.served > events/2 { // some calls precede the first answer; then there is one trial a second
		t.Errorf("%d calls after %d events of each object, want one for each worker and a few tries", m.served, events)
	}
}
