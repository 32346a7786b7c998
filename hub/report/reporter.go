// Package report says what became of each binding: it keeps the rows and conditions of the binding's status, and the
// merged status of the hub object, and tells the object's events.
//
// What is said is decided by hub/rollup; here it is gathered, written and timed.
//   - Whatever happens only wakes a binding. Outcomes of package dispatch are the one thing that is kept in memory,
//     because nobody else has them; after a restart the rows hold until there are new ones.
//   - The wakes of one binding meet in a window (window.go), so that a fan-out to N clusters costs one write of the
//     binding and one of the hub object. A window ends at once when the last cluster has reported or one has failed.
//   - While many copies are still on their way to members, or many objects wait for their status, windows are held
//     (hold.go).
//   - Both are written only if they differ. The hub object comes first, so that the binding's write can say what came
//     of it, and so that under load what people look at is there first.
//   - A binding in the cache that is older than our own last write is not acted on.
//   - A link that is down for a moment changes nothing (grace.go).
//   - Every replica reports on the clusters that it works on, the leader alone writes the rest (shares.go).
//
// The status of a hub object is written only where that is safe (object.go); everything else is in the binding, with
// the reason.
package report

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

// Templates gives the hub's own objects from memory.
type Templates interface {
	// Get returns the hub object; it is shared and must not be changed. Of its managed fields, those of the status
	// subresource are kept.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// Content is the same number as long as nothing but the status of the hub object changes; 0 if there is no such
	// object.
	Content(id hubv1.ObjectIdentity) uint64
}

// Decisions gives what scheduling last said about a binding beside its spec.
type Decisions interface {
	// Decision returns the condition Scheduled, the rejected clusters and the placements that are not followed. known is
	// false until the binding has been scheduled by this process: then what its status says stays.
	Decision(binding types.NamespacedName) (scheduled metav1.Condition, decision *hubv1.DecisionStatus, otherPlacements []string, known bool)
}

// Options of a Reporter. All but Holds, IsHub, Backlog, Conventions, Wishes, Grace and Clock are required.
type Options struct {
	// Client reads bindings, placements and clusters from the cache.
	Client      client.Client
	Definitions Definitions
	// HubConfig is for the writes.
	HubConfig *rest.Config
	Fleet     member.Fleet
	Links     member.Links
	Templates Templates
	Decisions Decisions
	Events    events.EventRecorder
	// Holds says whether this replica works on a cluster. Unset means that there is one replica.
	Holds func(cluster string) bool
	// IsHub says whether a cluster that another replica works on is the hub itself. Unset means no.
	IsHub func(cluster string) bool
	// HubRunsWorkloads says whether the hub has nodes or a controller-manager. Unset means no.
	HubRunsWorkloads func() bool
	// Backlog is how many changes wait to be brought to the members of this replica: while there are many, rows wait.
	// Unset means that they never do. It is asked often.
	Backlog func() int
	// Conventions of a kind, and Wishes of a binding's placement, are by which the status of a hub object is read if the
	// hub is a member. Unset means that there are none.
	Conventions func(context.Context, schema.GroupVersionKind) health.Conventions
	Wishes      func(hubv1.BindingObject) *health.Wishes
	// Grace is how long a link may be down before rows say so. Default 10 s.
	Grace time.Duration
	Clock clock.PassiveClock
}

// Reporter keeps the status of every binding and of its hub object.
type Reporter struct {
	opts     Options
	writer   writer
	throttle *throttle

	mu      sync.Mutex
	ctx     context.Context                                   // nil until started
	queue   priorityqueue.PriorityQueue[types.NamespacedName] // nil until started
	entries map[types.NamespacedName]*entry
	waiting int                             // entries that wait for their window to end
	away    map[string]bool                 // clusters whose link is known to be down
	lost    map[string]time.Time            // when that began, of those that have a link
	unready map[string]time.Time            // when each MemberCluster that is not Ready turned so
	turns   turns                           // of bindings that an event woke which concerns many
	unsure  turns                           // of bindings of which only that is new that a member does not answer
	held    map[types.NamespacedName]*entry // those whose window is held, and some that are no longer; see hold.go
	elected <-chan struct{}                 // closed once this replica leads; nil until the controller is made
}

// New returns a Reporter that knows of no binding.
func New(opts Options) (*Reporter, error) {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Holds == nil {
		opts.Holds = func(string) bool { return true }
	}
	if opts.IsHub == nil {
		opts.IsHub = func(string) bool { return false }
	}
	if opts.HubRunsWorkloads == nil {
		opts.HubRunsWorkloads = func() bool { return false }
	}
	if opts.Conventions == nil {
		opts.Conventions = func(context.Context, schema.GroupVersionKind) (none health.Conventions) { return none }
	}
	if opts.Wishes == nil {
		opts.Wishes = func(hubv1.BindingObject) *health.Wishes { return nil }
	}
	if opts.Grace == 0 {
		opts.Grace = grace
	}
	if opts.Backlog == nil {
		opts.Backlog = func() int { return 0 }
	}
	r := &Reporter{
		opts:     opts,
		throttle: &throttle{clock: opts.Clock},
		entries:  map[types.NamespacedName]*entry{},
		turns:    turns{per: perTurn, longest: longestTurns},
		unsure:   turns{per: perUnsure, longest: longestUnsures},
		away:     map[string]bool{},
		lost:     map[string]time.Time{},
		unready:  map[string]time.Time{},
		held:     map[types.NamespacedName]*entry{},
	}
	config := rest.CopyConfig(opts.HubConfig)
	config.Timeout = requestTimeout
	config.Wrap(r.throttle.wrap)
	var err error
	if r.writer, err = newWriter(config); err != nil {
		return nil, err
	}
	return r, nil
}

const (
	requestTimeout = 10 * time.Second
	workers        = 4
	retryFirst     = 200 * time.Millisecond
	retryMost      = time.Minute

	normalPriority = 0
	// lowPriority is for replays: a change that is made now overtakes them.
	lowPriority = -100
)

// SetupWithManager adds the controller, which works in every replica, and watches what wakes it.
func (r *Reporter) SetupWithManager(mgr manager.Manager) error {
	yes, no := true, false
	r.elected = mgr.Elected()
	c, err := controller.NewTyped("report", mgr, controller.TypedOptions[types.NamespacedName]{
		Reconciler:              r,
		MaxConcurrentReconciles: workers,
		NeedLeaderElection:      &no,
		UsePriorityQueue:        &yes,
		RecoverPanic:            &yes,
		ReconciliationTimeout:   3 * requestTimeout,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryFirst, retryMost),
	})
	if err != nil {
		return fmt.Errorf("making the report controller: %w", err)
	}
	start := func(ctx context.Context, work workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
		r.open(ctx, work)
		return r.watch(ctx, mgr.GetCache())
	}
	if err := c.Watch(source.TypedFunc[types.NamespacedName](start)); err != nil {
		return fmt.Errorf("starting the report controller: %w", err)
	}
	return nil
}

// open takes the controller's queue and puts in what woke before there was one.
func (r *Reporter) open(ctx context.Context, work workqueue.TypedRateLimitingInterface[types.NamespacedName]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.queue = ctx, work.(priorityqueue.PriorityQueue[types.NamespacedName])
	for key, e := range r.entries {
		if e.window.open() {
			r.enqueue(key, e, lowPriority)
		}
	}
}

// Record takes the outcome of one try to bring the object of a binding to a cluster. The binding is the one that was
// tried, as the cache had it.
func (r *Reporter) Record(binding hubv1.BindingObject, cluster string, o member.Outcome) {
	if !r.catchUp(binding) {
		return
	}
	key := client.ObjectKeyFromObject(binding)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(key)
	if e.overtook(binding, cluster) {
		return // what was decided since is tried next
	}
	u, news := e.record(cluster, o, r.away, r.opts.Holds)
	switch {
	case !news:
	case o.Applied == metav1.ConditionUnknown && !e.window.open():
		r.wakeInTurn(key, e, &r.unsure, e.window.wait(r.opts.Clock.Now(), u, r.load(e)))
	default:
		r.wake(key, e, u, normalPriority)
	}
}

// catchUp takes up the binding as the cache has it now, if its event has not come here yet: that event would take an
// outcome for one of the decision before. It returns false if there is no such binding any more.
func (r *Reporter) catchUp(tried hubv1.BindingObject) bool {
	key := client.ObjectKeyFromObject(tried)
	r.mu.Lock()
	e := r.entries[key]
	ctx, known := r.ctx, e != nil && e.uid == tried.GetUID() && e.generation >= tried.GetGeneration()
	r.mu.Unlock()
	if ctx == nil || known {
		return true
	}
	b := hubv1.NewBinding(key)
	if err := r.opts.Client.Get(ctx, key, b, client.UnsafeDisableDeepCopy); err != nil || b.GetUID() != tried.GetUID() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entry(key); e.adopt(b) {
		r.wake(key, e, whenIdle, normalPriority)
	}
	return true
}

// Wake makes a binding be looked at soon: its object on a cluster changed.
func (r *Reporter) Wake(binding types.NamespacedName, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[binding]; e != nil {
		r.wake(binding, e, e.change(cluster, r.away, r.opts.Holds), normalPriority)
	} // one that is not known yet is looked at when it comes
}

// WakeDecided makes a binding be looked at whose decision changed: results are likely to follow. If it is decided as
// before, in other words, there may be many such.
func (r *Reporter) WakeDecided(binding types.NamespacedName, asBefore bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[binding]
	switch {
	case e == nil:
	case asBefore:
		r.wakeInTurn(binding, e, &r.turns, idleWindow)
	default:
		r.wake(binding, e, whenIdle, normalPriority)
	}
}

// WakeObject is Wake for the binding of a hub object that changed, unless the change is our own write.
func (r *Reporter) WakeObject(id hubv1.ObjectIdentity) {
	key := id.BindingKey()
	template, ok := r.opts.Templates.Get(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil {
		return // an object without binding has nothing to be reported
	}
	if ok && template.GetResourceVersion() == e.merged.resourceVersion {
		e.merged = e.merged.seen(e.merged.resourceVersion)
		return
	}
	r.wake(key, e, whenIdle, normalPriority)
}

// entry, wake, load and enqueue are called with the lock held.
func (r *Reporter) entry(key types.NamespacedName) *entry {
	e := r.entries[key]
	if e == nil {
		e = &entry{}
		r.entries[key] = e
	}
	return e
}

func (r *Reporter) wake(key types.NamespacedName, e *entry, u urgency, priority int) {
	r.waking(key, e, priority, func(now time.Time) bool {
		return e.window.wake(now, u, r.load(e))
	})
}

func (r *Reporter) load(e *entry) load {
	return load{waiting: r.waiting, throttled: r.throttle.active(), clusters: len(e.targets)}
}

func (r *Reporter) waking(key types.NamespacedName, e *entry, priority int, wake func(now time.Time) bool) {
	if r.entries[key] != e {
		return // the binding is gone
	}
	waited := e.window.waits()
	woken := wake(r.opts.Clock.Now())
	r.recountWaiting(waited, e.window.waits())
	if woken {
		r.enqueue(key, e, priority)
	}
}

func (r *Reporter) recountWaiting(before, after bool) {
	switch {
	case after && !before:
		r.waiting++
	case before && !after:
		r.waiting--
	}
}

func (r *Reporter) enqueue(key types.NamespacedName, e *entry, priority int) {
	if r.queue == nil {
		return
	}
	after := max(0, e.window.due.Sub(r.opts.Clock.Now()))
	r.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, key)
}
