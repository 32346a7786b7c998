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

// observedEvery is the minimum time between two writes that change nothing but MemberCluster.status.lastObservedTime.
// It is half of hubv1.ObservedWithin, so that the value is never older than that while the cluster answers.
const observedEvery = hubv1.ObservedWithin / 2

// setLastObserved sets status.lastObservedTime, if the status is written anyway, or if a write of the time is due. It
// must be the last step, because it must know whether an earlier step has changed the status.
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

// observedDue returns when status.lastObservedTime may be written although nothing else has changed. If this replica
// has not written this time for the cluster yet, it uses the time in the status.
func (r *Reconciler) observedDue(c *hubv1.MemberCluster) time.Time {
	last := r.records.of(c.Name).observedWritten
	if said := c.Status.LastObservedTime; last.IsZero() && said != nil {
		last = said.Time
	}
	return last.Add(observedEvery)
}

// observedTime returns the time to write for a cluster that last answered at heard. It is nil if said, the time in the
// status, is not older. due is true if it may be written although nothing else has changed.
func observedTime(said *metav1.Time, heard, dueAt, now time.Time) (at *metav1.Time, due bool) {
	t := metav1.NewTime(heard).Rfc3339Copy()
	if said != nil && !said.Before(&t) {
		return nil, false
	}
	return &t, !now.Before(dueAt)
}
