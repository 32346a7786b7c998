package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/member"
)

var widgetKind = schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Widget"}

// spansOf keeps spans.
type spansOf struct {
	mu  sync.Mutex
	all []sdktrace.ReadOnlySpan
}

// ExportSpans implements sdktrace.SpanExporter.
func (s *spansOf) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, spans...)
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (*spansOf) Shutdown(context.Context) error { return nil }

// trace makes the dispatcher trace all changes. The returned function ends the tracing and returns the spans.
func (w *world) trace() (end func() []sdktrace.ReadOnlySpan) {
	spans := &spansOf{}
	w.dispatcher.opts.Tracer = tracing.NewWith(spans, 1, tracing.Process{HubID: "hub"})
	return func() []sdktrace.ReadOnlySpan {
		w.dispatcher.opts.Tracer.Close(w.Context())
		return spans.all
	}
}

func TestAWriteIsTraced(t *testing.T) {
	w := newWorld(t, takes("eu"), takes("sg"))
	end := w.trace()
	w.engage()
	w.create(widgetKind, "web")
	for cluster := range w.members {
		w.reads(cluster, "web", hubv1.ReasonApplied, "")
		w.dispatcher.WakeCluster(t.Context(), cluster)
	}
	w.create(widgetKind, "second")
	for cluster := range w.members {
		w.reads(cluster, "second", hubv1.ReasonApplied, "")
		w.eventually(5*time.Second, func() string { // when the queue is empty, the copy was checked again
			if w.dispatcher.queue(cluster).gate.Len() > 0 {
				return "keys wait"
			}
			return ""
		})
	}
	dispatches := map[string]sdktrace.ReadOnlySpan{}
	parts := map[string][]string{}
	for _, span := range end() {
		if attributeOf(span, "hanse.object.name") != "web" {
			continue
		}
		cluster := attributeOf(span, "k8s.cluster.name")
		if span.Name() == tracing.SpanDispatch {
			if dispatches[cluster] != nil {
				t.Errorf("a second span of %s, although nothing has changed", cluster)
			}
			dispatches[cluster] = span
		}
		parts[span.Parent().SpanID().String()] = append(parts[span.Parent().SpanID().String()], span.Name())
	}
	for cluster := range w.members {
		span := dispatches[cluster]
		if span == nil {
			t.Fatalf("no span of %s", cluster)
		}
		got := parts[span.SpanContext().SpanID().String()]
		slices.Sort(got)
		if !slices.Equal(got, []string{tracing.SpanRender, tracing.SpanWrite}) || attributeOf(span, "hanse.reason") != hubv1.ReasonApplied {
			t.Errorf("%s has the parts %q and the reason %s", cluster, got, attributeOf(span, "hanse.reason"))
		}
		if parent := span.Parent().SpanID(); parent != dispatches["eu"].Parent().SpanID() || !parent.IsValid() {
			t.Errorf("%s is below %s", cluster, parent)
		}
	}
}

func attributeOf(span sdktrace.ReadOnlySpan, key string) string {
	for _, a := range span.Attributes() {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func TestAFailureThatRepeatsIsTracedOnce(t *testing.T) {
	eu := takes("eu")
	var tries sync.WaitGroup
	tries.Add(3)
	left := 3
	eu.answer = func(context.Context, string) member.Outcome {
		if left > 0 {
			left--
			tries.Done()
		}
		return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonAdmissionDenied, Message: "password hunter2 is refused", Retry: member.RetrySoon}
	}
	w := newWorld(t, eu)
	end := w.trace()
	w.engage()
	w.create(widgetKind, "web")
	tries.Wait()
	failed := 0
	for _, span := range end() {
		if span.Name() == tracing.SpanDispatch {
			failed++
		}
		if text := fmt.Sprint(span.Attributes(), span.Status()); strings.Contains(text, "hunter2") {
			t.Errorf("a span quotes a member: %s", text)
		}
	}
	if failed != 1 {
		t.Errorf("%d spans of one failure", failed)
	}
}

func TestOnlyAFailedWriteIsAFailedSpan(t *testing.T) {
	refused := func(reason string) member.Outcome {
		return member.Outcome{Applied: metav1.ConditionFalse, Reason: reason}
	}
	tests := map[string]struct {
		outcome member.Outcome
		called  bool
		want    codes.Code
	}{
		"a copy that waits for an operator":                    {refused(hubv1.ReasonOperatorNotReady), false, codes.Unset},
		"a copy that waits for an object that it needs":        {refused(hubv1.ReasonReferenceNotReady), true, codes.Unset},
		"a copy that waits for a cluster that does not answer": {member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonThrottled}, false, codes.Unset},
		"a refused write": {refused(hubv1.ReasonAdmissionDenied), true, codes.Error},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, takes("eu"))
			end := w.trace()
			q, err := newQueue("eu", w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
			if err != nil {
				t.Fatal(err)
			}
			b := w.add(widgetKind, "web")
			r := &run{queue: q, key: types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, binding: b, target: b.BindingSpec().Target("eu")}
			if err := r.gather(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r.times.began = r.now(); tc.called {
				r.times.callBegan, r.times.answered = r.now(), r.now()
			}
			r.trace(tc.outcome)
			spans := end()
			if len(spans) == 0 {
				t.Fatal("there is no span")
			}
			for _, span := range spans {
				if got := span.Status().Code; got != tc.want || attributeOf(span, "hanse.reason") != tc.outcome.Reason {
					t.Errorf("%s has the status %s and the reason %s, want %s and %s", span.Name(), got, attributeOf(span, "hanse.reason"), tc.want, tc.outcome.Reason)
				}
			}
		})
	}
}

// TestAnEndpointThatHangsDoesNotHoldUpDispatch uses an endpoint that accepts connections and never answers.
func TestAnEndpointThatHangsDoesNotHoldUpDispatch(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	w := newWorld(t, takes("eu"), takes("sg"))
	w.dispatcher.opts.Tracer, err = tracing.New(tracing.Options{Endpoint: "http://" + listener.Addr().String(), Sampling: 1}, tracing.Process{HubID: "hub", Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	w.engage()
	const objects = 2000 // they have 12,000 spans, more than the exporter queues
	for i := range objects {
		w.create(widgetKind, fmt.Sprint("web-", i))
	}
	w.eventually(30*time.Second, func() string {
		if eu, sg := w.holds("eu"), w.holds("sg"); eu+sg < 2*objects {
			return fmt.Sprintf("eu has %d and sg %d of %d", eu, sg, objects)
		}
		return ""
	})
	began := time.Now()
	w.dispatcher.opts.Tracer.Close(t.Context())
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the end took %s", took)
	}
}

func TestAWrittenCopyIsLoggedInOneLine(t *testing.T) {
	var mu sync.Mutex
	var lines bytes.Buffer
	log := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&lines, args)
	}, funcr.Options{})
	w := newWorld(t, takes("eu"))
	w.trace()
	q, err := newQueue("eu", w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
	if err != nil {
		t.Fatal(err)
	}
	b := w.add(widgetKind, "web")
	ctx := ctrl.LoggerInto(t.Context(), log.WithValues("cluster", "eu"))
	for range 3 {
		if _, err := q.Reconcile(ctx, types.NamespacedName{Namespace: b.Namespace, Name: b.Name}); err != nil {
			t.Fatal(err)
		}
	}
	got := lines.String()
	for _, want := range []string{"Wrote a copy", `"cluster"="eu"`, `"object"=`, "web", `"trace_id"="`} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	if strings.Count(got, "\n") != 1 {
		t.Errorf("three runs and one write are in the log as\n%s", got)
	}
}

func TestTracingThatIsOffCostsARunNothing(t *testing.T) {
	w := newWorld(t, takes("eu"))
	q, err := newQueue("eu", w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{queue: q, binding: w.add(widgetKind, "web"), target: &hubv1.BindingTarget{Name: "eu"}}
	wrote := member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
	if n := testing.AllocsPerRun(100, func() {
		r.times.began = r.now()
		r.trace(wrote)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
