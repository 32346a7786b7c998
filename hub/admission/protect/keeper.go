package protect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/internal/informer"
)

// Name is the name of the ConfigMap with the protected namespaces and CustomResourceDefinitions.
const Name = "hanse-protected"

// gatherFor is how long changes are collected before one write of the ConfigMap.
const gatherFor = time.Second

// Templates has the hub objects.
type Templates interface {
	// Head returns a hub object's metadata with labels. It is shared and must not be changed.
	Head(id hubv1.ObjectIdentity) (metav1.Object, bool)
	// State returns the state of the watch of a kind on the hub. It returns false if the kind is not watched.
	State(gk schema.GroupKind) (informer.State, bool)
	// OnChange and OnState register functions that are called after changes of objects and of kinds. Call them before
	// the manager starts.
	OnChange(func(hubv1.ObjectIdentity))
	OnState(func(schema.GroupKind))
}

// Options of a Keeper. All are required.
type Options struct {
	// Client writes the ConfigMap with the protected names. APIReader reads this ConfigMap without a cache.
	Client    client.Client
	APIReader client.Reader
	Mapper    meta.RESTMapper
	Templates Templates
	// Namespace is the namespace of the ConfigMap with the protected names.
	Namespace string
	// Limit is the maximum number of copies of a namespace or definition that is not protected.
	Limit int
	// Counted reports whether BindingChanged has been called for every binding in the cache. Until then, the numbers of
	// copies are too low.
	Counted func() bool
}

// Keeper keeps the ConfigMap hanse-protected up to date while this process leads. The ConfigMap names the namespaces
// and CustomResourceDefinitions that the API server protects from deletion.
type Keeper struct {
	options Options

	mu       sync.Mutex
	tally    *tally
	labelled sets.Set[hubv1.ObjectIdentity] // objects that had the protection label at their last change
	queue    workqueue.TypedRateLimitingInterface[string]

	// Only the method Reconcile uses the fields last and lookNow.
	last    map[string]string // the content of the ConfigMap at its last read or write
	lookNow time.Time         // time of the next read of the ConfigMap
}

// New returns a Keeper that does nothing until SetupWithManager.
func New(o Options) *Keeper {
	return &Keeper{options: o, tally: newTally(), labelled: sets.New[hubv1.ObjectIdentity]()}
}

// SetupWithManager adds the controller to the manager. It runs only in the leading replica.
func (k *Keeper) SetupWithManager(mgr manager.Manager) error {
	k.options.Templates.OnChange(k.objectChanged)
	k.options.Templates.OnState(func(schema.GroupKind) { k.wake() })
	yes := true
	c, err := controller.NewTyped("protect", mgr, controller.TypedOptions[string]{
		Reconciler: k, NeedLeaderElection: &yes, RecoverPanic: &yes,
		RateLimiter: pace.Retries[string](),
	})
	if err != nil {
		return fmt.Errorf("making the controller of protected names: %w", err)
	}
	start := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) error {
		k.mu.Lock()
		k.queue = queue
		k.mu.Unlock()
		k.wake()
		return nil
	}
	if err := c.Watch(source.TypedFunc[string](start)); err != nil {
		return fmt.Errorf("starting the controller of protected names: %w", err)
	}
	return nil
}

func (k *Keeper) wake() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil {
		k.queue.AddAfter(Name, gatherFor)
	}
}

// BindingChanged updates the numbers of placed copies after a change of a binding. Every replica counts, whether or not
// it is the leader.
func (k *Keeper) BindingChanged(_ context.Context, c changes.Binding) {
	k.mu.Lock()
	changed := k.tally.count(c.Before, c.After)
	k.mu.Unlock()
	if changed {
		k.wake()
	}
}

// objectChanged records whether a changed object has the label hanse.dev/deletion-protection. Every replica records
// this, whether or not it is the leader.
func (k *Keeper) objectChanged(id hubv1.ObjectIdentity) {
	is := k.isLabelled(id)
	k.mu.Lock()
	was := k.labelled.Has(id)
	if is {
		k.labelled.Insert(id)
	} else {
		k.labelled.Delete(id)
	}
	k.mu.Unlock()
	if is != was {
		k.wake()
	}
}

func (k *Keeper) isLabelled(id hubv1.ObjectIdentity) bool {
	o, found := k.options.Templates.Head(id)
	return found && o.GetLabels()[hubv1.DeletionProtectionLabel] == "true"
}

// Reconcile writes the ConfigMap with the protected names if they have changed.
func (k *Keeper) Reconcile(ctx context.Context, _ string) (reconcile.Result, error) {
	wanted, known, counted := k.wanted()
	if !counted {
		return reconcile.Result{RequeueAfter: gatherFor}, nil
	}
	again := reconcile.Result{RequeueAfter: pace.LookEvery} // reads the ConfigMap again, because a user may have edited it
	now := time.Now()
	if now.Before(k.lookNow) && maps.Equal(k.last, merged(k.last, wanted, known)) {
		return again, nil
	}
	is := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: k.options.Namespace, Name: Name}
	if err := k.options.APIReader.Get(ctx, key, is); apierrors.IsNotFound(err) {
		if err := k.create(ctx, key); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: gatherFor}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	will := is.DeepCopy()
	will.Data = merged(is.Data, wanted, known)
	if !maps.Equal(is.Data, will.Data) {
		if err := k.options.Client.Patch(ctx, will, client.MergeFrom(is)); err != nil {
			return reconcile.Result{}, fmt.Errorf("writing %d protected names to ConfigMap %s: %w", len(wanted), key, err)
		}
	}
	k.last, k.lookNow = merged(is.Data, wanted, known), now.Add(pace.LookEvery)
	return again, nil
}

// create creates the ConfigMap again, without names, after a user has deleted it. Until the next reconcile, the API
// server protects nothing. Server-side apply is used because a role can restrict it to an object of this name.
func (k *Keeper) create(ctx context.Context, key types.NamespacedName) error {
	ctrl.LoggerFrom(ctx).Info("Creating the missing ConfigMap with the names that are protected from deletion", "configMap", key)
	if err := k.options.Client.Apply(ctx, applycorev1.ConfigMap(key.Name, key.Namespace), client.FieldOwner("hanse-hub")); err != nil {
		return fmt.Errorf("creating ConfigMap %s: %w", key, err)
	}
	k.last, k.lookNow = nil, time.Time{}
	return nil
}

// merged returns the content to write. known is false while the labels of some objects are not known, so that a
// protected name may be missing in wanted. In this case merged also keeps all entries that the ConfigMap has now.
func merged(is, wanted map[string]string, known bool) map[string]string {
	out := maps.Clone(wanted)
	if !known {
		maps.Copy(out, is)
	}
	return out
}

// wanted returns the content that the ConfigMap should have. known is false while some objects have not been listed, so
// that their labels are not known. counted is false while not all bindings are counted.
func (k *Keeper) wanted() (names map[string]string, known, counted bool) {
	k.mu.Lock()
	counted = k.options.Counted()
	now := tally{namespaces: maps.Clone(k.tally.namespaces), kinds: maps.Clone(k.tally.kinds)}
	labelled := k.labelled.UnsortedList()
	k.mu.Unlock()
	known = true
	for kind := range now.kinds {
		state, watched := k.options.Templates.State(kind)
		known = known && watched && (state.Delivered || state.Reason != "")
	}
	labelled = slices.DeleteFunc(labelled, func(id hubv1.ObjectIdentity) bool { return !k.isLabelled(id) })
	return now.protected(k.options.Limit, labelled, k.definition), known, counted
}

// definition returns the name that the CustomResourceDefinition of a kind has. The result is empty for a kind of the
// core group, and for a kind that the hub does not serve. For other built-in kinds, the result is a name that no
// CustomResourceDefinition has, such as deployments.apps.
func (k *Keeper) definition(kind schema.GroupKind) string {
	if kind.Group == "" {
		return ""
	}
	mapping, err := k.options.Mapper.RESTMapping(kind)
	if err != nil {
		return "" // the hub does not serve the kind, so that there is no definition to protect
	}
	return mapping.Resource.GroupResource().String()
}
