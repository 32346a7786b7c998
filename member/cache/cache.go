// Package cache watches the hub's copies in one member cluster. It keeps a small Observation of each copy.
//
// A kind is watched as long as at least one binding needs copies of it. The watch selects objects with the hub's label.
// When an object arrives, it is judged and hashed, and only the observation is kept. The size of an observation does
// not depend on the spec. Because users of the member can write these objects, the size of an object is limited, and
// invalid content causes no error.
//
// The label only selects objects for the watch. Packages content and apply decide whether an object is a copy of this
// hub.
package cache

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

// linger is how long a kind is watched after no binding needs it any more. A kind that is soon needed again is then not
// listed again.
const linger = 30 * time.Second

// Options of an Observer. All fields except OnState, OnUse, Conventions, Claimed, Retained, Settings and
// Clock are required.
type Options struct {
	// Cluster is the name of the MemberCluster.
	Cluster string
	// Client sends the lists and watches. It must have no timeout.
	Client dynamic.Interface
	// Resolve returns the resource of a kind on the member; see informer.Options.
	Resolve func(schema.GroupVersionKind) (schema.GroupVersionResource, error)
	// Conventions returns how to read the status of a kind. It must answer from memory. If the field is nil, every kind
	// has empty conventions.
	Conventions func(schema.GroupVersionKind) health.Conventions
	// Claimed reports whether a binding names this cluster as a target of the object. Of other objects, only names and
	// marks are kept. Reread must be called for an object that becomes claimed. Claimed must answer from memory. If it is
	// nil, every object is claimed.
	Claimed func(hubv1.ObjectIdentity) bool
	// Retained limits the memory of the observations; see informer.Options. If it is nil, the memory has no limit.
	Retained *answer.Retained
	// Settings returns the status settings of an object's placement, or nil if the placement sets none. It returns the
	// same pointer until the settings change. It must not block, because it is called for every event. The field Settings
	// may be nil.
	Settings func(hubv1.ObjectIdentity) *health.Settings
	// HubUID is the value of the label hanse.dev/hub on the copies of this hub.
	HubUID types.UID
	// Key is the HMAC key for the content hashes of Secrets.
	Key canonical.Key
	// Handler is called for changed observations, including those of the first list. It must not block.
	Handler member.ObservationHandler
	// OnState is called when the first list of a kind is complete, when its watch fails, and when the watch works
	// again. It must not block.
	OnState func(cluster string, gvk schema.GroupVersionKind, s informer.State)
	// OnUse is called when the watch of a kind begins and when it ends. It must not block.
	OnUse func(gvk schema.GroupVersionKind, used bool)
	// Clock delays the repeated reads of objects. The default is the real clock.
	Clock clock.WithDelayedExecution
}

// Observer implements the methods Observe, Forget, Observation and Unwatched of member.Cluster.
type Observer struct {
	ctx     context.Context
	options Options
	watches *informer.Set

	mu      sync.Mutex
	holders map[schema.GroupVersionKind]map[types.NamespacedName]struct{}
	ending  map[schema.GroupVersionKind]*time.Timer // kinds without a holder that are still watched
	rereads map[schema.GroupVersionKind]*rereads
	linger  time.Duration
	gather  time.Duration
	used    int  // kinds in use, as counted in the metric
	ended   bool // ctx has ended, so that no kind is in use any more
}

// New returns an Observer that watches nothing yet. Its watches end with ctx.
func New(ctx context.Context, o Options) *Observer {
	if o.Conventions == nil {
		o.Conventions = func(schema.GroupVersionKind) health.Conventions { return health.Conventions{} }
	}
	if o.Claimed == nil {
		o.Claimed = func(hubv1.ObjectIdentity) bool { return true }
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Settings == nil {
		o.Settings = func(hubv1.ObjectIdentity) *health.Settings { return nil }
	}
	ob := &Observer{
		ctx: ctx, options: o, linger: linger, gather: gather,
		holders: map[schema.GroupVersionKind]map[types.NamespacedName]struct{}{},
		ending:  map[schema.GroupVersionKind]*time.Timer{},
		rereads: map[schema.GroupVersionKind]*rereads{},
	}
	ob.watches = informer.New(informer.Options{
		Client:        o.Client,
		Resolve:       o.Resolve,
		Retained:      o.Retained,
		LabelSelector: hubv1.HubLabel + "=" + string(o.HubUID),
		Transform:     func(u *unstructured.Unstructured) (metav1.Object, error) { return ob.reduce(u), nil },
		Handler:       ob.changed,
		OnState: func(gvk schema.GroupVersionKind, s informer.State) {
			if o.OnState != nil {
				o.OnState(o.Cluster, gvk, s)
			}
		},
	})
	context.AfterFunc(ctx, func() {
		ob.mu.Lock()
		defer ob.mu.Unlock()
		countWatches(o.Cluster, -ob.used)
		ob.used, ob.ended = 0, true
	})
	return ob
}

// reduce returns the record of an object.
func (ob *Observer) reduce(u *unstructured.Unstructured) *record {
	gvk := u.GroupVersionKind()
	id := identity(gvk, u)
	if !ob.options.Claimed(id) {
		return newUnclaimed(ob.options.Key, u)
	}
	return newRecord(ob.options.Key, u, ob.options.Conventions(gvk), ob.options.Settings(id))
}

// outdated reports whether the record of an object must be computed again, because the object is claimed now, or its
// settings have changed.
func (ob *Observer) outdated(r *record, id hubv1.ObjectIdentity) bool {
	c := r.common.Value()
	if c.unclaimed {
		return ob.options.Claimed(id)
	}
	return c.settings != ob.options.Settings(id)
}

// Observe watches the kind as long as the holder, which is a binding, needs the kind.
func (ob *Observer) Observe(gvk schema.GroupVersionKind, holder types.NamespacedName) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if ob.holders[gvk] == nil {
		if ob.ending[gvk] == nil {
			ob.use(gvk, true)
		}
		ob.holders[gvk] = map[types.NamespacedName]struct{}{}
	}
	ob.holders[gvk][holder] = struct{}{}
	if t := ob.ending[gvk]; t != nil {
		t.Stop()
		delete(ob.ending, gvk)
	}
	ob.watches.Start(ob.ctx, gvk)
}

// Forget removes a holder, which is a binding that needed the kind. The watch stops half a minute after the last holder
// is gone.
func (ob *Observer) Forget(gvk schema.GroupVersionKind, holder types.NamespacedName) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	held, ok := ob.holders[gvk]
	delete(held, holder)
	if !ok || len(held) > 0 {
		return
	}
	delete(ob.holders, gvk)
	ob.ending[gvk] = time.AfterFunc(ob.linger, func() { ob.end(gvk) })
}

// end stops the watch of a kind. It does nothing if a binding needs the kind again meanwhile.
func (ob *Observer) end(gvk schema.GroupVersionKind) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if ob.holders[gvk] == nil {
		delete(ob.ending, gvk)
		ob.watches.Stop(gvk)
		ob.use(gvk, false)
	}
}

// use counts the watch of a kind that has started or ended, and calls OnUse. The caller holds the lock.
func (ob *Observer) use(gvk schema.GroupVersionKind, used bool) {
	more := 1
	if !used {
		more = -1
	}
	if !ob.ended {
		ob.used += more
		countWatches(ob.options.Cluster, more)
	}
	if ob.options.OnUse != nil {
		ob.options.OnUse(gvk, used)
	}
}

// Await tells the watch of the kind about the object from the response to a write. The watch event with the same
// version then need not be decoded.
func (ob *Observer) Await(gvk schema.GroupVersionKind, u *unstructured.Unstructured) {
	ob.watches.Await(gvk, u)
}

// Observation returns the last observed state of an object, see member.Cluster. While the member does not serve the
// kind, synced is false, because the definition may have been deleted with all objects.
func (ob *Observer) Observation(gvk schema.GroupVersionKind, key types.NamespacedName) (o member.Observation, found, synced bool) {
	// The state must be read before the object. Otherwise, an object of the first list that arrives in between would seem
	// to be missing.
	state, _ := ob.watches.State(gvk)
	if state.Reason == hubv1.ReasonKindNotServed {
		return o, false, false
	}
	object, found := ob.watches.Get(gvk, informer.Key(key.Namespace, key.Name))
	if r, ok := object.(*record); ok {
		o = r.observation()
	}
	return o, found, state.Synced
}

// Unwatched returns why the watch of a kind fails; see member.Cluster.
func (ob *Observer) Unwatched(gvk schema.GroupVersionKind) *member.WatchFailure {
	state, _ := ob.watches.State(gvk)
	if state.Reason == "" || state.Reason == hubv1.ReasonKindNotServed {
		return nil
	}
	return &member.WatchFailure{Reason: state.Reason, Message: state.Message, Since: state.Since}
}

// Each calls visit with every observation of a copy on the member. It skips kinds whose first list is not complete.
func (ob *Observer) Each(visit func(member.Observation)) {
	ob.mu.Lock()
	kinds := slices.Concat(slices.Collect(maps.Keys(ob.holders)), slices.Collect(maps.Keys(ob.ending)))
	ob.mu.Unlock()
	for _, gvk := range kinds {
		if state, _ := ob.watches.State(gvk); !state.Synced {
			continue
		}
		for _, object := range ob.watches.List(gvk) {
			if r, ok := object.(*record); ok {
				visit(r.observation())
			}
		}
	}
}

// State returns the state of a kind's watch. It returns false if the kind is not watched.
func (ob *Observer) State(gvk schema.GroupVersionKind) (informer.State, bool) {
	return ob.watches.State(gvk)
}

// Restart restarts every watch at once. It is called after a link has become ready again.
func (ob *Observer) Restart() { ob.watches.Restart() }

// Forbidden returns the kinds in use that the hub may not watch.
func (ob *Observer) Forbidden() []schema.GroupKind {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	var out []schema.GroupKind
	for gvk := range ob.holders {
		if state, _ := ob.watches.State(gvk); state.Reason == hubv1.ReasonForbidden {
			out = append(out, gvk.GroupKind())
		}
	}
	return out
}

// Retry makes the failed watches of a kind try again at once.
func (ob *Observer) Retry(gk schema.GroupKind) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	for gvk := range ob.holders {
		if gvk.GroupKind() == gk {
			ob.watches.Retry(gvk)
		}
	}
}

// changed is called for each event of a watched object. If the observation of the object has changed, it calls the
// handler.
func (ob *Observer) changed(_ schema.GroupVersionKind, old, latest metav1.Object) {
	before, _ := old.(*record)
	after, _ := latest.(*record)
	if after != nil && ob.outdated(after, after.identity()) { // the claim or the settings changed after the object was read
		ob.reread(after.common.Value().gvk, keyOf(after))
	}
	switch {
	case after == nil && before == nil:
	case after == nil:
		ob.options.Handler(ob.options.Cluster, before.observation(), true, true)
	case before == nil:
		ob.options.Handler(ob.options.Cluster, after.observation(), true, false)
	case !before.equal(after):
		ob.options.Handler(ob.options.Cluster, after.observation(), !before.sameContent(after), false)
	}
}
