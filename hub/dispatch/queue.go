package dispatch

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// controllerName is the same for all members, so that they share metrics.
const controllerName = "dispatch"

// queue is the controller of one member. It has the member's keys and workers, and the state of each copy. A key is the
// name of a binding.
type queue struct {
	cluster    string
	opts       Options
	fresh      *freshBindings
	renderings *renderings

	controller controller.TypedController[types.NamespacedName]
	gate       *gate
	filter     wakeFilter
	copies     *copies
	refusals   pace.Refusals
	needs      needs
	ended      chan struct{} // closed at the end of run
}

// needs has the keys that are queued when a needed object or its copy changes.
type needs struct {
	// waiting has the keys of new copies that wait for other objects. Each key can be found by these objects.
	waiting keysBy[hubv1.ObjectIdentity]
	// readers has the keys of copies whose pods read ConfigMaps or Secrets. Each key can be found by the keys of these
	// objects.
	readers keysBy[types.NamespacedName]
}

func newQueue(cluster string, opts Options, fresh *freshBindings, renderings *renderings) (*queue, error) {
	q := &queue{
		cluster: cluster, opts: opts, fresh: fresh, renderings: renderings,
		gate: newGate(cluster, opts.Workers, opts.Clock), copies: newCopies(opts.Clock), ended: make(chan struct{}),
	}
	yes := true
	c, err := controller.NewTypedUnmanaged(controllerName, controller.TypedOptions[types.NamespacedName]{
		Reconciler:              q,
		MaxConcurrentReconciles: opts.Workers,
		SkipNameValidation:      &yes, // the queues of all members have the same controller name
		RecoverPanic:            &yes,
		ReconciliationTimeout:   pace.AnswerWithin,
		NewQueue: func(string, workqueue.TypedRateLimiter[types.NamespacedName]) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
			return q.gate
		},
		LogConstructor: func(key *types.NamespacedName) logr.Logger {
			log := ctrl.Log.WithName(controllerName).WithValues("cluster", cluster)
			if key != nil {
				log = log.WithValues("binding", *key)
			}
			return log
		},
	})
	q.controller = c
	return q, err
}

// run processes keys until ctx ends. It starts only when the member's previous queue (before) has ended, because two
// queues must never write to one cluster.
func (q *queue) run(ctx context.Context, before *queue) {
	defer close(q.ended)
	if before != nil {
		<-before.ended // wait: its link was ended before this queue was made, so its calls end soon
	}
	defer dropGauges(q.cluster)
	beginGauges(q.cluster, q.gate)
	q.gate.resume()
	if err := q.controller.Start(ctx); err != nil {
		ctrl.Log.WithName(controllerName).Error(err, "Dispatch queue ended", "cluster", q.cluster)
	}
}

// observed queues a key whose copy has changed on the member, unless the hub's own last write changed it.
func (q *queue) observed(key types.NamespacedName, seen member.Observation) {
	if !q.filter.hold(key, seen) && !q.copies.get(key).wrote(seen) {
		q.gate.add(due{key, normalPriority + q.copies.rank(key)})
	}
}

// end is called when a worker has finished a key. If the copy has changed on the member meanwhile, end then handles the
// last event of this change.
func (q *queue) end(key types.NamespacedName) {
	if seen := q.filter.end(key); seen != nil {
		q.observed(key, *seen)
	}
}

// addKnown queues every key for which this process has kept data about a copy. If the binding no longer names the
// cluster, the worker drops this state.
func (q *queue) addKnown(priority int) {
	for _, key := range q.copies.keys() {
		q.gate.add(due{key, priority})
	}
}

// forget drops all data about a binding that this queue has kept.
func (q *queue) forget(key types.NamespacedName) {
	q.copies.forget(key)
	q.needs.waiting.drop(key)
	q.needs.readers.drop(key)
	q.tryAgain(q.refusals.Settled(key, false))
}
