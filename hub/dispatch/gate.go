package dispatch

import (
	"context"
	"math"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/hanse-dev/hanse/member"
)

// gate is a member's queue as its workers see it. It hands out a key only
//   - while fewer are at work than the member's pace allows, so that the order among those that wait is decided as late
//     as possible;
//   - when no key is at work that has to go before it, see rank.
//
// A worker that is about to call the member asks it again: the circuit may be open. Then the key is held here, without
// a timer of its own, and the worker goes on with others.
type gate struct {
	priorityqueue.PriorityQueue[types.NamespacedName] // set when the queue is made

	cluster string
	clock   clock.PassiveClock
	tokens  flowcontrol.RateLimiter
	gauges  gauges // set with the queue

	getting sync.Mutex // held by the one worker that waits for a key

	mu      sync.Mutex
	changed *sync.Cond
	shut    bool
	waiting bool // a worker waits for a key
	pace    pace
	busy    int                          // workers that have a key, or wait for one
	running map[types.NamespacedName]int // priority of each key that is at work
	replays bool                         // the last key that was handed out is of a replay: nothing goes before those that wait
	lately  lately                       // calls of the member
	calling int                          // calls of the member that are under way
	heard   time.Time                    // the last answer, or the begin of the first of these calls
	circuit circuit
	// namespaces that cannot hold objects now, with the keys that wait for them.
	namespaces map[string]*namespaceWait
}

func newGate(cluster string, workers int, c clock.PassiveClock) *gate {
	g := &gate{
		clock: c, tokens: flowcontrol.NewTokenBucketRateLimiter(callsPerSecond, callsAtOnce),
		cluster: cluster, pace: newPace(workers), running: map[types.NamespacedName]int{}, namespaces: map[string]*namespaceWait{},
	}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// over puts the gate in front of a new queue.
func (g *gate) over(name string, limiter workqueue.TypedRateLimiter[types.NamespacedName]) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.PriorityQueue = priorityqueue.New(name, func(o *priorityqueue.Opts[types.NamespacedName]) { o.RateLimiter = limiter })
	g.gauges = gaugesOf(g.cluster)
	g.show()
	return g
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (g *gate) GetWithPriority() (key types.NamespacedName, priority int, shutdown bool) {
	g.getting.Lock()
	defer g.getting.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.shut && g.busy >= g.pace.width() {
		g.changed.Wait()
	}
	if g.shut {
		return key, priority, true
	}
	g.busy++
	g.waiting = true
	g.mu.Unlock()
	key, priority, _ = g.PriorityQueue.GetWithPriority()
	g.mu.Lock()
	g.waiting = false
	if g.shut {
		g.PriorityQueue.ShutDown()
		return key, priority, true
	}
	for !g.shut && g.outranked(classOf(priority)) {
		g.changed.Wait()
	}
	g.running[key] = priority
	g.replays = priority < lowPriority/2
	return key, priority, g.shut
}

// Get implements workqueue.TypedInterface.
func (g *gate) Get() (types.NamespacedName, bool) {
	key, _, shutdown := g.GetWithPriority()
	return key, shutdown
}

// backlog is the number of changes that wait for a worker, or were brought to the member within about latelyFor. It is
// 0 for a member that is slow or does not answer: nobody needs to wait for those. One that has just gone silent is
// known by its calls.
func (g *gate) backlog() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	silent := g.calling > 0 && now.Sub(g.heard) > slowCall
	if g.PriorityQueue == nil || g.shut || g.replays || silent || g.circuit.open || g.pace.limit < g.pace.most {
		return 0
	}
	return g.Len() + g.lately.count(now)
}

// latelyFor is within what time calls count as one burst. At a steady rate as many count as are made in that time: 32
// of 80 a second.
const latelyFor = 400 * time.Millisecond

// lately counts what happened within about latelyFor: what is older counts for less, by half after 0.7 of it.
type lately struct {
	sum float64
	at  time.Time
}

func (l *lately) add(now time.Time) { l.sum, l.at = l.left(now)+1, now }

func (l *lately) count(now time.Time) int { return int(l.left(now)) }

func (l *lately) left(now time.Time) float64 {
	return l.sum * math.Exp(-now.Sub(l.at).Seconds()/latelyFor.Seconds())
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
	g.busy--
	g.circuit.tried(key)
	if w := g.namespaces[key.Namespace]; w != nil {
		w.tried(key)
	}
	g.plan()
	g.changed.Broadcast()
	g.mu.Unlock()
	g.PriorityQueue.Done(key)
}

// ShutDown implements workqueue.TypedInterface. A worker that waits for a key is given one first, and shuts the queue
// down: if that goes away while the queue hands out a key, the queue blocks for ever with its lock, and every worker
// that is done with a key with it.
func (g *gate) ShutDown() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return
	}
	g.shut = true
	g.changed.Broadcast()
	if g.waiting {
		g.requeue(due{priority: normalPriority + topClass + 1}, 0)
		return
	}
	g.PriorityQueue.ShutDown()
}

// enter asks to call the member for a key. If that may not be now, the key is held and the outcome for its row comes
// back. The namespace is the one that the call needs, or empty.
func (g *gate) enter(key types.NamespacedName, kind schema.GroupKind, namespace string) (o member.Outcome, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// An event may wake the next key before its trial is due.
	if w := g.namespaces[namespace]; w != nil && (!w.isNext(key) || g.clock.Now().Before(w.until)) {
		w.hold(heldKey{due: due{key, g.running[key]}})
		return outcome(w.last.Applied, w.last.Reason, "%s", w.last.Message), false
	}
	again := g.circuit.isNext(key) && g.circuit.next.failed && g.circuit.fresh()
	if !again && g.circuit.enter(kind, g.clock.Now()) {
		return o, true
	}
	g.circuit.hold(heldKey{due: due{key, g.running[key]}, failed: again})
	return outcome(metav1.ConditionUnknown, g.circuit.last.Reason, "%s", g.circuit.heldMessage()), false
}

// call calls the member for a key that has entered. held is true if the key is kept here until it goes on by itself,
// because the circuit is open or its namespace cannot hold objects now.
func (g *gate) call(
	ctx context.Context, key types.NamespacedName, kind schema.GroupKind, namespace string, f func(context.Context) member.Outcome,
) (o member.Outcome, held bool) {
	began := g.clock.Now()
	defer func() { held = g.leave(key, kind, namespace, began, o) }()
	_ = g.tokens.Wait(ctx) // when it fails, ctx has ended, and so does the call
	g.begin()
	g.gauges.inFlight.Inc()
	defer g.gauges.inFlight.Dec()
	return f(ctx), false
}

func (g *gate) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calling++; g.calling == 1 {
		g.heard = g.clock.Now()
	}
}

func (g *gate) leave(key types.NamespacedName, kind schema.GroupKind, namespace string, began time.Time, o member.Outcome) (held bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.calling, g.heard = g.calling-1, now
	g.lately.add(now)
	if isFault(o) || now.Sub(began) > slowCall {
		g.pace.bad(began, now)
	} else {
		g.pace.good()
	}
	held, release := g.circuit.leave(kind, began, now, o)
	if held {
		g.circuit.hold(heldKey{due: due{key, g.running[key]}, failed: true})
	}
	if release {
		g.requeueAll(&g.circuit.waiting)
	}
	if namespace != "" && !isFault(o) {
		held = g.heed(key, namespace, now, o) || held
	}
	g.show()
	g.changed.Broadcast()
	return held
}

// resume closes the circuit: the link is new, or delivers again.
func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.PriorityQueue == nil {
		return // it has held nothing yet
	}
	g.circuit.reset()
	g.requeueAll(&g.circuit.waiting)
	for namespace, w := range g.namespaces {
		delete(g.namespaces, namespace)
		g.requeueAll(&w.waiting)
	}
	g.show()
}

func (g *gate) requeueAll(w *waiting) {
	for _, d := range w.release() {
		g.requeue(d, 0)
	}
}

// plan makes sure that a key is queued as the next trial while the circuit is open, and one for each namespace that is
// waited for.
func (g *gate) plan() {
	if g.circuit.open && !g.circuit.trying {
		g.try(&g.circuit.waiting, g.circuit.until)
	}
	for namespace, w := range g.namespaces {
		if !g.try(&w.waiting, w.until) {
			delete(g.namespaces, namespace)
		}
	}
}

// try queues the next trial, unless one is queued. It is false if no key waits.
func (g *gate) try(w *waiting, at time.Time) bool {
	if w.next != nil {
		return true
	}
	k, ok := w.take()
	if ok {
		w.next = &k
		g.requeue(k.due, max(0, at.Sub(g.clock.Now())))
	}
	return ok
}

func (g *gate) requeue(d due, after time.Duration) {
	g.AddWithOpts(priorityqueue.AddOpts{Priority: &d.priority, After: after}, d.key)
}

// show brings the metrics up to date.
func (g *gate) show() {
	g.gauges.limit.Set(float64(g.pace.width()))
	open := 0.0
	if g.circuit.open {
		open = 1
	}
	g.gauges.circuit.Set(open)
}
