package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// These are the names of spans. A trace has a span SpanChange for the change; its parent is the span in the user's
// annotation, if there is one. The children of SpanChange are SpanDecide, a SpanDispatch for each cluster, and
// SpanReport. SpanRender and SpanWrite are children of SpanDispatch.
const (
	SpanChange   = "change"
	SpanDecide   = "decide"
	SpanDispatch = "dispatch"
	SpanRender   = "render"
	SpanWrite    = "write"
	SpanReport   = "report"
)

// ID identifies a change among all changes of all objects. It is the span ID of SpanChange.
type ID = trace.SpanID

// Change identifies one change of a hub object for tracing. All replicas compute the same IDs for it. The zero Change
// makes no spans.
type Change struct {
	tracer *Tracer
	object hubv1.ObjectIdentity
	trace  trace.TraceID
	id     ID
	parent trace.SpanID // span of the user's trace; zero if there is none
	// generation is the generation of the hub object. It is 0 if the object is deleted, or if its kind has no
	// generation.
	generation int64
	sampled    bool
}

// Change returns the newest change of a hub object. This is the change to its generation or, if it is being deleted,
// the deletion. For a kind without a generation, each resourceVersion is a change.
func (t *Tracer) Change(object hubv1.ObjectIdentity, template *unstructured.Unstructured) Change {
	switch {
	case t == nil:
		return Change{}
	case template.GetDeletionTimestamp() != nil:
		return t.Deletion(object, template.GetUID())
	}
	version := "version " + template.GetResourceVersion()
	generation := template.GetGeneration()
	if generation != 0 {
		version = "generation " + strconv.FormatInt(generation, 10)
	}
	c := t.derive(object, template.GetUID(), version)
	c.generation = generation
	if of := parse(template.GetAnnotations()[hubv1.TraceParentAnnotation]); of.IsValid() {
		c.trace, c.parent, c.sampled = of.TraceID(), of.SpanID(), of.IsSampled()
	}
	return c
}

// Deletion returns the change that deletes the hub object with the given UID.
func (t *Tracer) Deletion(object hubv1.ObjectIdentity, uid types.UID) Change {
	if t == nil {
		return Change{}
	}
	return t.derive(object, uid, "deleted")
}

// TargetChange returns the change of the hub object that a target carries out. A target is the decision of a binding
// for one cluster. If the target withdraws the copy because the object was deleted, the result is this deletion.
// Otherwise the result is the newest change of the object, or the zero Change if the object with this UID is not known
// or is being deleted. A withdrawal for another reason therefore never appears in the trace of the deletion.
func (t *Tracer) TargetChange(object hubv1.ObjectIdentity, uid types.UID, target *hubv1.BindingTarget, template *unstructured.Unstructured) Change {
	switch {
	case t == nil:
		return Change{}
	case target.Absent != nil && target.Absent.Reason == hubv1.ReasonObjectDeleted:
		return t.Deletion(object, target.Absent.UID)
	case template == nil || template.GetUID() != uid || template.GetDeletionTimestamp() != nil:
		return Change{}
	}
	return t.Change(object, template)
}

// derive computes the IDs of a change from its arguments, so that all replicas get the same IDs.
func (t *Tracer) derive(object hubv1.ObjectIdentity, uid types.UID, version string) Change {
	c := Change{tracer: t, object: object}
	sum := sha256.Sum256([]byte(t.hub + "\x00" + string(uid) + "\x00" + version))
	copy(c.trace[:], sum[:16])
	copy(c.id[:], sum[16:24])
	c.sampled = t.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: c.trace}).Decision == sdktrace.RecordAndSample
	return c
}

// parse parses a W3C traceparent. For any other text it returns an invalid SpanContext.
func parse(text string) trace.SpanContext {
	if text == "" || len(text) > maxParent {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// maxParent is the maximum length of a traceparent. A traceparent of version 00 has 55 characters.
const maxParent = 128

// ID returns the ID of the change.
func (c Change) ID() ID { return c.id }

// Traced reports whether the spans of this change are sent.
func (c Change) Traced() bool { return c.sampled }

// Log returns a logger that adds the trace ID to each line. If the change is not traced, it returns log unchanged.
func (c Change) Log(log logr.Logger) logr.Logger {
	if !c.sampled {
		return log
	}
	return log.WithValues("trace_id", c.trace.String())
}

// Step is one finished step of the hub after a change of an object, such as the decision or a write to one cluster.
type Step struct {
	Name         string
	Began, Ended time.Time
	Cluster      string // empty if the step is not about one cluster
	Reason       string // a reason constant; never a message, because a message may quote the object
	Failed       bool
	Details      []attribute.KeyValue
	Parts        []Step
}

// Root makes the span SpanChange. began is the time at which the hub saw the change.
func (c Change) Root(began, ended time.Time) {
	if !c.sampled {
		return
	}
	ctx := context.WithValue(context.Background(), idsOfRoot{}, c)
	if c.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, c.context(c.parent))
	}
	c.make(ctx, Step{Name: SpanChange, Began: began, Ended: ended})
}

// Record makes the span of a step as a child of SpanChange. The parts of the step become children of this span.
func (c Change) Record(s Step) {
	if c.sampled {
		c.make(trace.ContextWithRemoteSpanContext(context.Background(), c.context(c.id)), s)
	}
}

func (c Change) context(parent trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.trace, SpanID: parent, TraceFlags: trace.FlagsSampled, Remote: true})
}

func (c Change) make(ctx context.Context, s Step) {
	attributes := []attribute.KeyValue{
		attribute.String("hanse.object.kind", c.object.GroupKind().String()),
		attribute.String("hanse.object.name", c.object.Name),
	}
	if c.object.Namespace != "" {
		attributes = append(attributes, attribute.String("k8s.namespace.name", c.object.Namespace))
	}
	if c.generation != 0 {
		attributes = append(attributes, attribute.Int64("hanse.object.generation", c.generation))
	}
	if s.Cluster != "" {
		attributes = append(attributes, attribute.String("k8s.cluster.name", s.Cluster))
	}
	if s.Reason != "" {
		attributes = append(attributes, attribute.String("hanse.reason", s.Reason))
	}
	ctx, span := c.tracer.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Began), trace.WithAttributes(attributes...), trace.WithAttributes(s.Details...))
	for _, part := range s.Parts {
		c.make(ctx, part)
	}
	if s.Failed {
		span.SetStatus(codes.Error, s.Reason)
	}
	span.End(trace.WithTimestamp(s.Ended))
}

// ids generates the IDs of spans. A span SpanChange gets the IDs that were computed for its change. All other spans get
// random IDs.
type ids struct{}

// idsOfRoot is the context key of the Change whose IDs the next span gets.
type idsOfRoot struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if c, ok := ctx.Value(idsOfRoot{}).(Change); ok {
		return c.trace, c.id
	}
	var id trace.TraceID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64()|1)
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if c, ok := ctx.Value(idsOfRoot{}).(Change); ok {
		return c.id
	}
	var id trace.SpanID
	binary.NativeEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}
