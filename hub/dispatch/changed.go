package dispatch

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// noteChange records the time of a change on the hub that the member does not have yet. If the member does not have an
// earlier change of the binding yet, the time of the earlier change stays. The metrics use these times.
func (c *copies) noteChange(at time.Time, key types.NamespacedName) {
	c.update(key, func(x extra) extra {
		if x.changed.IsZero() || at.Before(x.changed) {
			x.changed = at
		}
		return x
	})
}

// takeChange removes and returns the recorded time of the change of a binding. It returns zero if no time is recorded.
func (c *copies) takeChange(key types.NamespacedName) (at time.Time) {
	c.update(key, func(x extra) extra { at, x.changed = x.changed, time.Time{}; return x })
	return at
}

// addChanged queues bindings after a change on the hub, and records the time of the change. It records no time for
// bindings with a low priority. Their content has not changed, and they are only compared again, for example after a
// restart.
func (q *queue) addChanged(priority int, keys ...due) {
	if priority == normalPriority {
		now := q.gate.clock.Now()
		for _, d := range keys {
			q.copies.noteChange(now, d.key)
		}
	}
	q.gate.add(keys...)
}

// begin stores the recorded time of the binding's change in the run, and removes it from the queue's record. It is
// called before the run reads its inputs. If the hub object changes later, the time of the later change is recorded
// too.
func (r *run) begin() { r.changed = r.queue.copies.takeChange(r.key) }

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
		r.queue.copies.noteChange(r.changed, r.key)
	}
}
