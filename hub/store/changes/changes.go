// Package changes reports changes of the hub's own bindings, policies, clusters and namespaces to the parts of the hub.
//
// Each kind has one informer handler. For each event, the handler compares the object before and after, to find the
// changed parts. It then calls the functions that are registered for one of these parts, in the order of their
// registration. A registered function must not block. Every replica calls the functions, whether or not it is the
// leader.
//
// Package hub registers the functions. Each function decides what to do after a change.
package changes

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

// Change is one event of an object.
type Change[T client.Object] struct {
	// Before and After are the object before and after the event. They are shared, and the caller must not change them.
	// Before is nil for an added object. After is nil for a deleted object.
	Before, After T
	// Initial is true if the object is from the first list of a watch. Such an object existed before, so that the event is
	// not a change.
	Initial bool
	// Parts says which parts of the object have changed in this event, such as the spec or the labels.
	Parts Parts
}

// These are the types of a change, one for each kind that the handlers watch.
type (
	Binding        = Change[hubv1.BindingObject]
	Placement      = Change[hubv1.PlacementObject]
	Bundle         = Change[hubv1.BundleObject]
	SetRollout     = Change[*hubv1.SetRollout]
	OverridePolicy = Change[hubv1.OverridePolicyObject]
	Cluster        = Change[*hubv1.MemberCluster]
	Namespace      = Change[*corev1.Namespace]
)

// Feed passes the changes of all kinds to registered functions.
type Feed struct {
	Bindings         *Kind[hubv1.BindingObject]
	Placements       *Kind[hubv1.PlacementObject]
	Bundles          *Kind[hubv1.BundleObject]
	SetRollouts      *Kind[*hubv1.SetRollout]
	OverridePolicies *Kind[hubv1.OverridePolicyObject]
	Clusters         *Kind[*hubv1.MemberCluster]
	Namespaces       *Kind[*corev1.Namespace]
}

// NewFeed returns a Feed on which no functions are registered.
func NewFeed() *Feed {
	return &Feed{
		Bindings: &Kind[hubv1.BindingObject]{
			kinds: []client.Object{&hubv1.ResourceBinding{}, &hubv1.ClusterResourceBinding{}}, compare: compareBindings,
		},
		Placements: &Kind[hubv1.PlacementObject]{
			kinds: []client.Object{&hubv1.Placement{}, &hubv1.ClusterPlacement{}}, compare: comparePlacements,
		},
		Bundles: &Kind[hubv1.BundleObject]{
			kinds: []client.Object{&hubv1.Bundle{}, &hubv1.ClusterBundle{}, &hubv1.FederatedOperator{}}, compare: compareBundles,
		},
		SetRollouts: &Kind[*hubv1.SetRollout]{kinds: []client.Object{&hubv1.SetRollout{}}, compare: compareMeta[*hubv1.SetRollout]},
		OverridePolicies: &Kind[hubv1.OverridePolicyObject]{
			kinds: []client.Object{&hubv1.OverridePolicy{}, &hubv1.ClusterOverridePolicy{}}, compare: compareMeta[hubv1.OverridePolicyObject],
		},
		Clusters:   &Kind[*hubv1.MemberCluster]{kinds: []client.Object{&hubv1.MemberCluster{}}, compare: compareClusters},
		Namespaces: &Kind[*corev1.Namespace]{kinds: []client.Object{&corev1.Namespace{}}, compare: compareMeta[*corev1.Namespace]},
	}
}

// Watch starts the informers. All functions must be registered before Watch is called. A kind without a function is not
// watched.
func (f *Feed) Watch(ctx context.Context, informers cache.Informers) error {
	for _, watch := range []func(context.Context, cache.Informers) error{
		f.Bindings.watch, f.Placements.watch, f.Bundles.watch, f.SetRollouts.watch, f.OverridePolicies.watch, f.Clusters.watch, f.Namespaces.watch,
	} {
		if err := watch(ctx, informers); err != nil {
			return err
		}
	}
	return nil
}

// Kind passes the changes of one kind to registered functions. A namespaced kind and its cluster-scoped counterpart can
// share one Kind.
type Kind[T client.Object] struct {
	kinds   []client.Object
	compare func(before, after T) Parts
	asked   []asked[T]

	mu     sync.Mutex
	listed []toolscache.InformerSynced // reports whether the first list is complete, for each informer
}

type asked[T client.Object] struct {
	parts Parts
	f     func(context.Context, Change[T])
}

// On registers a function for changes of these parts. It must be called before Watch.
func (k *Kind[T]) On(parts Parts, f func(context.Context, Change[T])) {
	k.asked = append(k.asked, asked[T]{parts, f})
}

// Listed reports whether the registered functions have received all objects that existed when the watch of the kind
// began.
func (k *Kind[T]) Listed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, listed := range k.listed {
		if !listed() {
			return false
		}
	}
	return len(k.listed) == len(k.kinds)
}

// Await waits until Listed returns true. It returns false if ctx ends first.
func (k *Kind[T]) Await(ctx context.Context) bool {
	return toolscache.WaitForCacheSync(ctx.Done(), k.Listed)
}

func (k *Kind[T]) watch(ctx context.Context, informers cache.Informers) error {
	if len(k.asked) == 0 {
		return nil
	}
	for _, kind := range k.kinds {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T on the hub: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(k.Handler(ctx))
		if err != nil {
			return fmt.Errorf("watching %T on the hub: %w", kind, err)
		}
		k.mu.Lock()
		k.listed = append(k.listed, registration.HasSynced)
		k.mu.Unlock()
	}
	return nil
}

// Handler returns the handler for an informer.
func (k *Kind[T]) Handler(ctx context.Context) toolscache.ResourceEventHandler {
	as := func(obj any) T {
		t, _ := scopes.Last(obj).(T)
		return t
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			k.notify(ctx, Change[T]{After: as(obj), Initial: initial, Parts: Added})
		},
		UpdateFunc: func(before, after any) {
			b, a := as(before), as(after)
			k.notify(ctx, Change[T]{Before: b, After: a, Parts: Any | k.compare(b, a)})
		},
		DeleteFunc: func(obj any) { k.notify(ctx, Change[T]{Before: as(obj), Parts: Deleted}) },
	}
}

func (k *Kind[T]) notify(ctx context.Context, c Change[T]) {
	for _, a := range k.asked {
		if c.Parts&a.parts != 0 {
			a.f(ctx, c)
		}
	}
}
