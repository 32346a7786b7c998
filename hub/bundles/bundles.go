// Package bundles stores the objects of Bundles and ClusterBundles as templates, and keeps the status of these bundles.
//
//   - The manifests of a bundle are read by package bundle. If one of them is invalid, if the bundle's ServiceAccount
//     lacks a right, or if an identity is taken, nothing is stored: the bundle keeps its stored objects. The condition
//     Stored says why.
//   - An object that was stored and is no longer in the bundle gets a removal time. That is the decision to delete it,
//     so it follows an uncached read of the bundle. The Secret of the object is deleted after its binding.
//   - A bundle that is deleted loses all objects in the same way. Live of hub/templates proves the deletion.
//
// Only the leader does this. The other replicas read the stored objects.
package bundles

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/changes"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/kindwatch"
)

const (
	// foldEvery is how long changes of the objects of one bundle are collected before its status is computed.
	foldEvery = 500 * time.Millisecond
	// lookEvery is how often ConfigMaps are read, and how often a bundle that could not be stored is tried again.
	lookEvery = 30 * time.Second
)

// Templates has the stored objects.
type Templates interface {
	// Get returns an object from memory; it is shared and must not be changed.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// StoredState returns the state of the objects of bundles.
	StoredState() kindwatch.State
	// ListStored returns the objects of the selected bundles.
	ListStored(which func(hubv1.ObjectBundle) bool) []hubv1.ObjectIdentity
	// Live reads a hub object uncached. gone means that it was deleted, although its kind has existed since the given
	// time.
	Live(ctx context.Context, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error)
	// OnChange and OnState register functions to call for changes of objects and of kinds, before the manager starts.
	OnChange(func(hubv1.ObjectIdentity))
	OnState(func(schema.GroupKind))
}

// Options of a Controller. All except Clock are required.
type Options struct {
	// Client reads bundles, bindings and namespaces from the cache, asks for rights, and writes.
	Client client.Client
	// APIReader reads bundles and ConfigMaps uncached.
	APIReader client.Reader
	Mapper    meta.RESTMapper
	Templates Templates
	Events    events.EventRecorder
	// Pacer gives the turns for writes of the status.
	Pacer *pace.Pacer
	// Namespace of the stored objects, and of the ConfigMaps and ServiceAccounts of ClusterBundles.
	Namespace string
	Clock     clock.PassiveClock
}

// Controller stores the objects of bundles.
type Controller struct {
	Options

	mu    sync.Mutex
	ctx   context.Context                                            // nil while another replica leads
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName] // nil while another replica leads
	// last has the last result of storing each bundle. Without an entry, the bundle is read and compared again.
	last map[types.NamespacedName]result
}

// result is the result of storing a bundle.
type result struct {
	of        string // identifies the metadata and spec of the bundle
	at        time.Time
	condition metav1.Condition
}

// New returns a Controller that does nothing until SetupWithManager.
func New(o Options) *Controller {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Controller{Options: o, last: map[types.NamespacedName]result{}}
}

// SetupWithManager adds the controller, which works while this process is the leader.
func (c *Controller) SetupWithManager(mgr manager.Manager) error {
	control, err := controller.NewTyped("bundles", mgr, controller.TypedOptions[types.NamespacedName]{
		Reconciler:         c,
		NeedLeaderElection: ptr.To(true),
		RecoverPanic:       ptr.To(true),
		RateLimiter:        pace.Retries[types.NamespacedName](),
	})
	if err != nil {
		return fmt.Errorf("making the bundles controller: %w", err)
	}
	key := func(_ context.Context, o client.Object) []types.NamespacedName {
		return []types.NamespacedName{client.ObjectKeyFromObject(o)}
	}
	for _, src := range []source.TypedSource[types.NamespacedName]{
		source.TypedFunc[types.NamespacedName](c.start),
		source.TypedKind(mgr.GetCache(), client.Object(&hubv1.Bundle{}), handler.TypedEnqueueRequestsFromMapFunc(key)),
		source.TypedKind(mgr.GetCache(), client.Object(&hubv1.ClusterBundle{}), handler.TypedEnqueueRequestsFromMapFunc(key)),
	} {
		if err := control.Watch(src); err != nil {
			return fmt.Errorf("watching for the bundles controller: %w", err)
		}
	}
	c.Templates.OnChange(func(id hubv1.ObjectIdentity) {
		if o, ok := c.Templates.Get(id); ok {
			c.doubt(hubv1.BundleOf(o))
		}
	})
	c.Templates.OnState(func(schema.GroupKind) {
		if ctx := c.leading(); ctx != nil {
			c.doubtAll(ctx)
		}
	})
	return nil
}

// start stores the queue, and queues all bundles.
func (c *Controller) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
	c.mu.Lock()
	c.ctx, c.queue = ctx, queue
	c.mu.Unlock()
	c.doubtAll(ctx)
	return nil
}

// leading returns the context of the controller, nil while another replica leads.
func (c *Controller) leading() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx
}

// BindingChanged is called for every change of a binding. It queues the bundle of the object.
func (c *Controller) BindingChanged(_ context.Context, change changes.Binding) {
	for _, b := range []hubv1.BindingObject{change.Before, change.After} {
		if b == nil || b.BindingSpec().ObjectRef.Bundle == nil {
			continue
		}
		ref := b.BindingSpec().ObjectRef.Bundle
		if bundle := (&hubv1.ObjectBundle{Namespace: ref.Namespace, Name: ref.Name}); change.After == nil {
			c.doubt(bundle) // the Secret of a removed object may go now
		} else {
			c.wake(bundle)
		}
	}
}

// NamespaceAdded is called for every new namespace. It queues the bundles that miss a namespace.
func (c *Controller) NamespaceAdded(ctx context.Context, _ changes.Namespace) {
	all, err := scopes.Bundles(ctx, c.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the cache is stopping, and so is this process
	}
	for _, b := range all {
		if stored := meta.FindStatusCondition(b.BundleStatus().Conditions, hubv1.ConditionStored); stored != nil && stored.Reason == hubv1.ReasonHubNamespaceGone {
			c.doubt(&hubv1.ObjectBundle{Namespace: b.GetNamespace(), Name: b.GetName()})
		}
	}
}

// doubtAll reads and compares all bundles again, and the bundles of stored objects, which may be gone.
func (c *Controller) doubtAll(ctx context.Context) {
	c.mu.Lock()
	clear(c.last)
	c.mu.Unlock()
	all, err := scopes.Bundles(ctx, c.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the cache is stopping, and so is this process
	}
	for _, b := range all {
		c.wake(&hubv1.ObjectBundle{Namespace: b.GetNamespace(), Name: b.GetName()})
	}
	c.Templates.ListStored(func(b hubv1.ObjectBundle) bool {
		c.wake(&b)
		return false
	})
}

// doubt reads and compares a bundle again. nil is no bundle.
func (c *Controller) doubt(b *hubv1.ObjectBundle) {
	if b == nil {
		return
	}
	c.mu.Lock()
	delete(c.last, b.Key())
	c.mu.Unlock()
	c.wake(b)
}

// wake queues a bundle, to be handled within foldEvery.
func (c *Controller) wake(b *hubv1.ObjectBundle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.queue.AddAfter(b.Key(), foldEvery)
	}
}

// Reconcile stores the objects of one bundle, and updates its status.
func (c *Controller) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	if !c.Templates.StoredState().Synced {
		return reconcile.Result{RequeueAfter: foldEvery}, nil
	}
	b := hubv1.NewBundle(key)
	err := c.Client.Get(ctx, key, b)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("reading %s: %w", nameOf(key), err)
	case err != nil || b.GetDeletionTimestamp() != nil:
		return c.removeAll(ctx, key)
	}
	stored, err := c.storeAgain(ctx, b)
	if isOutdated(err) {
		return reconcile.Result{RequeueAfter: foldEvery}, nil // the watch has not shown an earlier write yet
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("storing the objects of %s: %w", nameOf(key), err)
	}
	var again reconcile.Result
	if stored.Status != metav1.ConditionTrue || len(b.BundleSpec().ConfigMaps) > 0 {
		again.RequeueAfter = lookEvery
	}
	return again, c.report(ctx, b, stored)
}

// storeAgain stores the objects of a bundle, unless the last result is still valid. Statuses change far more often than
// bundles, and to read a bundle takes time.
func (c *Controller) storeAgain(ctx context.Context, b hubv1.BundleObject) (metav1.Condition, error) {
	key, of := client.ObjectKeyFromObject(b), fmt.Sprint(b.GetUID(), b.GetGeneration(), b.GetLabels(), b.GetAnnotations())
	c.mu.Lock()
	last, known := c.last[key]
	// First, so that a change during the run is not lost.
	c.last[key] = result{of: of}
	c.mu.Unlock()
	if known && last.of == of && c.Clock.Since(last.at) < lookEvery {
		c.keep(key, last)
		return last.condition, nil
	}
	condition, err := c.store(ctx, b)
	if err == nil {
		c.keep(key, result{of, c.Clock.Now(), condition})
	}
	return condition, err
}

// keep stores a result, unless the bundle was doubted since the run began.
func (c *Controller) keep(key types.NamespacedName, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, same := c.last[key]; same {
		c.last[key] = r
	}
}

// report writes the status of a bundle if it changed.
func (c *Controller) report(ctx context.Context, b hubv1.BundleObject, stored metav1.Condition) error {
	before := b.DeepCopyObject().(hubv1.BundleObject)
	status := b.BundleStatus()
	objects, err := c.objects(ctx, client.ObjectKeyFromObject(b))
	if err != nil {
		return err
	}
	status.ObservedGeneration = b.GetGeneration()
	fold(status, objects)
	for _, condition := range append(conditions(objects), stored) {
		condition.ObservedGeneration = b.GetGeneration()
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if equality.Semantic.DeepEqual(before.BundleStatus(), status) {
		return nil
	}
	key := client.ObjectKeyFromObject(b)
	turn := c.Pacer.Try(pace.Many, pacerKey(key), func() { c.wake(&hubv1.ObjectBundle{Namespace: key.Namespace, Name: key.Name}) })
	if turn == nil {
		return nil // it is woken when it has a turn
	}
	defer turn.Done()
	err = c.Client.Status().Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // an event follows
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s: %w", nameOf(key), err)
	}
	was := meta.FindStatusCondition(before.BundleStatus().Conditions, hubv1.ConditionStored)
	if stored.Status != metav1.ConditionTrue && (was == nil || was.Reason != stored.Reason) {
		c.Events.Eventf(b, nil, corev1.EventTypeWarning, stored.Reason, "Store", "%s", stored.Message)
	}
	return nil
}

// pacerKey identifies a bundle as a caller of the pacer.
type pacerKey types.NamespacedName

// nameOf is for messages: "Bundle shop/web" or "ClusterBundle web".
func nameOf(key types.NamespacedName) string {
	return hubv1.ObjectBundle{Namespace: key.Namespace, Name: key.Name}.String()
}

// isOutdated means that a stored object has changed since it was read.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errBehind)
}
