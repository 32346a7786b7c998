package dispatch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/source"
)

// Reconcile brings one binding to this queue's cluster.
func (q *queue) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	q.begin(key)
	defer q.finish(key)
	cl, err := q.opts.Fleet.Get(q.cluster)
	if errors.Is(err, member.ErrNotConnected) {
		return reconcile.Result{}, nil // hub/report says so, and all keys come back with the link
	} else if err != nil {
		return reconcile.Result{}, err
	}
	binding := hubv1.NewBinding(key)
	if err := q.opts.Client.Get(ctx, key, binding, client.UnsafeDisableDeepCopy); err != nil {
		if client.IgnoreNotFound(err) == nil {
			q.end(cl, key)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading binding %s: %w", key, err)
	}
	target := binding.BindingSpec().Target(q.cluster)
	if target == nil {
		q.end(cl, key)
		return reconcile.Result{}, nil
	}
	run := &run{queue: q, key: key, binding: binding, target: target}
	run.cluster = &gated{Cluster: cl, run: run}
	if err := run.gather(ctx); err != nil {
		return reconcile.Result{}, err
	}
	step := run.apply
	if target.State == hubv1.TargetAbsent {
		step = run.withdraw
	}
	outcome, known := step(ctx)
	if known && !run.behind {
		q.opts.Recorder.Record(binding, q.cluster, outcome)
	}
	if run.held {
		return reconcile.Result{}, nil // it goes on when the cluster takes writes again
	}
	if outcome.Wrote {
		ctrl.LoggerFrom(ctx).V(1).Info("Wrote to member cluster", "reason", outcome.Reason, "digest", outcome.Digest)
	}
	return q.retry(key, outcome), nil
}

// end drops what is remembered of a binding that this cluster has no part in any more.
func (q *queue) end(cl member.Cluster, key types.NamespacedName) {
	if gvk := q.recall(key).gvk; gvk.Kind != "" {
		cl.Forget(gvk, key)
	}
	q.forget(key)
}

// run is one pass over one binding and one cluster.
type run struct {
	queue   *queue
	cluster member.Cluster
	key     types.NamespacedName
	binding hubv1.BindingObject // shared with the cache, as all that gather reads
	target  *hubv1.BindingTarget
	held    bool // the gate keeps the key
	behind  bool // the caches are behind what the cluster shows, so that the outcome says nothing
	// instead are policies that stand in for those of the hub; for Intent alone.
	instead []hubv1.OverridePolicyObject
	// rendering is what the clusters have in common, set by render.
	rendering *rendering
	// overridden is how rules made the manifest, set by render.
	overridden overridden
	// source is the state of the hub by which copies are judged, set by setSource.
	source source.State

	// Set by gather.
	object          hubv1.SelectableObject
	mcl             *hubv1.MemberCluster  // nil if there is none
	placement       hubv1.PlacementObject // nil if it is gone
	namespaceLabels map[string]string
}

// gated is a cluster that is written through the gate of its queue.
type gated struct {
	member.Cluster
	run *run
}

// Apply implements member.Cluster.
func (g *gated) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	return g.call(ctx, in.Manifest.GroupVersionKind().GroupKind(), in.Manifest.GetNamespace(),
		func(ctx context.Context) member.Outcome { return g.Cluster.Apply(ctx, in) })
}

// Withdraw implements member.Cluster. It needs no namespace that can hold objects.
func (g *gated) Withdraw(ctx context.Context, in member.WithdrawIntent) member.Outcome {
	return g.call(ctx, in.GVK.GroupKind(), "", func(ctx context.Context) member.Outcome { return g.Cluster.Withdraw(ctx, in) })
}

func (g *gated) call(ctx context.Context, kind schema.GroupKind, namespace string, f func(context.Context) member.Outcome) (o member.Outcome) {
	gate := g.run.queue.gate
	o, ok := gate.enter(g.run.key, kind, namespace)
	if !ok {
		g.run.held = true
		return o
	}
	o, g.run.held = gate.call(ctx, g.run.key, kind, namespace, f)
	return o
}

// outcome makes an outcome that no call to the member was needed for.
func outcome(applied metav1.ConditionStatus, reason, format string, args ...any) member.Outcome {
	return member.Outcome{Applied: applied, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
