package report

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/changes"
)

// BindingChanged queues a binding if its decision or its settings have changed, or if another replica has written its
// status. For a deleted binding, it drops the data in memory.
func (r *Reporter) BindingChanged(_ context.Context, c changes.Binding) {
	switch {
	case c.After == nil:
		r.bindingGone(c.Before)
	case c.Before == nil && c.Initial:
		r.bindingChanged(c.After, pace.Many)
	default:
		r.bindingChanged(c.After, pace.FirstResult)
	}
	if c.Parts&changes.Settings != 0 {
		r.settingsChanged(c.After)
	}
	if c.Parts&changes.Any != 0 {
		r.othersWrote(c.Before, c.After)
	}
}

// ClusterChanged is called if the condition Ready of a cluster has changed, or if the cluster was deleted.
func (r *Reporter) ClusterChanged(_ context.Context, c changes.Cluster) {
	if c.After == nil {
		r.forgetReadiness(c.Before.Name)
		r.WakeCluster(c.Before.Name)
		return
	}
	r.noteReadiness(c.After)
	r.unlinkedChanged(c.After.Name)
}

// bindingChanged queues a binding with a new decision.
func (r *Reporter) bindingChanged(b hubv1.BindingObject, class pace.Class) {
	key := client.ObjectKeyFromObject(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(key)
	u, wake := whenIdle, r.adopt(key, e, b)
	if wake && class != pace.Many { // events of the first list are left out
		e.unshown.saw(r.opts.Clock.Now())
	}
	if e.last.behind {
		e.last.behind, u, wake = false, lastResult, true
	}
	if p, complete := e.complete("", r.away, r.opts.Shard.Holds); wake && complete && b.GetDeletionTimestamp() == nil {
		// No cluster will report a result for this decision. The decision may have no target, all clusters may be
		// unreachable, or only the phase of a rollout has changed. A new phase is written together with the results of the
		// next batch.
		e.results.reported = p
		if b.BindingSpec().Rollout != nil {
			u = max(u, result)
		} else {
			u = max(u, lastResult)
		}
	}
	if wake {
		r.wake(key, e, u, class)
	}
}

// settingsChanged queues a binding, because its placement now has other rules to judge or merge statuses.
func (r *Reporter) settingsChanged(b hubv1.BindingObject) {
	key := client.ObjectKeyFromObject(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake(key, r.entry(key), whenIdle, pace.Many)
}

// bindingGone drops what this process knows about a deleted binding. If a new binding of the same name exists, the data
// belongs to the new binding and stays.
func (r *Reporter) bindingGone(b hubv1.BindingObject) {
	key := client.ObjectKeyFromObject(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil || e.binding.uid != b.GetUID() {
		return
	}
	recount(e.states, nil)
	delete(r.entries, key)
	r.dropTargets(key, e.binding.targets)
	r.tryAgain(r.refusals.Settled(key, false))
}

// unlinkedChanged queues the bindings of a cluster to which the hub has no connection (link), because their rows show
// the condition Ready of the MemberCluster. It does nothing for a cluster that has a link, even if the link is down.
// For such a cluster, package hub calls WakeCluster when the link becomes ready, goes down, or is down for another
// reason.
func (r *Reporter) unlinkedChanged(cluster string) {
	if _, linked := r.opts.Sources.Links.State(cluster); !linked {
		r.WakeCluster(cluster)
	}
}

// PlacementChanged queues the bindings of a placement whose spec changed. The placement determines whether the merged
// status is written to the hub object.
func (r *Reporter) PlacementChanged(_ context.Context, c changes.Placement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, e := range r.entries {
		if e.binding.placement == c.After.GetUID() {
			r.wake(key, e, whenIdle, pace.Many)
		}
	}
}
