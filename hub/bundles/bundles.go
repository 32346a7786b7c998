// Package bundles stores each object of a Bundle, ClusterBundle or FederatedOperator in a Secret on the hub, and sets
// the condition Stored. The stored object is the template of the copies on members.
//
//   - Package manifest reads the manifests of a bundle. The bundle keeps its stored objects, and nothing new is stored,
//     if a manifest is invalid, if the bundle's ServiceAccount lacks a right, or if another bundle or the hub has an
//     object of the same identity. The condition Stored says why.
//   - Values that the chart of an operator generates are kept in a Secret of their own, which is written before the
//     objects. The hub keeps them until a user requests new ones.
//   - A stored object that is no longer in the bundle gets a removal time. The removal time is the decision to delete
//     the object. Before this decision, the bundle is read without a cache. The Secret of the object is deleted after
//     its binding.
//   - The Bundles of one namespace store only so many objects. A Bundle that would exceed the limit is refused, and
//     loses nothing.
//   - All objects of a deleted bundle are removed in the same way. The deletion of the bundle is proved by Live of
//     hub/store/templates.
//
// If Options.CheckVersions is set, the package also asks repositories for the newest versions of charts, and sets
// status.newest of operators.
//
// Only the leader stores objects. All replicas read the stored objects. hub/report/policies counts the objects, and
// writes the counts into the status of the bundle.
package bundles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/bundles/fetch"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/revisions"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/placement/decide"
)

// workers is the number of bundles that are stored concurrently. Charts are rendered one after the other.
const workers = 4

// Templates returns the templates from memory: hub objects, and the stored objects of bundles.
type Templates interface {
	// Get returns an object from memory. The object is shared, and the caller must not change it.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// State returns the state of the watch of a kind. It returns false if the kind is not watched.
	State(gk schema.GroupKind) (informer.State, bool)
	// StoredState returns the state of the watch of the Secrets in which the hub stores the objects of bundles.
	StoredState() informer.State
	// List returns the objects of a kind.
	List(gk schema.GroupKind) []hubv1.ObjectIdentity
	// ListStored returns the objects of the bundles that `which` selects.
	ListStored(which func(hubv1.ObjectBundle) bool) []hubv1.ObjectIdentity
	// StoredOf returns the objects of a bundle.
	StoredOf(hubv1.BundleReference) []hubv1.ObjectIdentity
	// Live reads a hub object from the API server. gone is true if the object was deleted. gone stays false if the kind
	// itself was deleted, or was created again after `since`.
	Live(ctx context.Context, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error)
	// OnChange registers a function that is called after each change of an object. OnState registers a function that is
	// called after each change of a kind's watch. Call both before the manager starts.
	OnChange(func(hubv1.ObjectIdentity))
	OnState(func(schema.GroupKind))
}

// Sets stores lists of objects of bundles. A revisions.Store implements it.
type Sets interface {
	// EnsureSet stores a list, and the parts in it.
	EnsureSet(ctx context.Context, list decide.Payload, parts []decide.Payload) error
	// SetLost reports whether a list was stored, and has been deleted by a user, or one of its parts.
	SetLost(digest string) bool
	// SetList returns a list, and SetPart an object in a list. The error may be decide.ErrRevisionMissing.
	SetList(ctx context.Context, digest string) (decide.SetList, error)
	SetPart(ctx context.Context, digest string) (*unstructured.Unstructured, error)
}

// Options has the settings of a Controller. All fields are required except PerNamespace and Clock.
type Options struct {
	// Client reads bundles, bindings and namespaces from the cache, creates SubjectAccessReviews, and writes.
	Client client.Client
	// APIReader reads bundles and ConfigMaps without a cache.
	APIReader client.Reader
	Mapper    meta.RESTMapper
	Templates Templates
	Events    events.EventRecorder
	// Namespace is the namespace of the Secrets in which the hub stores the objects of bundles. Bundles without a
	// namespace have their ConfigMaps and ServiceAccounts there, too.
	Namespace string
	// Revisions reads the templates of the revisions that bindings name.
	Revisions revisions.Templates
	// Sets stores the lists of objects of bundles.
	Sets Sets
	// Key is the key of the digests of these lists and objects.
	Key canonical.Key
	// PerNamespace is the maximum number of stored objects of the Bundles of one namespace. 0 means no limit.
	PerNamespace int
	// Charts fetches the charts of operators.
	Charts *fetch.Fetcher
	// Render renders the charts of operators.
	Render Render
	// CheckVersions asks the repositories of charts for their newest versions.
	CheckVersions bool
	Clock         clock.PassiveClock
}

// Controller stores the objects of bundles.
type Controller struct {
	opts     Options
	reserved reservations
	newest   newestVersions

	mu         sync.Mutex
	renderings map[string]rendering                                        // last rendering, by the operator's name
	ctx        context.Context                                             // nil while another replica leads
	queue      workqueue.TypedRateLimitingInterface[hubv1.BundleReference] // nil while another replica leads
}

// New returns a Controller that does nothing before SetupWithManager.
func New(o Options) *Controller {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Controller{opts: o, newest: newestVersions{opts: o, checks: map[string]versionCheck{}}, renderings: map[string]rendering{}}
}

// bundleIndex is the name of an index. It finds the bindings of the objects of a bundle.
const bundleIndex = "spec.objectRef.bundle"

func bundleOf(b hubv1.BindingObject) []string {
	if of := b.BindingSpec().ObjectRef.Bundle; of != nil {
		return []string{of.String()}
	}
	return nil
}

// SetupWithManager adds the controller to the manager. The controller runs only in the leading replica.
func (c *Controller) SetupWithManager(mgr manager.Manager) error {
	if err := scopes.IndexBindings(mgr.GetFieldIndexer(), bundleIndex, bundleOf); err != nil {
		return err
	}
	control, err := controller.NewTyped("bundles", mgr, controller.TypedOptions[hubv1.BundleReference]{
		Reconciler:         c,
		NeedLeaderElection: ptr.To(true),
		RecoverPanic:       ptr.To(true),
		// Bundles are processed concurrently, because a slow chart must not delay other bundles.
		MaxConcurrentReconciles: workers,
		RateLimiter:             pace.Retries[hubv1.BundleReference](),
	})
	if err != nil {
		return fmt.Errorf("making the bundles controller: %w", err)
	}
	if err := control.Watch(source.TypedFunc[hubv1.BundleReference](c.start)); err != nil {
		return fmt.Errorf("starting the bundles controller: %w", err)
	}
	c.opts.Templates.OnChange(c.wakeBundleOf)
	c.opts.Templates.OnState(func(schema.GroupKind) {
		c.mu.Lock()
		ctx := c.ctx
		c.mu.Unlock()
		if ctx != nil {
			c.wakeAll(ctx)
		}
	})
	return c.newest.setupWithManager(mgr)
}

// start stores the queue, and queues all bundles.
func (c *Controller) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[hubv1.BundleReference]) error {
	c.mu.Lock()
	c.ctx, c.queue = ctx, queue
	c.mu.Unlock()
	c.wakeAll(ctx)
	return nil
}

// BundleChanged is called for a bundle whose spec or labels changed, whose deletion began, or for which a user requests
// new generated values.
func (c *Controller) BundleChanged(_ context.Context, change changes.Bundle) {
	for _, b := range []hubv1.BundleObject{change.Before, change.After} {
		if b != nil {
			c.wake(hubv1.ReferenceTo(b))
			c.newest.wake(hubv1.ReferenceTo(b))
		}
	}
}

// BindingDeleted is called for every deleted binding. If the binding's object was removed from its bundle before, the
// Secret of the object can now be deleted.
func (c *Controller) BindingDeleted(_ context.Context, change changes.Binding) {
	if bundle := change.Before.BindingSpec().ObjectRef.Bundle; bundle != nil {
		c.wake(*bundle)
	}
}

// BindingChanged is called for every binding that was added, or whose spec changed. If the binding's object begins to
// follow a rollout, its bundle needs a SetRollout.
func (c *Controller) BindingChanged(_ context.Context, change changes.Binding) {
	spec := change.After.BindingSpec()
	before := change.Before != nil && change.Before.BindingSpec().Rollout != nil
	if spec.ObjectRef.Bundle != nil && spec.Rollout != nil && !before && !change.Initial {
		c.wake(*spec.ObjectRef.Bundle)
	}
}

// SetRolloutChanged is called for a SetRollout whose spec changed, or which was deleted. An object that no cluster
// shall hold any more can then be removed, and a deleted SetRollout is made again.
func (c *Controller) SetRolloutChanged(_ context.Context, change changes.SetRollout) {
	c.wake(cmp.Or(change.After, change.Before).Spec.Bundle)
}

// SetsLost queues the bundles whose newest list is not stored completely any more. It is stored again.
func (c *Controller) SetsLost(of ...hubv1.BundleReference) {
	for _, bundle := range of {
		c.wake(bundle)
	}
}

// NamespaceAdded is called for every new namespace. It queues all bundles that were not stored because a namespace was
// missing.
func (c *Controller) NamespaceAdded(ctx context.Context, _ changes.Namespace) {
	c.wakeIf(ctx, func(b hubv1.BundleObject) bool {
		stored := meta.FindStatusCondition(b.BundleStatus().Conditions, hubv1.ConditionStored)
		return stored != nil && stored.Reason == hubv1.ReasonHubNamespaceMissing
	})
}

// wakeAll queues all bundles. It also queues the bundles of stored objects and of bindings, because such a bundle may
// have been deleted.
func (c *Controller) wakeAll(ctx context.Context) {
	c.wakeIf(ctx, func(hubv1.BundleObject) bool { return true })
	bindings, err := scopes.Bindings(ctx, c.opts.Client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the cache stops because this process ends
	}
	for _, b := range bindings {
		if bundle := b.BindingSpec().ObjectRef.Bundle; bundle != nil {
			c.wake(*bundle)
		}
	}
	for _, id := range c.opts.Templates.ListStored(func(hubv1.ObjectBundle) bool { return true }) {
		c.wakeBundleOf(id)
	}
}

func (c *Controller) wakeIf(ctx context.Context, concerned func(hubv1.BundleObject) bool) {
	all, err := scopes.Bundles(ctx, c.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the cache stops because this process ends
	}
	for _, b := range all {
		if concerned(b) {
			c.wake(hubv1.ReferenceTo(b))
		}
	}
}

// wakeBundleOf queues the bundle of a stored object, or of an object that was stored until now and has a binding.
func (c *Controller) wakeBundleOf(id hubv1.ObjectIdentity) {
	if o, ok := c.opts.Templates.Get(id); ok {
		if bundle := hubv1.BundleOf(o); bundle != nil {
			c.wake(bundle.BundleReference)
		}
		return
	}
	c.mu.Lock()
	ctx := c.ctx
	c.mu.Unlock()
	if ctx == nil {
		return
	}
	b := hubv1.NewBinding(id.BindingKey())
	if err := c.opts.Client.Get(ctx, id.BindingKey(), b, client.UnsafeDisableDeepCopy); err != nil {
		return // there is no binding, so no copy waits for the bundle
	}
	if bundle := b.BindingSpec().ObjectRef.Bundle; bundle != nil {
		c.wake(*bundle)
	}
}

func (c *Controller) wake(bundle hubv1.BundleReference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.queue.Add(bundle)
	}
}

// Reconcile stores the objects of one bundle, and writes the condition Stored.
func (c *Controller) Reconcile(ctx context.Context, of hubv1.BundleReference) (reconcile.Result, error) {
	behind := reconcile.Result{RequeueAfter: pace.FirstRetry}
	if !c.opts.Templates.StoredState().Synced {
		return behind, nil
	}
	b := of.New()
	err := c.opts.Client.Get(ctx, of.Key(), b)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading %s: %w", of, err)
	}
	var stored metav1.Condition
	var has content
	deleted := err != nil || b.GetDeletionTimestamp() != nil
	if deleted {
		err = c.removeAll(ctx, of)
	} else {
		stored, has, err = c.store(ctx, b)
	}
	switch {
	case isOutdated(err):
		return behind, nil // try again later, because the cache does not have an earlier write yet
	case errors.Is(err, fetch.ErrFetching):
		return reconcile.Result{}, nil // no retry, because the end of the fetch wakes the operator
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("storing the objects of %s: %w", of, err)
	case deleted:
		return reconcile.Result{}, nil
	}
	switch err := c.report(ctx, b, stored, has); {
	case isOutdated(err):
		return behind, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("writing the status of %s: %w", of, err)
	case stored.Status != metav1.ConditionTrue || readsConfigMaps(b):
		return reconcile.Result{RequeueAfter: pace.LookEvery}, nil
	}
	return reconcile.Result{RequeueAfter: untilExpiresSoon(b, c.opts.Clock.Now())}, nil
}

// readsConfigMaps reports whether the objects of a bundle depend on ConfigMaps, which the hub does not watch.
func readsConfigMaps(b hubv1.BundleObject) bool {
	o, ok := b.(*hubv1.FederatedOperator)
	return len(b.BundleSpec().ConfigMaps) > 0 || ok && o.Spec.Chart != nil && (o.Spec.Chart.Archive != nil || len(o.Spec.Chart.ValuesFrom) > 0)
}

// report writes the condition Stored, and the chart and kinds of an operator, if they changed. An edit of a user causes
// at most one such write. The write therefore needs no turn from package hub/pace, which limits the writes of the hub.
func (c *Controller) report(ctx context.Context, b hubv1.BundleObject, stored metav1.Condition, has content) error {
	before := b.DeepCopyObject().(hubv1.BundleObject)
	was := meta.FindStatusCondition(before.BundleStatus().Conditions, hubv1.ConditionStored)
	stored.ObservedGeneration = b.GetGeneration()
	changed := meta.SetStatusCondition(&b.BundleStatus().Conditions, stored)
	switch o, ok := b.(*hubv1.FederatedOperator); {
	case ok && stored.Status == metav1.ConditionTrue:
		changed = describe(o, has, c.opts.Clock.Now()) || changed
	case ok && has.kept != nil && has.kept.secret == nil: // a user needs their id to replace them, and certificates expire
		changed = has.kept.describe(o, c.opts.Clock.Now()) || changed
	}
	if !changed && b.BundleStatus().ObservedGeneration == b.GetGeneration() {
		return nil
	}
	b.BundleStatus().ObservedGeneration = b.GetGeneration()
	if err := c.opts.Client.Status().Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	if stored.Status != metav1.ConditionTrue && (was == nil || was.Reason != stored.Reason) {
		c.opts.Events.Eventf(b, nil, corev1.EventTypeWarning, stored.Reason, "Store", "%s", stored.Message)
	}
	return nil
}

// isOutdated reports whether the error means that the cache shows an earlier state of the bundle or of a stored object.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errBehind)
}
