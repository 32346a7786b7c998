package dispatch

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// maxAlteredPause is the longest pause between two writes of a copy whose values the cluster changes.
const maxAlteredPause = time.Hour

// altered has the copies in which the cluster stores other values than the hub sends, because its admission changes
// them. No event tells the hub that the admission has ended. Therefore the hub writes such a copy again after 30 s
// (calm), and then after pauses that double up to an hour. While the admission stays, the write changes nothing.
type altered struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	copies map[types.NamespacedName]alteredCopy
}

type alteredCopy struct {
	pause time.Duration
	due   time.Time
}

func newAltered(c clock.PassiveClock) *altered {
	return &altered{clock: c, copies: map[types.NamespacedName]alteredCopy{}}
}

// wait returns the time until the next write of a copy. It is zero or less if the write is due. The first pause begins
// with the first call for the copy, also after a restart.
func (a *altered) wait(key types.NamespacedName) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, known := a.copies[key]
	if !known {
		c = alteredCopy{pause: calm, due: a.clock.Now().Add(calm)}
		a.copies[key] = c
	}
	return c.due.Sub(a.clock.Now())
}

// tried doubles the pause of a copy, and returns it.
func (a *altered) tried(key types.NamespacedName) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	pause := min(max(2*a.copies[key].pause, calm), maxAlteredPause)
	a.copies[key] = alteredCopy{pause: pause, due: a.clock.Now().Add(pause)}
	return pause
}

func (a *altered) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.copies, key)
}

// again writes a copy again whose values the cluster has changed, if the write is due. settled is the outcome for the
// copy as it is. It stays if the write fails, because the copy still has the content that the cluster accepted.
func (r *run) again(ctx context.Context, w *wanted, settled member.Outcome) member.Outcome {
	if wait := r.queue.altered.wait(r.key); wait > 0 {
		if settled.Retry != member.RetryAfter { // a contested copy is looked at earlier
			settled.Retry, settled.After = member.RetryAfter, wait
		}
		return settled
	}
	settled.Retry, settled.After = member.RetryAfter, r.queue.altered.tried(r.key)
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
		r.queue.altered.forget(r.key)
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
