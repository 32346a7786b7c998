// Package dispatch carries out each binding's decision on the members. It renders the manifest, applies or withdraws
// the copy through package member, and reports the outcome. It makes no decision and writes nothing to the hub.
//
// Every member has its own queue and its own workers, from the call of Engage until the connection to the member ends.
// A slow, hung or throttling member therefore delays only its own rows. A key of the queue is the name of a binding.
// Keys carry no other data, because each run reads all its inputs again. A run is one pass of a worker over one binding
// and one cluster. A record is the last known state of a copy. An epoch is a period in which the hub writes to members
// (package epochs).
//
// Keys that are due together are processed in the order of their kinds: Namespaces, CustomResourceDefinitions, RBAC,
// ConfigMaps and Secrets, then all others. Withdrawals are processed in the opposite order. A key that has changed is
// processed before keys that are only compared again, for example after a restart.
//
// Each mechanism has its own file:
//   - order: priorities of keys, and ranks of kinds;
//   - gate: the number of keys that workers have at a time, and the keys that must wait;
//   - limit: the number of calls to a member at a time. It depends on the latency and failures of the member. The limit
//     is closed (zero) while all calls fail;
//   - hold: keys that wait because the limit is closed, or because a namespace cannot hold objects. One key at a time
//     is tried;
//   - retry: the time of a key's next try;
//   - wake: events of copies; an event that only repeats the hub's own write wakes no key;
//   - fights: fields of copies that another controller keeps changing back after the hub has corrected them;
//   - copystate: all data about a copy that a queue keeps between two runs;
//   - altered: copies whose values the cluster's admission changes, and the time of their next write.
//
// An unreachable member has no queue, and hub/report writes its rows. When the member is reachable again, all bindings
// that name it are queued.
package dispatch

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Templates returns the hub's own objects from memory.
type Templates interface {
	// Get returns the hub object. The object is shared, and the caller must not change it.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// Content returns a number that changes when any part of the hub object except its status changes. It is 0 if the hub
	// has no such object.
	Content(id hubv1.ObjectIdentity) uint64
	// StoredOf returns the objects of a bundle.
	StoredOf(hubv1.BundleReference) []hubv1.ObjectIdentity
	// Live reads a hub object from the API server, not from the cache. gone is true if the object was deleted. gone stays
	// false if the kind itself was deleted, or was created again after `since`.
	Live(ctx context.Context, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error)
}

// Recorder receives the outcome of each run.
type Recorder interface {
	// Record stores the outcome of a run. binding is the state of the binding that the run has read. It is shared with the
	// cache, and Record must not change it.
	Record(binding hubv1.BindingObject, cluster string, o member.Outcome)
}

// Epochs reads the hub's list of epochs: periods in which the hub writes to members (package epoch). The hub marks
// each copy with its current epoch. If the list lacks the epoch of a copy (a foreign epoch), the hub wrote the copy and
// was later restored from an older backup.
type Epochs interface {
	// Current returns the cached list of the hub's epochs.
	Current() epoch.Epochs
	// Confirm returns the hub's epochs by an uncached read, because the cache may lack the given epoch. If an earlier
	// uncached read did not find this epoch, Confirm may return the cached epochs.
	Confirm(ctx context.Context, e epoch.Epoch) (epoch.Epochs, error)
	// Use returns the hub's list of epochs. The caller marks the copy that it writes with the newest epoch, so that a hub
	// that is restored from a backup recognises later copies. Use adds an epoch to the list first if this hub process has
	// written to no member since its start.
	Use(ctx context.Context) epoch.Epochs
}

// Revisions reads stored revisions: earlier contents of hub objects and of override rules, which clusters keep during a
// rollout. Callers must not change the results, because they are shared. An error other than decide.ErrRevisionMissing
// may be temporary.
type Revisions interface {
	Template(ctx context.Context, digest string) (*unstructured.Unstructured, error)
	Rules(ctx context.Context, digest string) (*decide.HeldRules, error)
}

// Options has the settings of a Dispatcher. The fields HubObject, Revisions, Sets, DeniedMetadataPrefixes, Key,
// Misfits, Schema, Epochs, Workers, Clock and Tracer are optional; all other fields are required.
type Options struct {
	// Client reads bindings, policies, clusters and namespaces from the cache.
	Client client.Client
	// APIReader reads a binding uncached before its object is withdrawn.
	APIReader client.Reader
	Fleet     member.Fleet
	Templates Templates
	Recorder  Recorder
	// HubObject returns the versions at which clusters may get an object. template is nil if the object is not in memory.
	// Default: only the version of the template.
	HubObject func(context.Context, hubv1.ObjectReference, *unstructured.Unstructured) (hubv1.HubObject, error)
	// Revisions reads the revisions that the bindings name for single clusters. Default: no revision is stored.
	Revisions Revisions
	// Sets reads the lists of objects in the revisions of bundles. Default: each object of a bundle follows its own
	// binding.
	Sets Sets
	// Namespace is the hub's namespace, which has the SetRollouts.
	Namespace string
	// DeniedMetadataPrefixes are prefixes of labels and annotations that are never copied to members, in addition to the
	// built-in prefixes.
	DeniedMetadataPrefixes []string
	// Key signs the digests of Secrets.
	Key canonical.Key
	// Misfits returns the values in a manifest that violate the schema of its kind on the hub. Default: it returns no
	// values.
	Misfits func(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit
	// Schema returns the hub's schema of a kind, whose defaults are the values that the hub's API server fills in.
	// Default: the hub publishes no schema.
	Schema func(context.Context, schema.GroupVersionKind) *openapi.Schema
	// Epochs reads the hub's epochs. A copy records the epoch (the period) in which the hub wrote it. After a restore of
	// the hub, this shows copies that are newer than the hub. Default: copies are written without an epoch, and their
	// epochs are not checked.
	Epochs Epochs
	// Workers is the number of workers for each member. Default 8.
	Workers int
	Clock   clock.PassiveClock
	// Tracer makes the spans of changes on members. Default: no spans are made.
	Tracer *tracing.Tracer
}

// Dispatcher keeps one queue for each member for which Engage was called.
type Dispatcher struct {
	opts       Options
	fresh      *freshBindings
	renderings *renderings
	// wakes has an element for each running wakeWhere. After a restart, hundreds of links come up at once: lists of
	// bindings for all of them at the same time would need much memory, and would end no sooner.
	wakes chan struct{}

	mu     sync.RWMutex
	queues map[string]*queue
}

// New returns a Dispatcher. It has no members before Engage is called.
func New(opts Options) *Dispatcher {
	if opts.Workers == 0 {
		opts.Workers = 8
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.HubObject == nil {
		opts.HubObject = atHubVersion
	}
	if opts.Misfits == nil {
		opts.Misfits = func(context.Context, *unstructured.Unstructured) []member.Misfit { return nil }
	}
	if opts.Schema == nil {
		opts.Schema = func(context.Context, schema.GroupVersionKind) *openapi.Schema { return nil }
	}
	if opts.Epochs == nil {
		opts.Epochs = noEpochs{}
	}
	return &Dispatcher{
		opts: opts, fresh: &freshBindings{reader: opts.APIReader, clock: opts.Clock},
		renderings: &renderings{denied: opts.DeniedMetadataPrefixes, key: opts.Key}, queues: map[string]*queue{},
		wakes: make(chan struct{}, 2*runtime.GOMAXPROCS(0)),
	}
}

// atHubVersion is the default of Options.HubObject. Clusters then get the object only at the API version of the
// template.
func atHubVersion(_ context.Context, ref hubv1.ObjectReference, template *unstructured.Unstructured) (hubv1.HubObject, error) {
	return hubv1.HubObjectOf(ref, template), nil
}

// Engage starts the queue of a member, and queues all bindings that name the member. It does not wait until the queue
// has started. The queue ends with ctx. If the member still has an earlier queue, the new queue starts when the earlier
// one has ended.
func (d *Dispatcher) Engage(ctx context.Context, cluster string) error {
	q, err := newQueue(cluster, d.opts, d.fresh, d.renderings)
	if err != nil {
		return fmt.Errorf("making the dispatch queue of cluster %q: %w", cluster, err)
	}
	d.mu.Lock()
	before := d.queues[cluster]
	d.queues[cluster] = q
	d.mu.Unlock()

	go func() {
		q.run(ctx, before)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.queues[cluster] == q {
			delete(d.queues, cluster)
		}
	}()
	go d.WakeCluster(ctx, cluster)
	return nil
}

// Resume queues all bindings that name a member whose connection is Ready again.
func (d *Dispatcher) Resume(ctx context.Context, cluster string) {
	if q := d.queue(cluster); q != nil {
		q.gate.resume()
	}
	d.WakeCluster(ctx, cluster)
}

// WakeCluster queues, at low priority, every binding that names the cluster. It also queues every binding for which
// this process has kept the state of a copy on the cluster.
func (d *Dispatcher) WakeCluster(ctx context.Context, cluster string) {
	d.wakeWhere(ctx, lowPriority, func(hubv1.BindingObject) bool { return true }, cluster)
	if q := d.queue(cluster); q != nil {
		q.addKnown(lowPriority - topClass)
	}
}

// WakeKind queues the bindings of one kind at low priority. Callers name a cluster if the cluster starts or stops
// serving the kind, or if its first list of the copies has ended. Then the bindings are queued for this cluster only.
// Callers name no cluster if the hub's first list of the kind has ended. Then the bindings are queued for all their
// clusters.
func (d *Dispatcher) WakeKind(ctx context.Context, gk schema.GroupKind, cluster ...string) {
	d.wakeWhere(ctx, lowPriority, func(b hubv1.BindingObject) bool {
		return hubv1.ObjectOf(b).GroupKind() == gk
	}, cluster...)
}

// WakeObject queues the binding of a hub object for all clusters that it names.
func (d *Dispatcher) WakeObject(ctx context.Context, id hubv1.ObjectIdentity) {
	b := hubv1.NewBinding(id.BindingKey())
	if err := d.opts.Client.Get(ctx, id.BindingKey(), b, client.UnsafeDisableDeepCopy); err != nil {
		return // there is no binding yet: its event queues the key
	}
	d.wakeBinding(b, normalPriority)
}

// WakeOlder queues the bindings that have a row with the reason HubIsOlder: the hub was restored from a backup, and the
// copy is newer. It is called when a user has accepted that the hub overwrites such copies.
func (d *Dispatcher) WakeOlder(ctx context.Context) {
	d.wakeWhere(ctx, normalPriority, func(b hubv1.BindingObject) bool {
		return slices.ContainsFunc(b.BindingStatus().Clusters, func(row hubv1.ClusterRow) bool { return row.Reason == hubv1.ReasonHubIsOlder })
	})
}

// Observed queues one binding for one cluster, because its copy has changed there. If the event shows the result of the
// hub's own write, Observed ignores it.
func (d *Dispatcher) Observed(cluster string, binding types.NamespacedName, seen member.Observation) {
	if q := d.queue(cluster); q != nil {
		q.observed(binding, seen)
	}
}

// queue returns the queue of a member. It is nil if Engage was not called for the member, or if its queue has ended.
func (d *Dispatcher) queue(cluster string) *queue {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.queues[cluster]
}

func (d *Dispatcher) wakeBinding(b hubv1.BindingObject, priority int) {
	d.wakeTargets(b, priority, func(*hubv1.BindingTarget) bool { return true })
}

func (d *Dispatcher) wakeTargets(b hubv1.BindingObject, priority int, which func(*hubv1.BindingTarget) bool) {
	key, targets := client.ObjectKeyFromObject(b), b.BindingSpec().Clusters
	for i := range targets {
		if q := d.queue(targets[i].Name); q != nil && which(&targets[i]) {
			q.addChanged(priority, due{key, priority + classFor(b, &targets[i])})
		}
	}
}

// wakeWhere queues the bindings for which match returns true. It queues them for the clusters in only, or for all their
// clusters if only is empty.
func (d *Dispatcher) wakeWhere(ctx context.Context, priority int, match func(hubv1.BindingObject) bool, only ...string) {
	d.wakes <- struct{}{}
	defer func() { <-d.wakes }()
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if len(only) == 1 {
		options = append(options, client.MatchingFields{scopes.TargetIndex: only[0]})
	}
	bindings, err := scopes.Bindings(ctx, d.opts.Client, "", options...)
	if err != nil {
		return // the cache is stopping, and so is this process
	}
	keys := map[string][]due{}
	for _, b := range bindings {
		if !match(b) {
			continue
		}
		targets := b.BindingSpec().Clusters
		for i, t := range targets {
			if len(only) == 0 || slices.Contains(only, t.Name) {
				keys[t.Name] = append(keys[t.Name], due{client.ObjectKeyFromObject(b), priority + classFor(b, &targets[i])})
			}
		}
	}
	for cluster, keys := range keys {
		if q := d.queue(cluster); q != nil {
			q.addChanged(priority, keys...)
		}
	}
}
