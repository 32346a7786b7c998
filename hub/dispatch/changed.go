package dispatch

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// keyChanges has, for each binding, the time at which the hub saw a change that the member does not have yet. The
// metrics use these times.
type keyChanges struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// note records the time of a change on the hub for these bindings. If the member does not have an earlier change of a
// binding yet, the time of the earlier change stays.
func (c *keyChanges) note(at time.Time, keys ...due) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil {
		c.since = map[types.NamespacedName]time.Time{}
	}
	for _, d := range keys {
		if was, known := c.since[d.key]; !known || at.Before(was) {
			c.since[d.key] = at
		}
	}
}

// take removes and returns the recorded time of the change of a binding. It returns zero if no time is recorded.
func (c *keyChanges) take(key types.NamespacedName) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.since[key]
	delete(c.since, key)
	return since
}

// addChanged queues bindings after a change on the hub, and records the time of the change. It records no time for
// bindings with a low priority. Their content has not changed, and they are only compared again, for example after a
// restart.
func (q *queue) addChanged(priority int, keys ...due) {
	if priority == normalPriority {
		q.changes.note(q.gate.clock.Now(), keys...)
	}
	q.gate.add(keys...)
}

// begin stores the recorded time of the binding's change in the run, and removes it from the queue's record. It is
// called before the run reads its inputs. If the hub object changes later, the time of the later change is recorded
// too.
func (r *run) begin() { r.changed = r.queue.changes.take(r.key) }

// measure records in the metrics how long a change took to reach the member, if the member has the change now. If the
// copy is withdrawn, or waits for a user or other objects, measure drops the time of the change.
func (r *run) measure(o member.Outcome) {
	// This call creates the series of the kind with the first copy. Prometheus then sees the first measured change as an
	// increase.
	kind := kindSeconds.WithLabelValues(r.binding.BindingSpec().ObjectRef.Kind)
	if r.changed.IsZero() {
		return
	}
	switch {
	case r.target.State == hubv1.TargetAbsent, rollup.Waits(o.Reason):
	case o.Applied != metav1.ConditionTrue:
		return
	case o.Wrote:
		took := r.queue.opts.Clock.Since(r.changed).Seconds()
		clusterSeconds.WithLabelValues(r.queue.cluster).Observe(took)
		kind.Observe(took)
	}
	r.changed = time.Time{}
}

// keepChange records the time of the change again if this run has not brought the change to the member.
func (r *run) keepChange() {
	if !r.changed.IsZero() {
		r.queue.changes.note(r.changed, due{key: r.key})
	}
}
