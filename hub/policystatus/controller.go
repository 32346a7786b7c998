package policystatus

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/kindwatch"
)

// Templates has the hub's own objects.
type Templates interface {
	// Head returns only the namespace, name, UID, resourceVersion and labels of a hub object; it is shared and must not
	// be changed.
	Head(id hubv1.ObjectIdentity) (metav1.Object, bool)
	// Get returns a hub object; it is shared and must not be changed.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// ListStored returns the objects of the selected bundles.
	ListStored(which func(hubv1.ObjectBundle) bool) []hubv1.ObjectIdentity
	// StoredState returns the state of the objects of bundles.
	StoredState() kindwatch.State
	// State returns the state of a kind; false if it is not watched.
	State(gk schema.GroupKind) (kindwatch.State, bool)
	// Watches reports whether the objects of a namespace are read.
	Watches(gk schema.GroupKind, namespace string) bool
	// OnChange and OnState register functions to call for changes of objects and of kinds, before the manager starts.
	OnChange(func(hubv1.ObjectIdentity))
	OnState(func(schema.GroupKind))
}

// Removals has the held removals of copies.
type Removals interface {
	// Removal returns the held removals of a placement, and the condition for its status; a nil condition means no
	// change. was is the current status.
	Removal(kind, namespace, name string, was *hubv1.RemovalHeld) (*hubv1.RemovalHeld, *metav1.Condition)
}

// Options of the controllers. All except ScalePath, Removals, Pacer and Clock are required.
type Options struct {
	// Client reads from the cache and writes the status of policies.
	Client    client.Client
	Templates Templates
	// HubRunsWorkloads reports whether the hub has nodes or a controller-manager.
	HubRunsWorkloads func() bool
	// ScalePath returns the path of the replicas in a kind's scale subresource, for messages; if nil, it is never
	// known.
	ScalePath func(ctx context.Context, kind schema.GroupKind) string
	// Removals has the held removals of copies; nil if there are none.
	Removals Removals
	// Events records events on placements.
	Events events.EventRecorder
	// Pacer gives the turns for writes; if nil, a new one is used.
	Pacer *pace.Pacer
	Clock clock.PassiveClock
}

// Controllers keep the status of every policy.
type Controllers struct {
	placements, overrides, bundles, operators *keeper
	opts                                      Options
}

// New returns Controllers that do nothing until SetupWithManager.
func New(opts Options) *Controllers {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.ScalePath == nil {
		opts.ScalePath = func(context.Context, schema.GroupKind) string { return "" }
	}
	if opts.Pacer == nil {
		opts.Pacer = pace.New(opts.Clock)
	}
	return &Controllers{
		opts:       opts,
		placements: newKeeper(opts.Pacer, &placements{Options: opts, records: map[types.NamespacedName]*record{}}),
		overrides:  newKeeper(opts.Pacer, &overridePolicies{opts}),
		bundles:    newKeeper(opts.Pacer, &bundles{opts, bundleNamed}),
		operators:  newKeeper(opts.Pacer, &bundles{opts, operatorNamed}),
	}
}

// SetupWithManager adds the controllers, which work while this process is the leader.
func (c *Controllers) SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c.opts.Templates.OnState(c.kindChanged)
	c.opts.Templates.OnChange(c.objectChanged)
	if err := c.placements.setup("placement-status", mgr, func(ctx context.Context) { c.wakePlacements(ctx, everyPlacement) }); err != nil {
		return err
	}
	if err := c.bundles.setup("bundle-status", mgr, func(ctx context.Context) { c.wakeBundles(ctx, c.bundles) }); err != nil {
		return err
	}
	if err := c.operators.setup("operator-status", mgr, c.wakeOperators); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(operatorMetrics{c.opts.Client}.serve)); err != nil {
		return fmt.Errorf("adding the metrics of operators: %w", err)
	}
	return c.overrides.setup("override-status", mgr, func(ctx context.Context) { c.wakeOverrides(ctx, everyOverridePolicy) })
}

// WakePlacement queues the update of a placement's status.
func (c *Controllers) WakePlacement(key types.NamespacedName) { c.placements.wake(key) }

const (
	// foldEvery is how long changes of one policy and its objects are collected before its status is computed.
	foldEvery = 500 * time.Millisecond
	// numbersEvery is the minimum time between two writes of only the numbers of regions, because they change with
	// every pod.
	numbersEvery = 10 * time.Second
)

// updater writes the status of one policy if it changed.
type updater interface {
	// update returns the time until a delayed write is due; zero if there is none.
	update(ctx context.Context, key types.NamespacedName) (again time.Duration, err error)
}

// keeper is one controller: a queue of policies. It computes the status of each policy at most once per foldEvery.
type keeper struct {
	updater updater
	pacer   *pace.Pacer

	mu    sync.Mutex
	ctx   context.Context                                   // nil until started
	queue priorityqueue.PriorityQueue[types.NamespacedName] // nil until started
}

func newKeeper(p *pace.Pacer, u updater) *keeper { return &keeper{updater: u, pacer: p} }

// setup adds the controller. wakeAll queues every policy at the start; later changes queue single policies.
func (k *keeper) setup(name string, mgr manager.Manager, wakeAll func(context.Context)) error {
	yes := true
	c, err := controller.NewTyped(name, mgr, controller.TypedOptions[types.NamespacedName]{
		Reconciler:         k,
		NeedLeaderElection: &yes,
		UsePriorityQueue:   &yes,
		RecoverPanic:       &yes,
		RateLimiter:        pace.Retries[types.NamespacedName](),
	})
	if err != nil {
		return fmt.Errorf("making the %s controller: %w", name, err)
	}
	start := func(ctx context.Context, work workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
		k.mu.Lock()
		k.ctx, k.queue = ctx, work.(priorityqueue.PriorityQueue[types.NamespacedName])
		k.mu.Unlock()
		wakeAll(ctx)
		return nil
	}
	if err := c.Watch(source.TypedFunc[types.NamespacedName](start)); err != nil {
		return fmt.Errorf("starting the %s controller: %w", name, err)
	}
	return nil
}

// started returns the context of the controller, nil while another replica leads.
func (k *keeper) started() context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ctx
}

// wake queues a policy, to be computed within foldEvery.
func (k *keeper) wake(key types.NamespacedName) { k.enqueue(key, foldEvery) }

func (k *keeper) enqueue(key types.NamespacedName, after time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil {
		k.queue.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
	}
}

// Reconcile updates the status of one policy.
func (k *keeper) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	turn := k.pacer.Try(pace.Many, keeperKey{k, key}, func() { k.enqueue(key, 0) })
	if turn == nil {
		return reconcile.Result{RequeueAfter: pace.AskAgain}, nil
	}
	defer turn.Done()
	again, err := k.updater.update(ctx, key)
	return reconcile.Result{RequeueAfter: again}, err
}

// keeperKey identifies a policy as a caller of the pacer.
type keeperKey struct {
	keeper *keeper
	policy types.NamespacedName
}
