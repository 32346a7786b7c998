package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Reconcile brings the copy of one binding on this cluster to its wanted state.
func (q *queue) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	q.filter.begin(key)
	defer q.wakeReaders(key)
	defer q.end(key)
	run := &run{queue: q, key: key}
	run.begin()
	defer run.keepChange()
	cl, err := q.opts.Fleet.Get(q.cluster)
	if errors.Is(err, member.ErrNotConnected) {
		return reconcile.Result{}, nil // hub/report writes the row, and all keys are queued again with the link
	} else if err != nil {
		return reconcile.Result{}, err
	}
	binding := hubv1.NewBinding(key)
	found, err := get(ctx, q.opts.Client, key, binding)
	if err != nil {
		return reconcile.Result{}, err
	}
	target := binding.BindingSpec().Target(q.cluster)
	if !found || target == nil {
		run.changed = time.Time{}
		q.release(cl, key)
		return reconcile.Result{}, nil
	}
	run.binding, run.target = binding, target
	run.cluster = &gated{Cluster: cl, run: run}
	if err := run.gather(ctx); err != nil {
		return reconcile.Result{}, err
	}
	outcome := run.act(ctx)
	if run.held {
		return reconcile.Result{}, nil // the gate will queue the key again
	}
	return q.copies.retryAfter(key, q.learn(key, hubv1.ObjectOf(binding).GroupKind(), outcome)), nil
}

// act applies or withdraws the copy, and reports the outcome.
func (r *run) act(ctx context.Context) member.Outcome {
	r.times.began = r.now()
	step := r.apply
	if r.target.State == hubv1.TargetAbsent {
		step = r.withdraw
	}
	outcome, known := step(ctx)
	if known && !r.behind {
		r.queue.opts.Recorder.Record(r.binding, r.queue.cluster, outcome)
		r.measure(outcome)
	}
	if outcome.Wrote {
		r.logWrite(ctx, outcome)
	}
	if known && !r.behind {
		r.trace(outcome)
	}
	return outcome
}

// release ends the watch of the copy, and drops all data that the queue has kept for the binding. It is called for a
// binding that no longer names this cluster.
func (q *queue) release(cl member.Cluster, key types.NamespacedName) {
	if gvk := q.copies.get(key).gvk; gvk.Kind != "" {
		cl.Forget(gvk, key)
	}
	q.forget(key)
}

// run is one pass over one binding and one cluster.
type run struct {
	queue   *queue
	cluster member.Cluster
	key     types.NamespacedName
	binding hubv1.BindingObject // shared with the cache, like all objects from gather
	target  *hubv1.BindingTarget
	held    bool      // whether the gate holds the key
	changed time.Time // when the hub saw the change that the run carries out; zero if there is none
	behind  bool      // whether the caches are older than the copy, so that the outcome is not recorded
	// instead are policies that replace the hub's policies of the same name. Only Intent sets them.
	instead []hubv1.OverridePolicyObject
	in      gathered
	out     manifestParts
	times   times
}

// manifestParts are the intermediate results of making the manifest.
type manifestParts struct {
	// rendering is the part of the manifest's computation that all clusters share. render sets it.
	rendering *rendering
	// prepared is the template of the manifest: that of rendering, without the defaults that this cluster does not get.
	// render sets it.
	prepared *overrides.Prepared
	// whole is the manifest with the fields that are left out because the hub's API server has filled them in. It is nil
	// if there are none. render sets it.
	whole *unstructured.Unstructured
	// overridden has the rules that changed the manifest. render sets it.
	overridden overridden
	// revised has the override rules of the revision that the binding names for the cluster. It is nil if the binding
	// names no revision, so that the newest rules apply. hold sets it.
	revised *decide.HeldRules
	// hubGVK is the group, version and kind that the hub uses when it reads the object. wantedState sets it.
	hubGVK schema.GroupVersionKind
	// readByPods are the ConfigMaps and Secrets that the pods of the manifest read. render sets them.
	readByPods []hubv1.ObjectIdentity
	// reads are the wanted copies of the objects in readByPods on this cluster. render sets them.
	reads []readCopy
	// source identifies the state of the hub. A copy from a later state was written before the hub was restored from a
	// backup. setSource sets it.
	source epoch.State
}

// gated is a member's client. Each call first passes the gate, which limits the concurrent calls to the member.
type gated struct {
	member.Cluster
	run *run
}

// Apply implements member.Cluster.
func (g *gated) Apply(ctx context.Context, in member.ApplyIntent) (o member.Outcome) {
	c := call{key: g.run.key, kind: in.Manifest.GroupVersionKind().GroupKind(), namespace: in.Manifest.GetNamespace()}
	o, g.run.held = g.run.queue.gate.call(ctx, c, func(ctx context.Context) member.Outcome {
		return g.run.timed(func() member.Outcome { return g.Cluster.Apply(ctx, in) })
	})
	return o
}

// Withdraw implements member.Cluster. It can succeed even if the namespace is missing.
func (g *gated) Withdraw(ctx context.Context, in member.WithdrawIntent) (o member.Outcome) {
	c := call{key: g.run.key, kind: in.GVK.GroupKind()}
	o, g.run.held = g.run.queue.gate.call(ctx, c, func(ctx context.Context) member.Outcome {
		return g.run.timed(func() member.Outcome { return g.Cluster.Withdraw(ctx, in) })
	})
	return o
}

// outcome makes an outcome from its parts, for a run that makes no call to the member.
func outcome(applied metav1.ConditionStatus, reason, format string, args ...any) member.Outcome {
	return member.Outcome{Applied: applied, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
