package policies

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
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/internal/informer"
)

// Templates reads the hub objects, and the objects that the hub has stored for bundles, from memory.
type Templates interface {
	// Head returns only the namespace, name, UID, resourceVersion and labels of a hub object, or false if there is no such
	// object. The caller must not change the result, because it is shared.
	Head(id hubv1.ObjectIdentity) (metav1.Object, bool)
	// Get returns a hub object, or false if there is no such object. The caller must not change the result, because it is
	// shared.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// StoredOf returns the stored objects of a bundle.
	StoredOf(hubv1.BundleReference) []hubv1.ObjectIdentity
	// StoredState returns the state of the watch of the objects that the hub has stored for bundles.
	StoredState() informer.State
	// State returns the state of the watch of a kind. It returns false if the kind is not watched.
	State(gk schema.GroupKind) (informer.State, bool)
	// Wanted returns the kinds of a group that the hub watches, sorted by name.
	Wanted(group string) []schema.GroupKind
	// Watches reports whether the hub watches the objects of a kind in a namespace.
	Watches(gk schema.GroupKind, namespace string) bool
	// OnChange registers a function that is called after a change of an object. OnState registers one that is called after
	// a change of the watch of a kind. Call both before the manager starts.
	OnChange(func(hubv1.ObjectIdentity))
	OnState(func(schema.GroupKind))
}

// Removals has the held removals.
type Removals interface {
	// Removal returns the held removals of a placement or a bundle, and the condition RemovalHeld for its status. kind is
	// the kind of this object. If the returned condition is nil, the condition in the status does not change. was has the
	// held removals in the current status.
	Removal(kind, namespace, name string, was *hubv1.RemovalHeld) (*hubv1.RemovalHeld, *metav1.Condition)
}

// Options of the controllers. All are required, except ScalePath, Sets, Removals, Pacer and Clock.
type Options struct {
	// Client reads from the cache, and writes the status of policies.
	Client    client.Client
	Templates Templates
	// Clusters has the MemberClusters. If it is nil, they are listed for each status.
	Clusters *clusters.Store
	// HubRunsWorkloads reports whether the hub has nodes or a controller-manager, so that it would run the pods of its own
	// objects.
	HubRunsWorkloads func() bool
	// ScalePath returns the path of the replicas field that a kind's scale subresource uses. Messages suggest this path to
	// users. If the function is nil, messages suggest no path.
	ScalePath func(ctx context.Context, kind schema.GroupKind) string
	// Sets reads the lists of objects in the revisions of bundles, and Namespace is the namespace of the SetRollouts. If
	// Sets is nil, each object of a bundle counts on all clusters.
	Sets      Sets
	Namespace string
	// Removals has the held removals. If it is nil, no removal is held.
	Removals Removals
	// Events sends events about placements.
	Events events.EventRecorder
	// Pacer limits the rate of the writes. If it is nil, New makes a Pacer.
	Pacer *pace.Pacer
	Clock clock.PassiveClock
}

// Controllers keep the status of every placement, override policy, bundle and operator up to date.
type Controllers struct {
	placements, overrides, bundles, operators *keeper
	opts                                      Options
}

// New returns the Controllers. They do nothing until SetupWithManager has added them to a manager.
func New(opts Options) *Controllers {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.ScalePath == nil {
		opts.ScalePath = func(context.Context, schema.GroupKind) string { return "" }
	}
	if opts.Clusters == nil {
		opts.Clusters = clusters.New(opts.Client)
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

// SetupWithManager adds the controllers to the manager. They run only in the leading replica.
func (c *Controllers) SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	if err := index(mgr.GetFieldIndexer()); err != nil {
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

// WakeHolder queues a placement or a bundle whose held removals have changed, so that its status is computed again.
func (c *Controllers) WakeHolder(kind string, key types.NamespacedName) {
	switch kind {
	case hubv1.BundleKind, hubv1.ClusterBundleKind, hubv1.FederatedOperatorKind:
		c.wakeBundle(hubv1.BundleReference{Kind: kind, Namespace: key.Namespace, Name: key.Name})
	default:
		c.placements.wake(key)
	}
}

// foldRemoval sets the held removals and the condition RemovalHeld in the status of a placement or a bundle.
func (o Options) foldRemoval(kind string, of client.Object, held **hubv1.RemovalHeld, conditions *[]metav1.Condition) {
	if o.Removals == nil {
		return
	}
	var c *metav1.Condition
	if *held, c = o.Removals.Removal(kind, of.GetNamespace(), of.GetName(), *held); c != nil {
		set(conditions, of.GetGeneration(), *c)
	}
}

const (
	// foldEvery is how long the controller waits after a change of a policy or its objects, until it computes the status.
	// Further changes in this time need no computation of their own.
	foldEvery = 500 * time.Millisecond
	// numbersEvery is the minimum time between two writes of a placement's status that change only the numbers by region.
	// These numbers change whenever a pod of a copy starts or ends.
	numbersEvery = 10 * time.Second
)

// updater computes the status of one policy, and writes it if it has changed.
type updater interface {
	// update computes and writes the status of one policy. If update has put off the write, again is the time after which
	// update must be called again; otherwise again is zero.
	update(ctx context.Context, key types.NamespacedName) (again time.Duration, err error)
}

// keeper is the controller of one kind of policy. It collects the changes of a policy for foldEvery, and then computes
// the status once.
type keeper struct {
	updater updater
	pacer   *pace.Pacer

	mu    sync.Mutex
	ctx   context.Context                                   // nil until the controller starts
	queue priorityqueue.PriorityQueue[types.NamespacedName] // nil until the controller starts
}

func newKeeper(p *pace.Pacer, u updater) *keeper { return &keeper{updater: u, pacer: p} }

// setup adds the controller to the manager. wakeAll queues every policy when the controller starts.
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

// started returns the context of the running controller. It is nil before the controller starts, and in a replica that
// is not the leader.
func (k *keeper) started() context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ctx
}

// wake queues a policy. Its status is computed after the time foldEvery.
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

// keeperKey identifies one policy for the pacer, which limits the rate of writes.
type keeperKey struct {
	keeper *keeper
	policy types.NamespacedName
}
