package schedule

import (
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
	if !s.Tracer.Enabled() {
		return
	}
	_, q := s.leading()
	state, _ := s.Templates.StateOf(id)
	template, found := s.Templates.Get(id)
	c := loggedChange{at: s.Clock.Now(), seen: q != nil && state.Delivered}
	s.changeLog.mu.Lock()
	defer s.changeLog.mu.Unlock()
	before, known := s.changeLog.newest[id]
	switch {
	case found:
		c.uid, c.id = template.GetUID(), s.Tracer.Change(id, template).ID()
	case !known:
		return
	case q == nil: // the leader traces the deletion
		delete(s.changeLog.newest, id)
		return
	default:
		c.uid, c.id = before.uid, s.Tracer.Deletion(id, before.uid).ID()
	}
	if known && before.id == c.id {
		return
	}
	if s.changeLog.newest == nil {
		s.changeLog.newest = map[key]loggedChange{}
	}
	s.changeLog.newest[id] = c
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

// traceDecision makes the spans of one decision. It makes them only if the decision was written, or if this is the
// first decision after a change of the hub object. began is the start of the decision.
func (s *Scheduler) traceDecision(in decide.Input, p decide.Plan, began time.Time, wrote bool) {
	switch {
	case !s.Tracer.Enabled():
		return
	case in.Binding == nil && in.Object.Template == nil:
		s.changeLog.forget(in.Object.ID)
		return
	case in.Object.State != decide.Exists && in.Object.State != decide.Deleted:
		return // the change is unknown while the object cannot be read
	}
	change := s.changeOf(in)
	logged, fresh := s.changeLog.take(in.Object.ID, change.ID())
	if in.Binding == nil && !wrote {
		return // the object is not placed
	}
	first := in.Binding == nil || fresh && (logged.seen || unreported(in)) || startsToLeave(in, p, wrote) && !logged.traced
	if !first && !wrote || !change.Traced() {
		return
	}
	now := s.Clock.Now()
	if first {
		seen := began
		if fresh && logged.seen {
			seen = logged.at
		}
		change.Root(seen, now)
	}
	targets := 0
	if p.Spec != nil {
		targets = len(p.Spec.Clusters)
	}
	change.Record(tracing.Step{
		Name: tracing.SpanDecide, Began: began, Ended: now, Reason: p.Status.Scheduled.Reason,
		Details: []attribute.KeyValue{attribute.Int("hanse.targets", targets), attribute.Bool("hanse.binding.written", wrote)},
	})
}

// changeOf returns the newest change of the hub object. If the object does not exist, its newest change is its
// deletion.
func (s *Scheduler) changeOf(in decide.Input) tracing.Change {
	if in.Object.Template != nil {
		return s.Tracer.Change(in.Object.ID, in.Object.Template)
	}
	return s.Tracer.Deletion(in.Object.ID, in.Spec().ObjectRef.UID)
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
