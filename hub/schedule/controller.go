// Package schedule keeps one binding for each hub object that is sent to members. It writes only the spec of the
// binding, which has the decision.
//
// One reconcile is a run (run.go). It gathers the inputs of the decision on one object (gather.go). It calls
// decide.Decide with the limits of the hub (limits.go). It carries out the plan in steps, one of which records the
// changes in one write (record.go).
//
//   - A withdrawal never depends on caches alone. A plan that withdraws an object from a cluster is made again from
//     uncached reads (confirm.go), and carried out only if both plans are equal. Until then the cluster keeps its copy;
//     the rest of the plan is carried out.
//   - An object counts as deleted only if the method Live of Templates says so. An object that cannot be read keeps its
//     decision.
//   - The limits on evictions, drains and waits are values in the input. The claims of a plan are the parts of these
//     limits that the plan uses. They are reserved before the write. If another object has used the limits first, the
//     plan is made again. status.drain shows the progress of drains (drainstatus.go).
//   - The guard (package guard, with removals.go) limits deletions. It judges plans that delete copies. The entries of
//     these copies stay Present until the guard releases the removals. If there are too many, the removals are held:
//     they wait for a user's confirmation. The owner of a removal is the placement, the MemberCluster or the bundle
//     that causes it. Other changes of the object do not wait.
//
// hub/dispatch and member/apply check a copy before they delete it. hub/report writes the status of a binding, and gets
// the scheduler's part of the status, such as the condition Scheduled, from this package.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Templates has the hub objects of the watched kinds in memory.
type Templates interface {
	// Want sets the kinds of hub objects that the hub watches.
	Want(kinds sets.Set[schema.GroupKind])
	// Retry tries again to watch the wanted kinds of these groups, if the hub's API server did not serve these kinds
	// before.
	Retry(ctx context.Context, groups sets.Set[string])
	// Kinds returns the kinds of a group, from discovery.
	Kinds(ctx context.Context, group string) ([]schema.GroupKind, error)
	// Get returns an object from memory. The object is shared, and the caller must not change it.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// List returns the objects of a kind from memory.
	List(gk schema.GroupKind) []hubv1.ObjectIdentity
	// StateOf returns the state of the watch that delivers an object. For an object of a bundle, it is the watch of the
	// Secrets of bundles. For all other objects, it is the watch of their kind. StateOf returns false if the kind is not
	// watched.
	StateOf(id hubv1.ObjectIdentity) (informer.State, bool)
	// StoredState returns the state of the watch of the Secrets of bundles.
	StoredState() informer.State
	// StoredKinds returns the kinds of the objects of bundles.
	StoredKinds() sets.Set[schema.GroupKind]
	// ListStored returns the objects of the bundles for which `which` returns true.
	ListStored(which func(hubv1.ObjectBundle) bool) []hubv1.ObjectIdentity
	// StoredOf returns the objects of a bundle.
	StoredOf(hubv1.BundleReference) []hubv1.ObjectIdentity
	// OnChange registers a function that is called with each changed object. OnState registers a function that is called
	// when the state of a watch changes.
	OnChange(func(hubv1.ObjectIdentity))
	OnState(func(schema.GroupKind))
	// Live reads an object from the API server. gone is true if the object was deleted. gone stays false if the kind
	// itself was deleted, or was created again after `since`. If the error has a method Undecided that returns true, a
	// retry will not succeed soon.
	Live(ctx context.Context, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error)
	// KindStays returns an error with a method Undecided, which returns true, if the kind was deleted or created again
	// after `since`. Any other error means that the kind could not be read.
	KindStays(ctx context.Context, gk schema.GroupKind, since time.Time) error
}

// Options has the settings of a Scheduler. The fields Client, APIReader, Templates, Recorder and Kinds are required;
// all other fields are optional.
type Options struct {
	// Client reads from the cache, and writes bindings. APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	Templates Templates
	Recorder  events.EventRecorder
	Kinds     Kinds
	// Clusters has the MemberClusters. Default: each decision lists them.
	Clusters *clusters.Store
	// Rollouts lets rollouts change the clusters in waves. Default: a change goes to all clusters at once.
	Rollouts Rollouts
	// Workers is the number of concurrent decisions. Default 4.
	Workers int
	Clock   clock.PassiveClock
	// Failover limits how many objects move from clusters at once.
	Failover Failover
	// Guard limits how many copies are deleted at once.
	Guard Guard
	// Pacer gives the turns for writes to the hub's API server. Default: the Scheduler makes its own Pacer.
	Pacer *pace.Pacer
	// Tracer makes the spans of decisions. Default: no spans are made.
	Tracer *tracing.Tracer
}

// Kinds tells what the hub knows about kinds of objects. All fields except HubRunsWorkloads are optional.
type Kinds struct {
	// HubRunsWorkloads reports whether the hub has nodes or a controller-manager.
	HubRunsWorkloads func() bool
	// ScalePath returns the path of the replicas field from the scale subresource of a kind. It returns an empty path if
	// the kind has no scale subresource. Messages suggest the path to users. Default: messages suggest no path.
	ScalePath func(ctx context.Context, kind schema.GroupKind) string
	// HubObject returns the versions at which clusters may get an object. Default: only the version of the template.
	HubObject func(context.Context, hubv1.ObjectReference, *unstructured.Unstructured) (hubv1.HubObject, error)
	// Rank orders the objects that one event queues. Objects of a kind with a higher rank are decided first, and reach a
	// cluster first. A kind that other kinds need should have a higher rank. Ranks are between -50 and 50. Default: all
	// kinds have the same rank.
	Rank func(schema.GroupKind) int
}

// Rollouts has the settings of rollouts, which need the contents of revisions.
type Rollouts struct {
	// Revisions stores the contents of revisions (earlier templates and override rules). If it is nil, the other fields
	// are not used.
	Revisions Revisions
	// Sets stores the lists of the objects of bundles, and Namespace is the namespace of the SetRollouts of bundles. If
	// Sets is nil, each object of a bundle has a rollout of its own.
	Sets      Sets
	Namespace string
	// SetsBegin reports whether the hub may begin to decide on further bundles as a whole. Default: it may.
	SetsBegin func() bool
	// Key signs the digests of revisions. DeniedMetadataPrefixes are the prefixes of the labels and annotations that are
	// never copied to members.
	Key                    canonical.Key
	DeniedMetadataPrefixes []string
}

// Scheduler decides which clusters get each object. At most one decision on an object runs at a time.
type Scheduler struct {
	opts    Options
	wants   *wants
	lead    lead
	inputs  inputs
	shared  shared
	results results

	clusters clusterChanges
}

// inputs are the inputs of decisions that the Scheduler keeps in memory.
type inputs struct {
	liveFacts  *liveFacts
	gone       gone
	references references
	counts     copyCounts
	capacities capacities
	memo       decide.Memo
}

// shared has the limits that all decisions share, because one decision may forbid another.
type shared struct {
	limits   limits
	removals removals
	rollouts rollouts
	sets     bundleSets
}

// results has the last decisions for hub/report, hub/report/policies and traces.
type results struct {
	decisions decisions
	placed    placed
	onRemoval func(kind string, key types.NamespacedName)
	changeLog changeLog
}

// lead is the state that only the leader uses.
type lead struct {
	mu    sync.Mutex
	ctx   context.Context
	queue queue // nil while another replica leads
}

// New returns a Scheduler. It does nothing before SetupWithManager.
func New(o Options) *Scheduler {
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Clusters == nil {
		o.Clusters = clusters.New(o.Client)
	}
	if o.Pacer == nil {
		o.Pacer = pace.New(o.Clock)
	}
	s := &Scheduler{opts: o, inputs: inputs{liveFacts: newLiveFacts(o.APIReader, o.Clock)}}
	s.inputs.gone.objects.clock = o.Clock
	s.opts.Failover = o.Failover.WithDefaults()
	s.shared.limits.opts = s.opts.Failover
	s.shared.limits.drains.wake, s.shared.limits.placed = s.wakeObject, s.inputs.counts.placed
	s.shared.removals.clock, s.shared.removals.pending.clock = o.Clock, o.Clock
	s.shared.removals.opts = o.Guard.WithDefaults()
	s.shared.removals.recent.Window = s.shared.removals.opts.Window
	s.wants = newWants(o.Client, o.Templates, s.wakeObjects)
	return s
}

// SetupWithManager adds two things to the manager: the controller, which runs only on the leader, and the loop that
// updates the wanted kinds, which runs on every replica.
func (s *Scheduler) SetupWithManager(mgr ctrl.Manager) error {
	s.wants.cache = mgr.GetCache()
	if err := mgr.Add(s.wants); err != nil {
		return fmt.Errorf("adding the upkeep of wanted kinds: %w", err)
	}
	if err := mgr.Add(keeper{s}); err != nil {
		return fmt.Errorf("adding the keeper of removals and drains: %w", err)
	}
	c, err := controller.NewTyped("schedule", mgr, controller.TypedOptions[hubv1.ObjectIdentity]{
		Reconciler:              s,
		MaxConcurrentReconciles: s.opts.Workers,
		NeedLeaderElection:      ptr.To(true),
		UsePriorityQueue:        ptr.To(true),
		RateLimiter:             pace.Retries[hubv1.ObjectIdentity](),
	})
	if err != nil {
		return fmt.Errorf("making the schedule controller: %w", err)
	}
	for _, src := range s.sources() {
		if err := c.Watch(src); err != nil {
			return fmt.Errorf("watching for the schedule controller: %w", err)
		}
	}
	// The function wants.objectChanged is registered before the function that queues the object. If the kind of the object
	// is new, clusters are then asked early whether they serve the kind.
	s.opts.Templates.OnChange(s.wants.objectChanged)
	s.opts.Templates.OnChange(func(id key) {
		if _, found := s.opts.Templates.Get(id); !found {
			s.inputs.gone.objects.saw(id)
		}
		s.noteChange(id)
		s.wakeObject(id)
	})
	s.opts.Templates.OnState(s.WakeKind)
	return nil
}

// Refused reports whether controllers on the hub itself would act on objects of a kind, for example start the pods of a
// Deployment. Only placements with hubExecution: Allowed may select such objects.
func (s *Scheduler) Refused(gk schema.GroupKind) bool {
	return placement.HubWouldRun(gk, s.opts.Kinds.HubRunsWorkloads())
}

// Reconcile decides on one object, and writes the decision to its binding.
func (s *Scheduler) Reconcile(ctx context.Context, id hubv1.ObjectIdentity) (ctrl.Result, error) {
	if id == heartbeat {
		heartbeats.Inc()
		return ctrl.Result{}, nil
	}
	s.shared.removals.pending.begin(id)
	decided := id.Group == hubv1.GroupVersion.Group
	defer func() { s.shared.removals.pending.end(id, decided) }()
	if of, isSet := bundleOfKey(id); isSet {
		return s.stepSet(ctx, of)
	}
	if decided {
		return ctrl.Result{}, nil
	}
	r := &run{s: s, began: s.opts.Clock.Now()}
	s.results.placed.begin(id)
	var err error
	r.in, err = s.gather(ctx, id)
	if errors.Is(err, errNotListed) {
		return ctrl.Result{}, nil // nothing to do yet: the first list of the kind queues all its bindings
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.in, r.out = s.decide(ctx, r.in)
	r.out = s.withMissing(id, r.out)
	s.chose(r.in, r.out)
	err = r.carryOut(ctx, steps...)
	s.shared.limits.decided(id, r.out.Claims, err == nil)
	decided = err == nil && !r.in.Object.Unconfirmed
	s.shared.removals.decided(id, r.out.Claims.Removals, decided && (r.in.Object.State == decide.Exists || r.in.Object.State == decide.Deleted))
	if err != nil {
		return stopped(err)
	}
	s.results.placed.end(id, r.out, r.in.Object.State == decide.Exists)
	return ctrl.Result{RequeueAfter: r.out.Again}, nil
}

// decide makes the plan for an object. It then reserves the evictions and drains of the plan, and records the progress
// of the object's rollout. If another object has meanwhile changed a limit or a rollout on which the plan depends,
// decide makes a new plan. The returned input belongs to the returned plan.
func (s *Scheduler) decide(ctx context.Context, in decide.Input) (decide.Input, decide.Plan) {
	for {
		version := s.shared.rollouts.current()
		in.Limits, in.Staging = s.shared.limits.of(in), s.staging(ctx, in)
		confirmed, p := s.confirm(ctx, in, decide.Decide(in))
		if s.claimRollout(in.Object.ID, p, version) && s.shared.limits.claim(confirmed, p.Claims) {
			return confirmed, p
		}
	}
}

// Wanted returns the kinds that placements select, the kinds of objects of bundles, and the kinds of objects with a
// binding. It returns nil until all placements and bindings have been read.
func (s *Scheduler) Wanted() []schema.GroupKind {
	if wanted := s.wants.current(); wanted != nil {
		return wanted.UnsortedList()
	}
	return nil
}

// OnWanted registers a function. It is called when the wanted kinds have been collected for the first time, and when
// kinds are added. Call OnWanted before the manager starts.
func (s *Scheduler) OnWanted(f func(kinds []schema.GroupKind)) { s.wants.onMore = f }

// OnDecision registers a function that is called when the decision on a binding has changed. asBefore is true if the
// condition Scheduled has kept its status, reason and generation. Call OnDecision before the manager starts.
func (s *Scheduler) OnDecision(f func(binding types.NamespacedName, asBefore bool)) {
	s.results.decisions.onChange = f
}
