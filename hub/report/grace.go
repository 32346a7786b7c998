package report

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// A link is the hub's connection to a member. It may be down for a short time, because an API server restarts or a
// connection breaks. Rows change only after the link has been down for the grace time, so that statuses do not flap. If
// the link is up again before that, no row is written. If the reason for the failure changes later, the new reason also
// waits for the grace time. If the hub has no link at all, because a user has deleted the MemberCluster, the rows
// change at once. The MemberCluster becomes not Ready at once in all cases.
//
// Scheduling does not wait for the grace time: it places no new objects on a cluster that is not Ready. If only the
// message of a decision changes, the message is written after the grace time.

// grace is how long the connection to a cluster (its link) may be down before the rows of the cluster change. It is the
// default of Options.Grace.
const grace = 10 * time.Second

// WakeCluster queues the bindings that name a cluster, because the state of the hub's connection to the cluster (its
// link) has changed. If the link is down, WakeCluster queues the bindings only after the grace time.
func (r *Reporter) WakeCluster(cluster string) {
	state, linked := r.opts.Sources.Links.State(cluster)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case linked && state.Ready != metav1.ConditionFalse:
		delete(r.away, cluster)
		delete(r.lost, cluster)
	case linked:
		r.lose(cluster)
		time.AfterFunc(r.opts.Grace, func() { r.graceEnded(cluster) })
		return
	default:
		r.away[cluster] = true
		delete(r.lost, cluster)
		r.forgetOutcomes(cluster)
	}
	r.wakeTargets(cluster)
}

// WakeKind queues the bindings of a kind that name a cluster, because the state of the cluster's watch of this kind has
// changed. If the watch fails, WakeKind queues the bindings again after the grace time, during which the rows ignore a
// failure.
func (r *Reporter) WakeKind(cluster string, kind schema.GroupKind, fails bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, e := range r.byCluster[cluster] {
		if e.binding.kind == kind {
			r.wakeAfter(key, e, 0, pace.Many)
		}
	}
	if fails {
		r.wakeKindLater(cluster, kind, r.opts.Clock.Now())
	}
}

// wakeKindLater queues the bindings of a kind after the grace time, during which the rows ignore a failed watch. If the
// connection to the cluster has delivered no event since the watch failed, wakeKindLater waits until an event has
// arrived.
func (r *Reporter) wakeKindLater(cluster string, kind schema.GroupKind, failed time.Time) {
	time.AfterFunc(r.opts.Grace, func() {
		if state, linked := r.opts.Sources.Links.State(cluster); linked && state.Ready == metav1.ConditionTrue && state.LastObserved.Before(failed) {
			r.wakeKindLater(cluster, kind, failed)
			return
		}
		r.WakeKind(cluster, kind, false)
	})
}

// onlyTheKindFails reports whether the watch of one kind has failed for longer than the grace time, although other
// watches of the cluster deliver events. If no watch has delivered an event since the failure, the whole cluster may be
// unreachable. The result is then false, because the state of the connection will show the outage.
func (r *run) onlyTheKindFails(cluster string, failure *member.WatchFailure) bool {
	if failure == nil || r.now.Sub(failure.Since) < r.reporter.opts.Grace {
		return false
	}
	state, linked := r.reporter.opts.Sources.Links.State(cluster)
	return linked && !state.LastObserved.Before(failure.Since)
}

// lose records that the connection to a cluster is down now, and drops the cluster's outcomes. The caller holds r.mu.
func (r *Reporter) lose(cluster string) {
	if _, known := r.lost[cluster]; !known {
		r.away[cluster], r.lost[cluster] = true, r.opts.Clock.Now()
	}
	r.forgetOutcomes(cluster)
}

// forgetOutcomes drops the outcomes that an unreachable cluster has reported. The caller holds r.mu.
func (r *Reporter) forgetOutcomes(cluster string) {
	for _, e := range r.byCluster[cluster] {
		delete(e.results.outcomes, cluster)
	}
}

// graceEnded queues the bindings of a cluster if the connection to the cluster has been down for the whole grace time.
// Until then, the rows of the cluster do not change.
func (r *Reporter) graceEnded(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since, lost := r.lost[cluster]; lost && r.opts.Clock.Since(since) >= r.opts.Grace {
		r.wakeTargets(cluster)
	}
}

// inGrace reports whether the connection to the cluster has been down for less than the grace time. During this time,
// the rows of the cluster do not change.
func (r *Reporter) inGrace(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, known := r.lost[cluster]
	return !known || r.opts.Clock.Since(since) < r.opts.Grace // in grace: the link will soon report its state
}

// unready is an interval in which a MemberCluster was not Ready.
type unready struct {
	since time.Time
	ended bool
}

// noteReadiness records since when a MemberCluster is not Ready, even if the cluster is in the shard of another
// replica. If the cluster becomes Ready again within the grace time, the record stays until the end of the grace time.
// Scheduling may need this time to decide again.
func (r *Reporter) noteReadiness(c *hubv1.MemberCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is, known := r.unready[c.Name]
	over := r.opts.Clock.Since(is.since) >= r.opts.Grace
	ready := !meta.IsStatusConditionFalse(c.Status.Conditions, hubv1.ConditionReady)
	switch {
	case ready && over:
		delete(r.unready, c.Name)
	case !ready && (!known || is.ended && over):
		r.unready[c.Name] = unready{since: r.opts.Clock.Now()}
	case known:
		r.unready[c.Name] = unready{is.since, ready}
	}
}

// forgetReadiness forgets since when a deleted cluster was not Ready.
func (r *Reporter) forgetReadiness(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unready, cluster)
}

// graceLeft returns how long the grace time (during which rows ignore an outage) still lasts for clusters that are not
// Ready, or were not Ready a short time ago.
func (r *Reporter) graceLeft() (left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for cluster, is := range r.unready {
		if lost, known := r.lost[cluster]; known {
			is.since = lost // the MemberCluster's condition will soon change, too
		}
		left = max(left, r.opts.Grace-r.opts.Clock.Since(is.since))
	}
	return left
}

// waitsForGrace reports whether the new message of a decision must wait. The message waits if nothing else has changed,
// and a cluster has become unreachable within the grace time. Further clusters that become unreachable do not prolong
// the wait.
func (r *run) waitsForGrace(scheduled metav1.Condition, decision *hubv1.DecisionStatus) bool {
	left := r.reporter.graceLeft()
	if left <= 0 {
		return false
	}
	before := r.binding.BindingStatus()
	c := meta.FindStatusCondition(before.Conditions, hubv1.ConditionScheduled)
	if c == nil || c.Status != scheduled.Status || c.Reason != scheduled.Reason || before.ObservedGeneration != r.binding.GetGeneration() ||
		c.Message == scheduled.Message && equality.Semantic.DeepEqual(before.Decision, decision) {
		return false
	}
	if r.out.waitingSince.IsZero() {
		r.out.waitingSince = r.now.Time
	}
	r.out.again = max(0, min(left, r.reporter.opts.Grace-r.now.Sub(r.out.waitingSince)))
	return r.out.again > 0
}

// waitForGrace queues the binding for the time at which its delayed message may be written. It queues nothing if no
// message is delayed. The caller holds r.reporter.mu.
func (r *run) waitForGrace(e *entry) {
	if r.out.again == 0 {
		e.waitingSince = time.Time{}
		return
	}
	e.waitingSince = r.out.waitingSince
	r.reporter.wakeAfter(r.key, e, r.out.again, pace.Many)
}

// wakeTargets queues the bindings that name a cluster. The caller holds r.mu.
func (r *Reporter) wakeTargets(cluster string) {
	for key, e := range r.byCluster[cluster] {
		r.wakeAfter(key, e, 0, pace.Many)
	}
}
