package membership

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// observedEvery is the minimum time between two writes that change only MemberCluster.status.lastObservedTime. The
// value is refreshed before it is older than hubv1.ObservedWithin, even with the time between two probes.
const observedEvery = hubv1.ObservedWithin / 2

// setLastObserved sets status.lastObservedTime if the status is written for another reason, or if a write of the time
// is due. It is the last step, because it must know whether an earlier step changed the status.
func (r *Reconciler) setLastObserved(_ context.Context, run *run) (ctrl.Result, error) {
	if run.released || run.state == nil || run.state.LastHeard.IsZero() {
		return ctrl.Result{}, nil
	}
	now, dueAt, status := time.Now(), r.observedDue(run.cluster), &run.cluster.Status
	at, due := observedTime(status.LastObservedTime, run.state.LastHeard, dueAt, now)
	if at != nil && (due || !equality.Semantic.DeepEqual(run.before.Status, *status)) {
		status.LastObservedTime = at
	}
	if run.state.Ready != metav1.ConditionTrue {
		return ctrl.Result{}, nil // the link wakes the cluster at its next answer
	}
	wait := observedEvery
	if !due {
		wait = dueAt.Sub(now)
	}
	return ctrl.Result{RequeueAfter: min(max(wait, time.Second), observedEvery) + rand.N(observedEvery/8)}, nil // spreads the writes of clusters that joined together
}

// observedDue returns when status.lastObservedTime may be written without another change. A replica that has just got
// the cluster reads the last write from the status.
func (r *Reconciler) observedDue(c *hubv1.MemberCluster) time.Time {
	last := r.records.of(c.Name).observedWritten
	if said := c.Status.LastObservedTime; last.IsZero() && said != nil {
		last = said.Time
	}
	return last.Add(observedEvery)
}

// observedTime returns the time to write for a cluster that last answered at `heard`. It returns nil if the recorded
// time `said` is as new. due reports whether the time may be written without another change.
func observedTime(said *metav1.Time, heard, dueAt, now time.Time) (at *metav1.Time, due bool) {
	t := metav1.NewTime(heard).Rfc3339Copy()
	if said != nil && !said.Before(&t) {
		return nil, false
	}
	return &t, !now.Before(dueAt)
}
