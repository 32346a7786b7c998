package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func refusedFor(reason string) member.Outcome {
	return member.Outcome{Applied: metav1.ConditionFalse, Reason: reason, Retry: member.RetrySlowly}
}

func TestAMemberThatGrantsOneRightIsAskedForAllRefusedCopiesAtOnce(t *testing.T) {
	t.Parallel()
	var granted atomic.Bool
	m := takes("eu")
	m.answer = func(context.Context, string) member.Outcome {
		if granted.Load() {
			return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
		}
		return refusedFor(hubv1.ReasonForbidden)
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
	if diff := cmp.Diff([]string{"ns", "ns"}, w.dispatcher.Refused("eu")); diff != "" {
		t.Errorf("the namespaces of one refused copy of each kind (-want +got):\n%s", diff)
	}
	granted.Store(true)
	w.dispatcher.TryRefused("eu")
	for _, name := range []string{"one", "two", "three"} {
		w.reads("eu", name, hubv1.ReasonApplied, "") // long before the next try of each, which is after 30 s
	}
}

func TestOneRefusedCopyOfEachKindIsTriedEvery30Seconds(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{hubv1.ReasonForbidden, hubv1.ReasonKindNotServed} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			wantProbes(t, reason)
		})
	}
}

// wantProbes fails the test if not one copy of each kind is tried again every 30 s after refusals for the reason.
func wantProbes(t *testing.T, reason string) {
	t.Helper()
	w := newWorld(t, takes("eu"))
	w.engage()
	q := w.dispatcher.queue("eu")
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	a, b := schema.GroupKind{Kind: "A"}, schema.GroupKind{Kind: "B"}
	// tried returns the longest possible time until the next try after many refusals.
	tried := func(name string, kind schema.GroupKind) (longest time.Duration) {
		for range 10 {
			longest = q.copies.retryAfter(key(name), q.learn(key(name), kind, refusedFor(reason))).RequeueAfter
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

func TestAnotherCopyIsTriedWhenTheProbeFailsInAnotherWay(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32 // of the second copy
	answers := map[string]func() member.Outcome{
		"one": func() member.Outcome { return refusedFor(hubv1.ReasonKindNotServed) },
		"two": func() member.Outcome { tries.Add(1); return refusedFor(hubv1.ReasonKindNotServed) },
	}
	var mu sync.Mutex
	m := takes("eu")
	m.answer = func(_ context.Context, name string) member.Outcome {
		mu.Lock()
		defer mu.Unlock()
		return answers[name]()
	}
	w := newWorld(t, m)
	w.engage()
	kind := schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "A"}
	for _, name := range []string{"one", "two"} { // one is the probe
		w.create(kind, name)
		w.reads("eu", name, hubv1.ReasonKindNotServed, "")
	}
	mu.Lock()
	before := tries.Load()
	answers["one"] = func() member.Outcome { return refusedFor(hubv1.ReasonManifestRefused) }
	mu.Unlock()
	w.dispatcher.WakeObject(t.Context(), hubv1.ObjectIdentity{Group: kind.Group, Kind: kind.Kind, Namespace: "ns", Name: "one"})
	w.reads("eu", "one", hubv1.ReasonManifestRefused, "")
	w.eventually(9*time.Second, func() string { // shorter than a slow retry
		if tries.Load() > before {
			return ""
		}
		return "the second copy is not tried"
	})
}
