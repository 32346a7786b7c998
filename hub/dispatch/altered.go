package dispatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// maxAlteredPause is the longest pause between two writes of a copy whose values the cluster changes.
const maxAlteredPause = time.Hour

// alteredCopy has the time of the next write of a copy in which the cluster stores other values than the hub sends,
// because its admission changes them. No event tells the hub that the admission has ended. Therefore the hub writes
// such a copy again after 30 s (calm), and then after pauses that double up to an hour. While the admission stays, the
// write changes nothing.
type alteredCopy struct {
	pause time.Duration
	due   time.Time
}

// alteredWait returns the time until the next write of a copy that the cluster alters. It is zero or less if the write
// is due. The first pause begins with the first call for the copy, also after a restart.
func (c *copies) alteredWait(key types.NamespacedName) (wait time.Duration) {
	c.update(key, func(x extra) extra {
		now := c.clock.Now()
		if x.altered == (alteredCopy{}) {
			x.altered = alteredCopy{pause: calm, due: now.Add(calm)}
		}
		wait = x.altered.due.Sub(now)
		return x
	})
	return wait
}

// alteredAgain doubles the pause between two writes of a copy that the cluster alters, and returns it.
func (c *copies) alteredAgain(key types.NamespacedName) (pause time.Duration) {
	c.update(key, func(x extra) extra {
		pause = min(max(2*x.altered.pause, calm), maxAlteredPause)
		x.altered = alteredCopy{pause: pause, due: c.clock.Now().Add(pause)}
		return x
	})
	return pause
}

// alteredNoMore ends the pauses of a copy: the cluster stores the values that the hub has sent, or the hub writes other
// values.
func (c *copies) alteredNoMore(key types.NamespacedName) {
	c.update(key, func(x extra) extra { x.altered = alteredCopy{}; return x })
}

// again writes a copy again whose values the cluster has changed, if the write is due. settled is the outcome for the
// copy as it is. It stays if the write fails, because the copy still has the content that the cluster accepted.
func (r *run) again(ctx context.Context, w *wanted, settled member.Outcome) member.Outcome {
	if wait := r.queue.copies.alteredWait(r.key); wait > 0 {
		if settled.Retry != member.RetryAfter { // a contested copy is looked at earlier
			settled.Retry, settled.After = member.RetryAfter, wait
		}
		return settled
	}
	settled.Retry, settled.After = member.RetryAfter, r.queue.copies.alteredAgain(r.key)
	if r.suspended() {
		return settled
	}
	r.useEpoch(ctx)
	w.observed = settled.ResourceVersion
	in := r.intent(w)
	in.Again = true
	in.KeepAway = true // reads the copy: it may be gone, such as a finished Job, or an autoscaler may have set it to 0
	o := r.cluster.Apply(ctx, in)
	switch {
	case o.Applied != metav1.ConditionTrue:
		return settled
	case o.Changed == "":
		r.queue.copies.alteredNoMore(r.key)
	default:
		o.Retry, o.After = member.RetryAfter, settled.After
	}
	return r.done(w.record, o)
}

// alteredBefore adds to the outcome of an unchanged copy the fields that the cluster had changed in the last write.
func alteredBefore(o member.Outcome, w *wanted) member.Outcome {
	if w.changed != "" {
		o.Reason, o.Message, o.Changed = hubv1.ReasonChangedByCluster, member.ChangedMessage(w.changed), w.changed
	}
	return o
}
