package report

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/tracing"
)

// kept stores the spans that a Tracer exports.
type kept struct{ spans []sdktrace.ReadOnlySpan }

// ExportSpans implements sdktrace.SpanExporter.
func (k *kept) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.spans = append(k.spans, spans...)
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (*kept) Shutdown(context.Context) error { return nil }

func TestAReportedChangeIsTraced(t *testing.T) {
	w := newWorld(t, "Widget")
	made := &kept{}
	w.tracer = tracing.NewWith(made, 1, tracing.Process{HubID: "hub"})
	w.start()
	o := w.object("web", present("a"), present("b"))
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthProgressing, "")
	}
	w.until("progress", is(hubv1.ConditionApplied, metav1.ConditionTrue, hubv1.ReasonAppliedEverywhere))
	for _, cluster := range []string{"a", "b"} {
		w.observe(o, cluster, hubv1.HealthHealthy, three)
	}
	w.until("health", healthyEverywhere)
	w.observe(o, "a", hubv1.HealthDegraded, three) // a Degraded copy does not count as progress of the change
	w.until("a fault", is(hubv1.ConditionHealthy, metav1.ConditionFalse, hubv1.ReasonDegradedOnSome))
	w.quiet()
	w.tracer.Close(t.Context())
	if len(made.spans) != 2 {
		t.Fatalf("%d spans, want one of the writes and one of the health: %v", len(made.spans), made.spans)
	}
	o.SetGeneration(1)
	root := w.tracer.Change(w.id("web"), o).ID()
	for i, want := range []struct{ applied, healthy int64 }{{2, 0}, {2, 2}} {
		span := made.spans[i]
		got := map[string]int64{}
		for _, a := range span.Attributes() {
			if a.Value.Type().String() == "INT64" {
				got[string(a.Key)] = a.Value.AsInt64()
			}
		}
		if span.Name() != tracing.SpanReport || span.Parent().SpanID() != root || got["hanse.clusters.applied"] != want.applied || got["hanse.clusters.healthy"] != want.healthy {
			t.Errorf("span %d is %s below %s with %v, want %v below %s", i, span.Name(), span.Parent().SpanID(), got, want, root)
		}
	}
}

// unlocked is a clock that tries to take the reporter's lock while a span is made, to prove that the lock is free.
type unlocked struct {
	clock.RealClock
	lock         atomic.Pointer[sync.Mutex]
	asked, found atomic.Int32
}

// Now implements clock.PassiveClock.
func (c *unlocked) Now() time.Time {
	stack := make([]byte, 4096)
	if lock := c.lock.Load(); lock != nil && bytes.Contains(stack[:runtime.Stack(stack, false)], []byte("(*run).trace(")) {
		c.asked.Add(1)
		// Wait in a loop, because other goroutines hold the lock only for a moment.
		for end := time.Now().Add(time.Second); time.Now().Before(end); runtime.Gosched() {
			if lock.TryLock() {
				lock.Unlock()
				c.found.Add(1)
				break
			}
		}
	}
	return c.RealClock.Now()
}

func TestASpanIsMadeWithoutTheLockOfAllBindings(t *testing.T) {
	w := newWorld(t, "Widget")
	c := &unlocked{}
	w.clock, w.tracer = c, tracing.NewWith(&kept{}, 1, tracing.Process{HubID: "hub"})
	w.start()
	c.lock.Store(&w.reporter.mu)
	o := w.object("web", present("a"))
	w.applied(o, "a", hubv1.HealthHealthy, "")
	w.until("progress", is(hubv1.ConditionApplied, metav1.ConditionTrue, hubv1.ReasonAppliedEverywhere))
	w.quiet()
	if asked, found := c.asked.Load(), c.found.Load(); asked == 0 || asked != found {
		t.Errorf("the lock was free for %d of %d spans", found, asked)
	}
}

func TestRowsThatAreNewsOfAChange(t *testing.T) {
	applied := func(generation int64, health hubv1.Health) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: "eu", UID: "copy", Generation: generation, Digest: "d", Applied: metav1.ConditionTrue, Health: health}
	}
	with := func(row hubv1.ClusterRow, status metav1.ConditionStatus, reason string) hubv1.ClusterRow {
		row.Applied, row.Reason = status, reason
		return row
	}
	done := applied(1, hubv1.HealthHealthy)
	away := with(done, metav1.ConditionUnknown, hubv1.ReasonUnreachable)
	refused := with(done, metav1.ConditionFalse, hubv1.ReasonAdmissionDenied)
	tests := map[string]struct {
		was  *hubv1.ClusterRow
		is   hubv1.ClusterRow
		want bool
	}{
		"a first row":                              {nil, applied(1, hubv1.HealthProgressing), true},
		"a first row that waits":                   {nil, hubv1.ClusterRow{Name: "eu", Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonPending}, false},
		"the next generation":                      {&done, applied(2, hubv1.HealthHealthy), true},
		"the same again":                           {&done, done, false},
		"a refusal":                                {&done, refused, true},
		"the same refusal":                         {&refused, refused, false},
		"a refusal for another reason":             {&refused, with(done, metav1.ConditionFalse, hubv1.ReasonForbidden), true},
		"the end of a refusal":                     {&refused, done, true},
		"a cluster that does not answer":           {&done, away, false},
		"a cluster that answers again":             {&away, done, false},
		"a cluster that answers with a generation": {&away, applied(2, hubv1.HealthHealthy), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := progressed(tc.was, tc.is); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
