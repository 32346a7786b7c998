package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/placement/decide"
)

// has returns the value of a span's attribute.
func has(span tracetest.SpanStub, key string) attribute.Value {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

// traced waits until the scene has these spans, such as "change 1", in any order, and returns them in their order.
func (s *scene) traced(want ...string) []tracetest.SpanStub {
	s.t.Helper()
	var own []tracetest.SpanStub
	s.eventually(fmt.Sprintf("the spans are %q", want), func() error {
		own = slices.DeleteFunc(spans.GetSpans(), func(span tracetest.SpanStub) bool {
			return has(span, "k8s.namespace.name").AsString() != s.id.Namespace
		})
		var got []string
		for _, span := range own {
			got = append(got, strings.TrimSpace(fmt.Sprint(span.Name, " ", has(span, "hanse.object.generation").AsInt64())))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
	return own
}

// generation changes the hub object's generation, as an edit by a user does.
func (s *scene) generation(uid types.UID, generation int64, parent string) {
	u := template(uid)
	u.SetNamespace(s.id.Namespace)
	u.SetGeneration(generation)
	u.SetResourceVersion(fmt.Sprint(generation))
	if parent != "" {
		u.SetAnnotations(map[string]string{hubv1.TraceParentAnnotation: parent})
	}
	objects.set(s.id, u)
}

func TestAChangeIsTracedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, "trace", "eu", "sg")
	p := s.place("web", "eu")
	s.create(p)
	s.generation("traced", 1, "")
	s.becomes("eu")
	got := s.traced("change 1", "decide 1")
	root, decide := got[0], got[1]
	if root.Parent.IsValid() || decide.Parent.SpanID() != root.SpanContext.SpanID() || decide.SpanContext.TraceID() != root.SpanContext.TraceID() {
		t.Errorf("the decision is not below the change: %v", got)
	}
	if root.StartTime.After(decide.StartTime) || has(decide, "hanse.reason").AsString() == "" || !has(decide, "hanse.binding.written").AsBool() || has(decide, "hanse.targets").AsInt64() != 1 {
		t.Errorf("decision %v", decide)
	}

	// This generation does not change the decision.
	s.generation("traced", 2, "")
	s.traced("change 1", "decide 1", "change 2", "decide 2")
	// A change of the status changes neither generation nor decision. A second decision on the same generation belongs to
	// the same change.
	objects.change(s.id, func() { objects.cached[s.id].SetResourceVersion("9") })
	s.edit(p, func() { p.Spec.Clusters = s.only("eu", "sg") })
	s.becomes("eu", "sg")
	s.traced("change 1", "decide 1", "change 2", "decide 2", "decide 2")
}

func TestAUsersTraceGoesOn(t *testing.T) {
	t.Parallel()
	s := newScene(t, "parent", "eu")
	s.create(s.place("web", "eu"))
	s.generation("annotated", 1, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	got := s.traced("change 1", "decide 1")
	if root := got[0]; root.Parent.SpanID().String() != "00f067aa0ba902b7" || root.SpanContext.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("the change is not below the user's span: %v", root)
	}
}

func TestADeletionIsTraced(t *testing.T) {
	t.Parallel()
	s := newScene(t, "gone", "eu")
	s.create(s.place("web", "eu"))
	s.generation("deleted", 1, "")
	s.becomes("eu")
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Delete")
	s.eventually("the deletion has a trace", func() error {
		for _, span := range spans.GetSpans() {
			if span.SpanContext.SpanID() == scheduler.opts.Tracer.Deletion(s.id, "deleted").ID() && span.Name == tracing.SpanChange {
				return nil
			}
		}
		return fmt.Errorf("there is no span of it")
	})
	s.withdraws()
	s.becomes("no binding")
	s.eventually("nothing is kept of it", func() error {
		scheduler.results.changeLog.mu.Lock()
		defer scheduler.results.changeLog.mu.Unlock()
		if kept, known := scheduler.results.changeLog.newest[s.id]; known {
			return fmt.Errorf("%+v is", kept)
		}
		return nil
	})
}

func TestAnObjectThatIsNotPlacedIsNotTraced(t *testing.T) {
	t.Parallel()
	s := newScene(t, "alone", "eu")
	s.generation("alone", 1, "")
	s.eventually("the object is decided", func() error {
		scheduler.results.changeLog.mu.Lock()
		defer scheduler.results.changeLog.mu.Unlock()
		if !scheduler.results.changeLog.newest[s.id].traced {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	s.create(s.place("web", "eu"))
	s.becomes("eu")
	s.traced("change 1", "decide 1") // the change is that of the placement
}

// TestALaterLeaderTracesNoOldChange uses a scheduler that did not see the change.
func TestALaterLeaderTracesNoOldChange(t *testing.T) {
	object := key{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	tests := map[string]struct {
		reached int64 // generation that the copy reports
		want    int
	}{
		"a change that is on a cluster was traced before": {3, 0},
		"a change that is on no cluster may be new":       {2, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := &kept{}
			s := &Scheduler{opts: Options{Clock: clock.RealClock{}, Tracer: tracing.NewWith(made, 1, tracing.Process{HubID: "hub"})}}
			u := template("web")
			u.SetGeneration(3)
			s.results.changeLog.newest = map[key]loggedChange{object: {id: s.opts.Tracer.Change(object, u).ID(), uid: "web"}}
			b := hubv1.NewBinding(object.BindingKey())
			b.BindingStatus().Clusters = []hubv1.ClusterRow{{Name: "eu", Generation: tc.reached}}
			in := decide.Input{Object: decide.Object{ID: object, Template: u}, Binding: b}
			for range 2 {
				_ = (&run{s: s, began: s.opts.Clock.Now(), in: in, out: decide.Plan{Spec: b.BindingSpec()}}).trace(t.Context())
			}
			s.opts.Tracer.Close(t.Context())
			if len(made.spans) != tc.want {
				t.Errorf("%d spans, want %d", len(made.spans), tc.want)
			}
		})
	}
}

// kept has the spans that a Tracer has ended.
type kept struct{ spans []sdktrace.ReadOnlySpan }

// ExportSpans implements sdktrace.SpanExporter.
func (k *kept) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.spans = append(k.spans, spans...)
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (*kept) Shutdown(context.Context) error { return nil }
