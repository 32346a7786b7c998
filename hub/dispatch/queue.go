package dispatch

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/hanse-dev/hanse/member"
)

// queue is one member's work: its keys, its workers and what it remembers of each key.
type queue struct {
	cluster    string
	opts       Options
	fresh      *freshBindings
	renderings *renderings
	controller controller.TypedController[types.NamespacedName]
	gate       *gate
	soon, slow workqueue.TypedRateLimiter[types.NamespacedName]
	fights     *fights
	ended      chan struct{} // closed after run

	mu     sync.Mutex
	work   priorityqueue.PriorityQueue[types.NamespacedName] // nil until started
	early  []due                                             // keys that came before
	memory map[types.NamespacedName]*kept
	// atWork has the keys that are being worked on, with what was seen of their copies meanwhile; nil if that is nothing.
	atWork map[types.NamespacedName]*member.Observation
	// vanished has copies that ran to completion and were deleted on the cluster, as they were last seen.
	vanished map[types.NamespacedName]*member.Observation
	// awaiting counts the copies of each kind for which its first list was awaited.
	awaiting map[schema.GroupVersionKind]int
}

func newQueue(cluster string, opts Options, fresh *freshBindings, renderings *renderings) (*queue, error) {
	q := &queue{
		cluster: cluster,
		opts:    opts,
		fresh:   fresh, renderings: renderings,
		soon:   workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retrySoonFirst, retrySoonMost),
		slow:   workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retrySlowFirst, retrySlowMost),
		fights: newFights(opts.Clock),
		gate:   newGate(cluster, opts.Workers, opts.Clock),
		ended:  make(chan struct{}),
		memory: map[types.NamespacedName]*kept{}, atWork: map[types.NamespacedName]*member.Observation{},
		vanished: map[types.NamespacedName]*member.Observation{}, awaiting: map[schema.GroupVersionKind]int{},
	}
	yes := true
	c, err := controller.NewTypedUnmanaged("dispatch", controller.TypedOptions[types.NamespacedName]{
		Reconciler:              q,
		MaxConcurrentReconciles: opts.Workers,
		SkipNameValidation:      &yes, // one per member; they share their metrics
		NewQueue:                q.gate.over,
		RecoverPanic:            &yes,
		ReconciliationTimeout:   reconcileAtMost,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retrySoonFirst, retrySoonMost),
		LogConstructor: func(key *types.NamespacedName) logr.Logger {
			log := ctrl.Log.WithName("dispatch").WithValues("cluster", cluster)
			if key != nil {
				log = log.WithValues("binding", *key)
			}
			return log
		},
	})
	if err != nil {
		return nil, err
	}
	q.controller = c
	return q, c.Watch(source.TypedFunc[types.NamespacedName](q.open))
}

// open takes the controller's queue as soon as it exists.
func (q *queue) open(_ context.Context, work workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work = work.(priorityqueue.PriorityQueue[types.NamespacedName])
	for _, d := range inOrder(q.early) {
		q.work.AddWithOpts(priorityqueue.AddOpts{Priority: &d.priority}, d.key)
	}
	q.early = nil
	return nil
}

// run works until ctx ends. It begins when the queue of the link before has ended, so that no two of them write to one
// cluster.
func (q *queue) run(ctx context.Context, before *queue) {
	defer close(q.ended)
	if before != nil {
		<-before.ended // its link was ended before this one was made, and its calls with it
	}
	defer dropGauges(q.cluster)
	if err := q.controller.Start(ctx); err != nil {
		ctrl.Log.WithName("dispatch").Error(err, "Dispatch queue ended", "cluster", q.cluster)
	}
}

func (q *queue) add(key types.NamespacedName, priority int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.work == nil {
		q.early = append(q.early, due{key, priority})
		return
	}
	q.work.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, key)
}

// begin notes that a key is worked on.
func (q *queue) begin(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.atWork[key] = nil
}

// seenAtWork keeps what is seen of a copy while its key is worked on, and is false if it is not. On a busy machine the
// watch brings most writes before their answers come: whose doing the change is can be said when the work is done.
func (q *queue) seenAtWork(key types.NamespacedName, seen member.Observation) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, atWork := q.atWork[key]
	if atWork {
		q.atWork[key] = &seen
	}
	return atWork
}

// finish notes that the work on a key is done, and queues it anew if somebody else changed the copy meanwhile.
func (q *queue) finish(key types.NamespacedName) {
	q.mu.Lock()
	seen := q.atWork[key]
	delete(q.atWork, key)
	q.mu.Unlock()
	if seen != nil {
		q.addUnlessOurs(key, *seen)
	}
}

// addUnlessOurs queues a key whose copy was seen changed, unless that is the last write of ours.
func (q *queue) addUnlessOurs(key types.NamespacedName, seen member.Observation) {
	if !q.recall(key).wrote(seen) {
		q.add(key, normalPriority+q.rankOf(key))
	}
}

// retry turns an outcome into the next try of its key. Delays are spread by a fifth, so that the keys of a member that
// comes back do not all knock at once.
func (q *queue) retry(key types.NamespacedName, o member.Outcome) reconcile.Result {
	var after time.Duration
	switch o.Retry {
	case member.RetrySoon:
		q.slow.Forget(key)
		after = q.soon.When(key)
	case member.RetrySlowly:
		q.soon.Forget(key)
		after = q.slow.When(key)
	case member.RetryAfter:
		after = max(o.After, retrySoonFirst)
	default:
		q.soon.Forget(key)
		q.slow.Forget(key)
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: jitter(after)}
}

func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/5+1))
}

// turn is how many copies of a kind had their turn before the next one that awaits the first list of the kind.
func (q *queue) turn(gvk schema.GroupVersionKind) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.awaiting[gvk]++
	return q.awaiting[gvk] - 1
}

func (q *queue) remember(key types.NamespacedName, m memory) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.memory[key] = m.pack()
}

// addRemembered queues every key of which something is remembered, so that it is dropped if the cluster has no part in
// it any more.
func (q *queue) addRemembered(priority int) {
	q.mu.Lock()
	keys := slices.Collect(maps.Keys(q.memory))
	q.mu.Unlock()
	for _, key := range keys {
		q.add(key, priority)
	}
}

// rankOf is the rank of a binding's kind, as far as it is remembered.
func (q *queue) rankOf(key types.NamespacedName) int { return Rank(q.recall(key).gvk.GroupKind()) }

func (q *queue) recall(key types.NamespacedName) memory {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.memory[key].memory()
}

func (q *queue) forget(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.memory, key)
	delete(q.vanished, key)
	q.soon.Forget(key)
	q.slow.Forget(key)
	q.fights.forget(key)
}
