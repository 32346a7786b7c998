package dispatch

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// gate wraps the workqueue of a member. It gives a worker a key only if two conditions hold:
//   - Workers have fewer keys than the member's limit. The gate thus decides as late as possible which key comes next.
//   - No worker has a key of a kind with a higher rank, see Rank.
//
// A worker also asks the gate just before it calls the member (method call). While the member's limit of concurrent
// calls is zero (closed), because the member fails all calls, the gate takes the key back and keeps it. The worker then
// takes another key.
type gate struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]

	cluster string
	clock   clock.PassiveClock
	order   *order

	getting sync.Mutex // held by the worker that waits for a key

	mu         sync.Mutex
	changed    *sync.Cond
	limit      limit
	running    map[types.NamespacedName]int // priority of each key at work
	closed     *hold                        // nil unless the limit is closed
	namespaces map[string]*hold             // namespaces that cannot hold objects now
	oversized  oversized
}

// call is one call to the member, for the binding that a key names.
type call struct {
	key  types.NamespacedName
	kind schema.GroupKind
	// namespace is a namespace that must exist on the member. It is empty if the call needs no namespace.
	namespace string
	began     time.Time
}

func newGate(cluster string, workers int, c clock.PassiveClock) *gate {
	g := &gate{
		cluster: cluster, clock: c, order: newOrder(), limit: newLimit(workers),
		running: map[types.NamespacedName]int{}, namespaces: map[string]*hold{}, oversized: oversized{},
	}
	g.changed = sync.NewCond(&g.mu)
	keys := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: controllerName, Queue: g.order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Queue: keys})
	g.TypedRateLimitingInterface = workqueue.NewTypedRateLimitingQueueWithConfig(
		pace.Retries[types.NamespacedName](), workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{DelayingQueue: delaying})
	return g
}

// add queues keys, the highest priority first.
func (g *gate) add(keys ...due) {
	for _, d := range inOrder(keys) {
		g.order.raise(d)
		g.Add(d.key)
	}
}

// AddAfter implements workqueue.TypedDelayingInterface. If a worker puts a key back for a later try, the key keeps its
// priority.
func (g *gate) AddAfter(key types.NamespacedName, after time.Duration) {
	g.mu.Lock()
	priority, atWork := g.running[key]
	g.mu.Unlock()
	if atWork {
		g.order.raise(due{key, priority})
	}
	g.TypedRateLimitingInterface.AddAfter(key, after)
}

// Get implements workqueue.TypedInterface.
func (g *gate) Get() (key types.NamespacedName, shutdown bool) {
	g.getting.Lock()
	defer g.getting.Unlock()
	g.wait(func() bool { return len(g.running) < max(1, int(g.limit.width)) })
	key, _ = g.TypedRateLimitingInterface.Get()
	priority := g.order.lastPriority()
	g.wait(func() bool { return !g.outranked(classOf(priority)) })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[key] = priority
	return key, g.ShuttingDown()
}

// wait returns when condition returns true, or when the queue is shut down.
func (g *gate) wait(condition func() bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.ShuttingDown() && !condition() {
		g.changed.Wait()
	}
}

func (g *gate) outranked(class int) bool {
	for _, priority := range g.running {
		if classOf(priority) > class {
			return true
		}
	}
	return false
}

// Done implements workqueue.TypedInterface.
func (g *gate) Done(key types.NamespacedName) {
	g.mu.Lock()
	delete(g.running, key)
	if g.closed != nil {
		g.plan(g.closed, key)
	}
	for namespace, h := range g.namespaces {
		if g.plan(h, key); len(h.keys) == 0 && h.trial == (types.NamespacedName{}) {
			delete(g.namespaces, namespace)
		}
	}
	g.changed.Broadcast()
	g.mu.Unlock()
	g.TypedRateLimitingInterface.Done(key)
}

// ShutDown implements workqueue.TypedInterface.
func (g *gate) ShutDown() {
	g.TypedRateLimitingInterface.ShutDown()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed.Broadcast()
}

// call calls f, which sends requests to the member. If the gate holds the key instead, held is true, f is not called,
// and the outcome has the reason. The gate queues a held key again later.
func (g *gate) call(ctx context.Context, c call, f func(context.Context) member.Outcome) (o member.Outcome, held bool) {
	if o, held = g.enter(c); held {
		return o, true
	}
	c.began = g.clock.Now()
	inFlight.WithLabelValues(g.cluster).Inc()
	defer func() {
		inFlight.WithLabelValues(g.cluster).Dec()
		held = g.leave(c, o)
	}()
	return f(ctx), false
}

// enter reports whether the gate holds the key of a call for a later try, and why. While the limit of concurrent calls
// is zero (closed), the failures may concern only one kind. A call for a kind that has not failed is therefore let
// through at once. If the member has asked for a pause with 429, no call is let through.
func (g *gate) enter(c call) (o member.Outcome, held bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.namespaces[c.namespace]; h != nil && h.trial != c.key {
		h.keep(due{c.key, g.running[c.key]}, false)
		return outcome(h.last.Applied, h.last.Reason, "%s", h.last.Message), true
	}
	h := g.closed
	if h == nil || h.trial == c.key {
		return o, false
	}
	if h.trial == (types.NamespacedName{}) && h.last.Reason != hubv1.ReasonThrottled && !g.limit.failing[c.kind] {
		h.trial = c.key
		return o, false
	}
	h.keep(due{c.key, g.running[c.key]}, false)
	return outcome(metav1.ConditionUnknown, h.last.Reason, "%s", heldMessage(h.last)), true
}

// leave handles the outcome of a call, and reports whether the gate holds the key of the call for a later try.
func (g *gate) leave(c call, o member.Outcome) (held bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.changed.Broadcast()
	defer g.show()
	now := g.clock.Now()
	stale := g.closed != nil && c.began.Before(g.limit.lowered)
	if isFault(o) {
		if stale || !g.limit.failed(c.kind, c.began, now, o.Reason == hubv1.ReasonThrottled) {
			return false
		}
		g.close(o, now)
		g.closed.keep(due{c.key, g.running[c.key]}, true)
		return true
	}
	if !stale {
		g.limit.succeeded(c.began, now)
		g.reopen()
	}
	if o.Reason == hubv1.ReasonAnswerTooLarge {
		g.oversized.failed(due{c.key, g.running[c.key]})
	} else {
		g.add(g.oversized.answered(c.key)...)
	}
	return c.namespace != "" && g.leaveNamespace(c, o, now)
}

// close sets the member's limit of concurrent calls to zero after a failure. The gate then lets through only trials:
// single calls, with a pause before each. If the limit is zero already, close starts another pause.
func (g *gate) close(o member.Outcome, now time.Time) {
	if g.closed == nil {
		g.closed = newHold()
	}
	pause := pace.FirstRetry // for a throttling member, which names the time of the next try
	if o.Reason != hubv1.ReasonThrottled {
		pause = g.closed.lengthen(pace.MaxRetry)
	}
	g.closed.last, g.closed.until = o, now.Add(jitter(max(pause, o.After)))
}

// reopen queues all keys that were held because the limit of concurrent calls was zero (closed).
func (g *gate) reopen() {
	if h := g.closed; h != nil {
		g.closed = nil
		g.add(h.release()...)
	}
}

// leaveNamespace handles the outcome of a call that needs a namespace, and reports whether the gate holds the key of
// the call. A namespace that is being deleted cannot hold objects, and neither can a missing namespace that the hub may
// not create. Of the keys of such a namespace, only one at a time is then tried.
func (g *gate) leaveNamespace(c call, o member.Outcome, now time.Time) (held bool) {
	h := g.namespaces[c.namespace]
	if o.Reason != hubv1.ReasonNamespaceTerminate && o.Reason != hubv1.ReasonNamespaceMissing {
		if h != nil {
			delete(g.namespaces, c.namespace)
			g.add(h.release()...)
		}
		return false
	}
	if h == nil {
		h = newHold()
		g.namespaces[c.namespace] = h
	}
	if h.pause == 0 || h.trial == c.key {
		h.until = now.Add(jitter(h.lengthen(pace.AnswerWithin)))
	}
	h.last = o
	h.keep(due{c.key, g.running[c.key]}, false)
	return true
}

// resume opens the gate, so that calls to the member are possible again. It is called when the connection to the member
// is new or Ready again.
func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit.open(g.clock.Now())
	g.reopen()
	for namespace, h := range g.namespaces {
		delete(g.namespaces, namespace)
		g.add(h.release()...)
	}
	g.show()
	g.changed.Broadcast()
}

// plan sets a timer for the next trial of a hold. A trial is a call for one of the keys. plan does nothing if a timer
// is set or a trial is running. done is the key whose call has just ended.
func (g *gate) plan(h *hold, done types.NamespacedName) {
	if h.trial == done {
		h.trial = types.NamespacedName{}
	}
	if h.timer != nil || len(h.keys) == 0 || h.trial != (types.NamespacedName{}) {
		return
	}
	h.timer = time.AfterFunc(h.until.Sub(g.clock.Now()), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.try(h)
	})
}

// try makes the next trial of a hold: a call for one of a set of waiting keys. It chooses the key only now, so that a
// key that was added after the timer was set may be tried first.
func (g *gate) try(h *hold) {
	h.timer = nil
	if h.trial != (types.NamespacedName{}) {
		return // another trial runs; when it ends, plan sets the next one
	}
	if g.clock.Now().Before(h.until) {
		g.plan(h, h.trial)
		return
	}
	if d, ok := h.take(); ok {
		h.trial = d.key
		g.add(d)
	}
}

// show sets the metrics about the limit of concurrent calls to the member: its value, and whether it is zero (closed).
func (g *gate) show() {
	inFlightLimit.WithLabelValues(g.cluster).Set(float64(int(g.limit.width)))
	closed := 0.0
	if g.closed != nil {
		closed = 1
	}
	circuitOpen.WithLabelValues(g.cluster).Set(closed)
}

// heldMessage returns the message of the rows whose copies the gate does not write now, because calls to the member
// fail. The message stays the same while the limit of concurrent calls is zero, because each new message would write
// the rows again.
func heldMessage(last member.Outcome) string {
	if last.Reason == hubv1.ReasonThrottled {
		return "all writes to the cluster wait until it accepts requests again: " + last.Message
	}
	return "all writes to the cluster wait, because the last writes failed; the hub tries one write at a time, the next within 60 s: " + last.Message
}
