package schedule

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/placement/decide"
)

// changeLog has the newest change of each hub object, and whether spans of this change were made. It is empty while
// tracing is off.
type changeLog struct {
	mu     sync.Mutex
	newest map[key]loggedChange
}

// loggedChange is one change of a hub object.
type loggedChange struct {
	id  tracing.ID
	uid types.UID
	at  time.Time // when the watch showed the change
	// seen is true if this replica was the leader when the watch showed the change, and the kind's first list had ended.
	// Otherwise the change may be old, or another replica may have traced it.
	seen   bool
	traced bool
}

// noteChange stores the newest change of a hub object, before the object is queued.
func (s *Scheduler) noteChange(id key) {
	if !s.opts.Tracer.Enabled() {
		return
	}
	_, q := s.leading()
	state, _ := s.opts.Templates.StateOf(id)
	template, found := s.opts.Templates.Get(id)
	c := loggedChange{at: s.opts.Clock.Now(), seen: q != nil && state.Delivered}
	s.results.changeLog.mu.Lock()
	defer s.results.changeLog.mu.Unlock()
	before, known := s.results.changeLog.newest[id]
	switch {
	case found:
		c.uid, c.id = template.GetUID(), s.opts.Tracer.Change(id, template).ID()
	case !known:
		return
	case q == nil: // the leader traces the deletion
		delete(s.results.changeLog.newest, id)
		return
	default:
		c.uid, c.id = before.uid, s.opts.Tracer.Deletion(id, before.uid).ID()
	}
	if known && before.id == c.id {
		return
	}
	if s.results.changeLog.newest == nil {
		s.results.changeLog.newest = map[key]loggedChange{}
	}
	s.results.changeLog.newest[id] = c
}

// take returns the stored change of an object if the change has this id, and marks it as traced. fresh is true if the
// change was not traced before.
func (l *changeLog) take(object key, id tracing.ID) (c loggedChange, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.newest[object]
	if !known || c.id != id {
		return loggedChange{}, false
	}
	marked := c
	marked.traced = true
	l.newest[object] = marked
	return c, !c.traced
}

// forget drops the change of an object that does not exist any more.
func (l *changeLog) forget(object key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.newest, object)
}

// trace makes the spans of one decision. It makes them only if the decision was written, or if this is the first
// decision after a change of the hub object.
func (r *run) trace(context.Context) error {
	switch {
	case !r.s.opts.Tracer.Enabled():
		return nil
	case r.in.Binding == nil && r.in.Object.Template == nil:
		r.s.results.changeLog.forget(r.in.Object.ID)
		return nil
	case r.in.Object.State != decide.Exists && r.in.Object.State != decide.Deleted:
		return nil // the change is unknown while the object cannot be read
	}
	change := r.s.changeOf(r.in)
	logged, fresh := r.s.results.changeLog.take(r.in.Object.ID, change.ID())
	if r.in.Binding == nil && !r.wrote {
		return nil // the object is not placed
	}
	first := r.in.Binding == nil || fresh && (logged.seen || unreported(r.in)) || startsToLeave(r.in, r.out, r.wrote) && !logged.traced
	if !first && !r.wrote || !change.Traced() {
		return nil
	}
	now := r.s.opts.Clock.Now()
	if first {
		seen := r.began
		if fresh && logged.seen {
			seen = logged.at
		}
		change.Root(seen, now)
	}
	targets := 0
	if r.out.Spec != nil {
		targets = len(r.out.Spec.Clusters)
	}
	change.Record(tracing.Step{
		Name: tracing.SpanDecide, Began: r.began, Ended: now, Reason: r.out.Status.Scheduled.Reason,
		Details: []attribute.KeyValue{attribute.Int("hanse.targets", targets), attribute.Bool("hanse.binding.written", r.wrote)},
	})
	return nil
}

// changeOf returns the newest change of the hub object. If the object does not exist, its newest change is its
// deletion.
func (s *Scheduler) changeOf(in decide.Input) tracing.Change {
	if in.Object.Template != nil {
		return s.opts.Tracer.Change(in.Object.ID, in.Object.Template)
	}
	return s.opts.Tracer.Deletion(in.Object.ID, in.Spec().ObjectRef.UID)
}

// unreported reports whether no row shows the object's current generation yet. In this case, no earlier leader can have
// traced this generation.
func unreported(in decide.Input) bool {
	t := in.Object.Template
	return t != nil && t.GetGeneration() > 0 && !slices.ContainsFunc(in.Binding.BindingStatus().Clusters, func(row hubv1.ClusterRow) bool {
		return row.Generation >= t.GetGeneration()
	})
}

// startsToLeave reports whether this decision is the first one that withdraws the copies of a deleted object.
func startsToLeave(in decide.Input, p decide.Plan, wrote bool) bool {
	return wrote && in.Object.State == decide.Deleted && p.Spec != nil && len(movesOf(in.Spec(), p.Spec).from) > 0
}
