// Package report writes the rows and conditions of each binding, writes the merged status of the hub object, and sends
// the object's events.
//
// member/rollup computes the statuses. This package gathers the inputs, and decides when a status is written.
//
//   - An event only queues a binding; the reconcile reads the state from the caches. Only the outcomes of package
//     dispatch are kept in memory, because no cache has them. After a restart, a row does not change until there is a
//     new outcome.
//   - A window (window.go) collects the changes of one binding. Therefore a change on N clusters costs one write of the
//     binding and one of the hub object. A window ends at once when the last cluster has reported or one has failed.
//   - The status is written when hub/pace gives a turn (the permission for one write) after the end of the window.
//     Changes that arrive meanwhile are in the same write.
//   - A binding and a hub object are written only if their status differs. The hub object is written first. The
//     condition of the binding can then report the result, and users see the status of the object first under load.
//   - A cached binding that is older than this process's last write is ignored.
//   - A link (the connection to a member) that is down for less than the grace time changes no row (grace.go).
//   - Every replica writes the rows of the clusters in its shard. Only the leader writes the rest of the status
//     (shares.go).
//
// The status of a hub object is written only if no other controller writes it (object.go). If the hub does not write
// it, the binding has the merged status and the reason.
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

// Templates returns hub objects from memory.
type Templates interface {
	// Get returns the hub object. The caller must not change it, because it is shared. Of its managed fields, it has
	// only those of the status subresource.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// Content returns a number that changes when any part of the hub object except its status changes. It is 0 if the hub
	// has no such object.
	Content(id hubv1.ObjectIdentity) uint64
}

// Decisions returns those parts of the last decision on a binding that are shown in the status of the binding.
type Decisions interface {
	// Decision returns the condition Scheduled, the rejected clusters, and the other placements that select the object.
	// known is false until this process has decided on the binding. Until then, the status keeps the earlier decision.
	Decision(binding types.NamespacedName) (scheduled metav1.Condition, decision *hubv1.DecisionStatus, otherPlacements []string, known bool)
}

// Options has the settings of a Reporter. The fields Client, HubConfig, Sources and Events are required; all other
// fields are optional.
type Options struct {
	// Client reads bindings, placements and clusters from the cache.
	Client client.Client
	// HubConfig connects the client that writes statuses.
	HubConfig *rest.Config
	Sources   Sources
	Shard     Shard
	// Withdrawn is called when the last copy of a deleted object is gone. The scheduler then deletes the binding, and the
	// rows are not written. It returns false if Withdrawn was called for this decision before. Default: the rows are
	// written.
	Withdrawn func(hubv1.BindingObject) (changed bool)
	Events    events.EventRecorder
	// Pacer gives the turns for writes to the hub. Default: New makes a Pacer.
	Pacer *pace.Pacer
	// HubRunsWorkloads reports whether the hub has nodes or a controller-manager. Default: it has neither.
	HubRunsWorkloads func() bool
	// Converged is called when every copy of a hub object has a change of the object. took is the time from the change
	// until then. Converged may be nil.
	Converged func(placement types.NamespacedName, took time.Duration)
	// Grace is how long the connection to a cluster may be down before the rows of the cluster change. Default 10 s.
	Grace time.Duration
	Clock clock.PassiveClock
	// Tracer makes the spans of written statuses. Default: no spans are made.
	Tracer *tracing.Tracer
}

// Sources are the inputs of a status, besides the objects that Options.Client reads. All fields except Conventions are
// required.
type Sources struct {
	Definitions Definitions
	Fleet       member.Fleet
	Links       member.Links
	Templates   Templates
	Decisions   Decisions
	// Conventions returns how to judge the health of a hub object from its status, if the hub is a member of itself.
	// Default: there are no conventions.
	Conventions func(context.Context, schema.GroupVersionKind) health.Conventions
}

// Shard tells which clusters this replica serves.
type Shard struct {
	// Holds reports whether this replica serves a cluster, and therefore writes the rows of the cluster. Default: this is
	// the only replica.
	Holds func(cluster string) bool
	// IsHub reports whether a cluster that another replica serves is the hub itself. Default: no such cluster is the hub.
	IsHub func(cluster string) bool
}

// Reporter keeps the status of every binding and of its hub object up to date.
type Reporter struct {
	opts   Options
	writer writer
	// refusals has the hub objects whose status the hub may not write.
	refusals pace.Refusals
	elected  <-chan struct{} // closed once this replica leads; nil until SetupWithManager has run

	mu      sync.Mutex
	ctx     context.Context                                   // nil until the controller starts
	queue   priorityqueue.PriorityQueue[types.NamespacedName] // nil until the controller starts
	entries map[types.NamespacedName]*entry
	// byCluster has the entries of the bindings that name a cluster, so that a change of a cluster does not look at all
	// bindings.
	byCluster map[string]map[types.NamespacedName]*entry
	away      map[string]bool      // clusters without a link, or whose link is down
	lost      map[string]time.Time // when the link of a cluster went down
	unready   map[string]unready   // state of MemberClusters that are not Ready
}

// New returns a Reporter that has no bindings yet.
func New(opts Options) (*Reporter, error) {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Shard.Holds == nil {
		opts.Shard.Holds = func(string) bool { return true }
	}
	if opts.Shard.IsHub == nil {
		opts.Shard.IsHub = func(string) bool { return false }
	}
	if opts.HubRunsWorkloads == nil {
		opts.HubRunsWorkloads = func() bool { return false }
	}
	if opts.Sources.Conventions == nil {
		opts.Sources.Conventions = func(context.Context, schema.GroupVersionKind) (none health.Conventions) { return none }
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

// SetupWithManager adds the controller to the manager. The controller runs in every replica.
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

// open stores the queue of the controller. It queues the bindings that had changes before the controller started.
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

// Record stores the outcome of one attempt to write or withdraw a copy. binding is the cached binding that this attempt
// has used.
func (r *Reporter) Record(binding hubv1.BindingObject, cluster string, o member.Outcome) {
	if !r.catchUp(binding) {
		return
	}
	key := client.ObjectKeyFromObject(binding)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(key)
	if e.overtook(binding, cluster) {
		return // ignore an old outcome: dispatch tries the newer decision next
	}
	repeats := e.results.reported == reached{binding: e.binding.generation, hub: o.HubContent}
	u, changed := e.record(cluster, o, r.away, r.opts.Shard.Holds)
	switch {
	case !changed:
	case u == failure:
		r.wake(key, e, u, pace.Failure)
	case o.Applied == metav1.ConditionUnknown || repeats:
		// An outcome with an unknown result, or a further outcome about content that is reported already, comes for many
		// objects at once. The cause is, for example, an unreachable member or an edited policy.
		r.wake(key, e, u, pace.Many)
	default:
		r.wake(key, e, u, pace.FirstResult)
	}
}

// catchUp is called before the outcome of a write to a member is stored. tried is the version of the binding for which
// the hub has written. If the Reporter has only seen an earlier version, catchUp reads the binding from the cache. The
// outcome is then not stored under an earlier decision. catchUp returns false if the binding was deleted.
func (r *Reporter) catchUp(tried hubv1.BindingObject) bool {
	key := client.ObjectKeyFromObject(tried)
	r.mu.Lock()
	e := r.entries[key]
	ctx, known := r.ctx, e != nil && e.binding.uid == tried.GetUID() && e.binding.generation >= tried.GetGeneration()
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
	if e := r.entry(key); r.adopt(key, e, b) {
		e.unshown.saw(r.opts.Clock.Now())
		r.wake(key, e, whenIdle, pace.FirstResult)
	}
	return true
}

// Wake queues a binding, because the watch of a cluster has shown a change of its copy.
func (r *Reporter) Wake(binding types.NamespacedName, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[binding]; e != nil {
		r.wake(binding, e, e.change(cluster, r.away, r.opts.Shard.Holds), pace.MergedStatus)
	} // an unknown binding is queued by its first event
}

// WakeDecided queues a binding whose decision has changed. The write of the status waits a little, because the first
// results of the new decision will follow soon. onlyWording is true if only the message of the condition Scheduled has
// changed. This happens to many bindings at once.
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

// WakeObject queues the binding of a changed hub object. It does nothing if this process has made the change.
func (r *Reporter) WakeObject(id hubv1.ObjectIdentity) {
	key := id.BindingKey()
	template, ok := r.opts.Sources.Templates.Get(id)
	content := r.opts.Sources.Templates.Content(id)
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

// entry returns what this process knows about a binding, and makes an empty entry if there is none. The caller of
// entry, wake, wakeAfter, queueWoken and enqueue holds r.mu.
func (r *Reporter) entry(key types.NamespacedName) *entry {
	e := r.entries[key]
	if e == nil {
		e = &entry{}
		r.entries[key] = e
	}
	return e
}

// adopt copies the content of the cached binding into its entry, and returns true if the decision has changed. The
// caller holds r.mu.
func (r *Reporter) adopt(key types.NamespacedName, e *entry, b hubv1.BindingObject) bool {
	before := e.binding.targets
	if !e.adopt(b) {
		return false
	}
	r.dropTargets(key, before)
	if r.byCluster == nil {
		r.byCluster = map[string]map[types.NamespacedName]*entry{}
	}
	for _, t := range e.binding.targets {
		if r.byCluster[t.Name] == nil {
			r.byCluster[t.Name] = map[types.NamespacedName]*entry{}
		}
		r.byCluster[t.Name][key] = e
	}
	return true
}

// dropTargets removes a binding with these targets from byCluster. The caller holds r.mu.
func (r *Reporter) dropTargets(key types.NamespacedName, targets []hubv1.BindingTarget) {
	for _, t := range targets {
		if delete(r.byCluster[t.Name], key); len(r.byCluster[t.Name]) == 0 {
			delete(r.byCluster, t.Name)
		}
	}
}

// wake records that a binding has a change to write. It opens the window, in which changes of the binding are
// collected, or moves the end of the window.
func (r *Reporter) wake(key types.NamespacedName, e *entry, u urgency, c pace.Class) {
	r.queueWoken(key, e, func(now time.Time) bool { return e.window.wake(now, u, c) })
}

// wakeAfter opens the window of a binding. Unlike for wake, the caller sets the duration of the window.
func (r *Reporter) wakeAfter(key types.NamespacedName, e *entry, after time.Duration, c pace.Class) {
	r.queueWoken(key, e, func(now time.Time) bool { return e.window.wakeAt(now, now.Add(after), c) })
}

func (r *Reporter) queueWoken(key types.NamespacedName, e *entry, wake func(now time.Time) bool) {
	// The binding may be deleted already. In this case the Reporter has no data about it in r.entries, and nothing is
	// queued.
	now := r.opts.Clock.Now()
	if r.entries[key] == e && wake(now) {
		r.enqueue(key, e.window.class, e.window.due.Sub(now))
	}
}

// enqueue queues a binding for a reconcile after the given time.
func (r *Reporter) enqueue(key types.NamespacedName, c pace.Class, after time.Duration) {
	if r.queue != nil {
		r.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(c.Priority()), After: max(0, after)}, key)
	}
}
