// Package report writes the status of each binding (its rows and conditions) and the merged status of the hub object,
// and records the object's events.
//
// hub/rollup computes the statuses. This package gathers their inputs, and decides when they are written.
//   - An event only queues a binding. Only the outcomes of package dispatch are kept in memory, because no other part
//     has them. After a restart, a row stays until there is a new outcome.
//   - The events of one binding are collected in a window (window.go). So a fan-out to N clusters costs one write of
//     the binding and one of the hub object. A window ends at once when the last cluster has reported or one has
//     failed.
//   - A window that has ended is written when hub/pace gives a turn. Until then, later changes join it.
//   - Both are written only if they differ. The hub object is written first: then the binding's condition can report
//     the result, and under load users see the hub object's status first.
//   - A cached binding that is older than our own last write is ignored.
//   - A link that is down for less than the grace period changes no row (grace.go).
//   - Every replica writes the rows of the clusters that it works on. The leader alone writes the rest (shares.go).
//
// The status of a hub object is written only if this is safe (object.go). If it is not safe, the merged status is only
// in the binding, with the reason.
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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

// Templates returns the hub's own objects from memory.
type Templates interface {
	// Get returns the hub object, with the managed fields of the status subresource only. The object is shared, and the
	// caller must not change it.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// Content returns a number that changes with every part of the hub object except its status. It is 0 if the hub has no
	// such object.
	Content(id hubv1.ObjectIdentity) uint64
}

// Decisions returns the last decision on a binding, without its spec.
type Decisions interface {
	// Decision returns the condition Scheduled, the rejected clusters and the matching placements that the object does not
	// follow. known is false until this process has decided on the binding. Until then, the status keeps the earlier
	// decision.
	Decision(binding types.NamespacedName) (scheduled metav1.Condition, decision *hubv1.DecisionStatus, otherPlacements []string, known bool)
}

// Options of a Reporter. The fields Withdrawn, Pacer, Holds, IsHub, Conventions, Converged, Grace, Clock and Tracer are
// optional; all other fields are required.
type Options struct {
	// Client reads bindings, placements and clusters from the cache.
	Client      client.Client
	Definitions Definitions
	// HubConfig is the configuration of the client that writes.
	HubConfig *rest.Config
	Fleet     member.Fleet
	Links     member.Links
	Templates Templates
	Decisions Decisions
	// Withdrawn is called for a binding whose object is deleted and whose last copy is removed. If it returns true, the
	// binding is deleted now, and its rows are not written. If Withdrawn is nil, the rows are written.
	Withdrawn func(hubv1.BindingObject) (news bool)
	Events    events.EventRecorder
	// Pacer gives the turns for writes. If Pacer is nil, the Reporter makes its own.
	Pacer *pace.Pacer
	// Holds reports whether a cluster is in this replica's shard. If Holds is nil, this is the only replica.
	Holds func(cluster string) bool
	// IsHub reports whether a cluster in another replica's shard is the hub itself. If IsHub is nil, no such cluster is
	// the hub.
	IsHub func(cluster string) bool
	// HubRunsWorkloads reports whether the hub has nodes or a controller-manager. If it is nil, the hub has neither.
	HubRunsWorkloads func() bool
	// Conventions returns how to read the status of a hub object of a kind, if the hub is its own member. If it is nil, no
	// kind has conventions.
	Conventions func(context.Context, schema.GroupVersionKind) health.Conventions
	// Converged is called when a change of an object is on all of its clusters, with the time that the change took.
	// Converged may be nil.
	Converged func(placement types.NamespacedName, took time.Duration)
	// Grace is the time for which a link may be down before rows change. Default 10 s.
	Grace time.Duration
	Clock clock.PassiveClock
	// Tracer makes the spans of written statuses. If Tracer is nil, there are no spans.
	Tracer *tracing.Tracer
}

// Reporter updates the status of every binding and of its hub object.
type Reporter struct {
	opts    Options
	writer  writer
	elected <-chan struct{} // closed once this replica leads; nil until the controller is made

	mu      sync.Mutex
	ctx     context.Context                                   // nil until started
	queue   priorityqueue.PriorityQueue[types.NamespacedName] // nil until started
	entries map[types.NamespacedName]*entry
	away    map[string]bool      // clusters without a link, or whose link is down
	lost    map[string]time.Time // when the link went down, for clusters that have one
	unready map[string]unready   // of MemberClusters
}

// New returns a Reporter that has no bindings yet.
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
	if opts.Converged == nil {
		opts.Converged = func(types.NamespacedName, time.Duration) {}
	}
	if opts.Grace == 0 {
		opts.Grace = grace
	}
	if opts.Pacer == nil {
		opts.Pacer = pace.New(opts.Clock)
	}
	r := &Reporter{
		opts:    opts,
		entries: map[types.NamespacedName]*entry{},
		away:    map[string]bool{},
		lost:    map[string]time.Time{},
		unready: map[string]unready{},
	}
	config := rest.CopyConfig(opts.HubConfig)
	config.Timeout = pace.AnswerWithin
	config.Wrap(opts.Pacer.Wrap)
	var err error
	if r.writer, err = newWriter(config); err != nil {
		return nil, err
	}
	return r, nil
}

const workers = 4

// SetupWithManager adds the controller, which runs in every replica.
func (r *Reporter) SetupWithManager(mgr manager.Manager) error {
	yes, no := true, false
	r.elected = mgr.Elected()
	c, err := controller.NewTyped("report", mgr, controller.TypedOptions[types.NamespacedName]{
		Reconciler:              r,
		MaxConcurrentReconciles: workers,
		NeedLeaderElection:      &no,
		UsePriorityQueue:        &yes,
		RecoverPanic:            &yes,
		ReconciliationTimeout:   3 * pace.AnswerWithin,
		RateLimiter:             pace.Retries[types.NamespacedName](),
	})
	if err != nil {
		return fmt.Errorf("making the report controller: %w", err)
	}
	start := func(ctx context.Context, work workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
		r.open(ctx, work)
		return nil
	}
	if err := c.Watch(source.TypedFunc[types.NamespacedName](start)); err != nil {
		return fmt.Errorf("starting the report controller: %w", err)
	}
	return nil
}

// open stores the controller's queue, and queues the bindings whose changes arrived before.
func (r *Reporter) open(ctx context.Context, work workqueue.TypedRateLimitingInterface[types.NamespacedName]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.queue = ctx, work.(priorityqueue.PriorityQueue[types.NamespacedName])
	for key, e := range r.entries {
		if e.window.open() {
			r.enqueue(key, e.window.class, e.window.due.Sub(r.opts.Clock.Now()))
		}
	}
}

// Record stores the outcome of one attempt to write a copy. binding is the cached binding of the attempt.
func (r *Reporter) Record(binding hubv1.BindingObject, cluster string, o member.Outcome) {
	if !r.catchUp(binding) {
		return
	}
	key := client.ObjectKeyFromObject(binding)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(key)
	if e.overtook(binding, cluster) {
		return // the later decision is tried next
	}
	repeats := e.reported == reached{binding: e.generation, hub: o.HubContent}
	u, news := e.record(cluster, o, r.away, r.opts.Holds)
	switch {
	case !news:
	case u == failure:
		r.wake(key, e, u, pace.Failure)
	case o.Applied == metav1.ConditionUnknown || repeats:
		// If a member stops answering, or a policy is edited, many objects have such an outcome at once.
		r.wake(key, e, u, pace.Many)
	default:
		r.wake(key, e, u, pace.FirstResult)
	}
}

// catchUp adopts the cached binding if the binding's event has not been handled yet. Without this step, the outcome
// would be recorded for the earlier decision. It returns false if the binding was deleted.
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
		e.unshown.saw(r.opts.Clock.Now())
		r.wake(key, e, whenIdle, pace.FirstResult)
	}
	return true
}

// Wake queues a binding, because its copy on a cluster changed.
func (r *Reporter) Wake(binding types.NamespacedName, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[binding]; e != nil {
		r.wake(binding, e, e.change(cluster, r.away, r.opts.Holds), pace.MergedStatus)
	} // an unknown binding is queued by its first event
}

// WakeDecided queues a binding whose decision changed. Its window waits for results, which are likely to follow.
// onlyWording means that only the message changed, probably for many bindings at once.
func (r *Reporter) WakeDecided(binding types.NamespacedName, onlyWording bool) {
	class := pace.FirstResult
	if onlyWording {
		class = pace.Many
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[binding]; e != nil {
		r.wake(binding, e, whenIdle, class)
	}
}

// WakeObject queues the binding of a changed hub object, unless the change is our own write.
func (r *Reporter) WakeObject(id hubv1.ObjectIdentity) {
	key := id.BindingKey()
	template, ok := r.opts.Templates.Get(id)
	content := r.opts.Templates.Content(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil {
		return // an object without a binding has no status to write
	}
	e.unshown.sawContent(content, r.opts.Clock.Now())
	if ok && template.GetResourceVersion() == e.merged.resourceVersion {
		e.merged = e.merged.seen(e.merged.resourceVersion)
		return
	}
	r.wake(key, e, whenIdle, pace.MergedStatus)
}

// The caller of entry, wake, queueWoken and enqueue holds the lock.
func (r *Reporter) entry(key types.NamespacedName) *entry {
	e := r.entries[key]
	if e == nil {
		e = &entry{}
		r.entries[key] = e
	}
	return e
}

// wake opens the window of a binding for a change, or lets an open window end earlier.
func (r *Reporter) wake(key types.NamespacedName, e *entry, u urgency, c pace.Class) {
	r.queueWoken(key, e, func(now time.Time) bool { return e.window.wake(now, u, c) })
}

// wakeAfter does the same as wake, with the given duration of the window.
func (r *Reporter) wakeAfter(key types.NamespacedName, e *entry, after time.Duration, c pace.Class) {
	r.queueWoken(key, e, func(now time.Time) bool { return e.window.wakeAt(now, now.Add(after), c) })
}

func (r *Reporter) queueWoken(key types.NamespacedName, e *entry, wake func(now time.Time) bool) {
	// The binding may have been deleted.
	now := r.opts.Clock.Now()
	if r.entries[key] == e && wake(now) {
		r.enqueue(key, e.window.class, e.window.due.Sub(now))
	}
}

// enqueue queues a binding, to be reconciled after a time.
func (r *Reporter) enqueue(key types.NamespacedName, c pace.Class, after time.Duration) {
	if r.queue != nil {
		r.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(c.Priority()), After: max(0, after)}, key)
	}
}
