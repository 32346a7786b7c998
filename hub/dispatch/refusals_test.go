package dispatch

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func forbidden() member.Outcome {
	return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden, Retry: member.RetrySlowly}
}

func TestAMemberThatGrantsOneRightIsAskedForAllRefusedCopiesAtOnce(t *testing.T) {
	t.Parallel()
	var granted atomic.Bool
	m := takes("eu")
	m.answer = func(context.Context, string) member.Outcome {
		if granted.Load() {
			return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
		}
		return forbidden()
	}
	w := newWorld(t, m)
	w.engage()
	first := schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "A"}
	other := schema.GroupVersionKind{Group: "b.example.com", Version: "v1", Kind: "B"}
	w.create(first, "one")
	w.create(first, "two")
	w.create(other, "three")
	for _, name := range []string{"one", "two", "three"} {
		w.reads("eu", name, hubv1.ReasonForbidden, "")
	}
	granted.Store(true)
	w.dispatcher.WakeObject(t.Context(), hubv1.ObjectIdentity{Group: first.Group, Kind: first.Kind, Namespace: "ns", Name: "two"})
	for _, name := range []string{"one", "two", "three"} {
		w.reads("eu", name, hubv1.ReasonApplied, "") // long before the next try of each, which is after 30 s
	}
}

func TestOneRefusedCopyOfEachKindIsTriedEvery30Seconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	w.engage()
	q := w.dispatcher.queue("eu")
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	a, b := schema.GroupKind{Kind: "A"}, schema.GroupKind{Kind: "B"}
	// tried returns the longest possible time until the next try after many refusals.
	tried := func(name string, kind schema.GroupKind) (longest time.Duration) {
		for range 10 {
			longest = q.retries.after(key(name), q.learn(key(name), kind, forbidden())).RequeueAfter
		}
		return longest
	}
	probe := func(name string, kind schema.GroupKind, want bool) {
		t.Helper()
		if after := tried(name, kind); after <= calm*6/5 != want {
			t.Errorf("%s is tried again after %s; want a probe: %t", name, after, want)
		}
	}
	probe("first", a, true)
	probe("second", a, false)
	probe("third", b, true)
	q.forget(key("first"))
	probe("second", a, true)
	probe("first", a, false)
	q.learn(key("second"), a, member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonAdmissionDenied})
	probe("first", a, true)
}
