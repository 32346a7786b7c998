// Package observe watches the hub's copies in one member cluster, and keeps one small Observation for each.
//
// A kind is watched while a holder, a binding, needs it, and only objects with the hub's label. Each object is judged
// and hashed as a whole when it arrives, then dropped: the size of the observation does not grow with the spec. A
// member's users write these objects. So their size is limited, and invalid content causes no failure.
//
// The label only selects. Packages content and apply decide whether an object belongs to this hub.
package observe

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
	"github.com/hanse-dev/hanse/canonical"
	"github.com/hanse-dev/hanse/kindwatch"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

// linger is how long a kind is watched after its last holder, so that a kind that is needed again soon is not listed
// again.
const linger = 30 * time.Second

// Options of an Observer. All except OnState, OnUse, Conventions, Settings and Clock are required.
type Options struct {
	// Cluster is the name of the MemberCluster.
	Cluster string
	// Client has no timeout.
	Client dynamic.Interface
	// Resolve finds the resource of a kind; see kindwatch.Options.
	Resolve func(schema.GroupVersionKind) (schema.GroupVersionResource, error)
	// Conventions returns the conventions of a kind; if nil, there are none. It must answer from memory.
	Conventions func(schema.GroupVersionKind) health.Conventions
	// Settings returns the status settings of an object's placement, as the same pointer until they change; if nil,
	// there are none. It must answer from memory, because it is called at every event.
	Settings func(hubv1.ObjectIdentity) *health.Settings
	// HubUID is the value of the hub's label.
	HubUID types.UID
	// Key for the content hashes of Secrets.
	Key canonical.Key
	// Handler is called for changed observations, including those of the first list. It must not block.
	Handler member.ObservationHandler
	// OnState is called when a kind becomes synced, when its watch fails, and when it works again. It must not block.
	OnState func(cluster string, gvk schema.GroupVersionKind, s kindwatch.State)
	// OnUse is called when the watch of a kind begins and when it ends. It must not block.
	OnUse func(gvk schema.GroupVersionKind, used bool)
	// Clock delays repeated reads of objects; if nil, the real clock is used.
	Clock clock.WithDelayedExecution
}

// Observer implements the methods Observe, Forget, Observation and Unwatched of member.Cluster.
type Observer struct {
	ctx     context.Context
	options Options
	watches *kindwatch.Set

	mu      sync.Mutex
	holders map[schema.GroupVersionKind]map[types.NamespacedName]struct{}
	ending  map[schema.GroupVersionKind]*time.Timer // kinds without a holder that still linger
	rereads map[schema.GroupVersionKind]*rereads
	linger  time.Duration
	gather  time.Duration
	used    int  // kinds in use, as counted in the metric
	ended   bool // ctx has ended: no kind is in use
}

// New returns an Observer that watches nothing yet. Its watches end with ctx.
func New(ctx context.Context, o Options) *Observer {
	if o.Conventions == nil {
		o.Conventions = func(schema.GroupVersionKind) health.Conventions { return health.Conventions{} }
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
	ob.watches = kindwatch.New(kindwatch.Options{
		Client:        o.Client,
		Resolve:       o.Resolve,
		LabelSelector: hubv1.HubLabel + "=" + string(o.HubUID),
		Transform: func(u *unstructured.Unstructured) (metav1.Object, error) {
			if err := member.CheckObject(u); err != nil {
				return nil, err
			}
			gvk := u.GroupVersionKind()
			return newRecord(o.Key, u, o.Conventions(gvk), o.Settings(identity(gvk, u))), nil
		},
		Handler: ob.changed,
		OnState: func(gvk schema.GroupVersionKind, s kindwatch.State) {
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

// Observe watches the kind for this holder.
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

// Forget removes the holder. The watch stops half a minute after the last holder.
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

// end stops a kind unless a holder came back while the timer fired.
func (ob *Observer) end(gvk schema.GroupVersionKind) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if ob.holders[gvk] == nil {
		delete(ob.ending, gvk)
		ob.watches.Stop(gvk)
		ob.use(gvk, false)
	}
}

// use records that the watch of a kind starts or ends. The caller holds the lock.
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

// Await passes the object from the response to a write, so that its watch event need not be decoded.
func (ob *Observer) Await(gvk schema.GroupVersionKind, u *unstructured.Unstructured) {
	ob.watches.Await(gvk, u)
}

// Observation returns the last observed state of an object; see member.Cluster. While the member does not serve the
// kind, nothing is known: its definition may be gone, and every object with it.
func (ob *Observer) Observation(gvk schema.GroupVersionKind, key types.NamespacedName) (o member.Observation, found, synced bool) {
	// Read Synced first: an object of the first list that arrives between the two calls must not seem missing.
	state, _ := ob.watches.State(gvk)
	if state.Reason == hubv1.ReasonKindNotServed {
		return o, false, false
	}
	object, found := ob.watches.Get(gvk, kindwatch.Key(key.Namespace, key.Name))
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

// Each calls visit with every object of the kinds that are watched and whose first list was delivered.
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

// State returns the state of the watch of a kind; false if it is not watched.
func (ob *Observer) State(gvk schema.GroupVersionKind) (kindwatch.State, bool) {
	return ob.watches.State(gvk)
}

// Restart restarts every watch at once, as after a new link.
func (ob *Observer) Restart() { ob.watches.Restart() }

// Retry makes the failing watches of a kind try again now.
func (ob *Observer) Retry(gk schema.GroupKind) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	for gvk := range ob.holders {
		if gvk.GroupKind() == gk {
			ob.watches.Retry(gvk)
		}
	}
}

// changed calls the handler for an event.
func (ob *Observer) changed(_ schema.GroupVersionKind, old, latest metav1.Object) {
	before, _ := old.(*record)
	after, _ := latest.(*record)
	if after != nil && after.common.Value().settings != ob.options.Settings(after.identity()) {
		ob.reread(after.common.Value().gvk, keyOf(after)) // they changed since the object was read
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
