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

// observedEvery is the minimum time between two status writes that change nothing but lastObservedTime. It is half of
// hubv1.ObservedWithin. While the cluster answers, the written time is therefore never older than hubv1.ObservedWithin.
const observedEvery = hubv1.ObservedWithin / 2

// setLastObserved sets status.lastObservedTime if another field of the status has changed, or if observedEvery has
// passed since the last write. It must be the last step of a reconcile, because it must know whether an earlier step
// has changed the status.
func (r *Reconciler) setLastObserved(_ context.Context, run *run) (ctrl.Result, error) {
	if run.released || run.state == nil || run.state.LastObserved.IsZero() {
		return ctrl.Result{}, nil
	}
	now, dueAt, status := time.Now(), r.observedDue(run.cluster), &run.cluster.Status
	at, due := observedTime(status.LastObservedTime, run.state.LastObserved, dueAt, now)
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
	// The random part of the wait spreads the status writes of clusters that joined at the same time.
	return ctrl.Result{RequeueAfter: min(max(wait, time.Second), observedEvery) + rand.N(observedEvery/8)}, nil
}

// observedDue returns the time from which status.lastObservedTime may be written although nothing else has changed. It
// is observedEvery after this replica's last write. If this replica has not written yet, it is observedEvery after the
// time in the status.
func (r *Reconciler) observedDue(c *hubv1.MemberCluster) time.Time {
	last := r.records.of(c.Name).observedWritten
	if recorded := c.Status.LastObservedTime; last.IsZero() && recorded != nil {
		last = recorded.Time
	}
	return last.Add(observedEvery)
}

// observedTime returns the new value of status.lastObservedTime. answered is the time of the cluster's last answer, and
// recorded is the old value. at is nil if recorded is not older than answered. due is true if the new value may be
// written although nothing else has changed, which is the case from the time dueAt.
func observedTime(recorded *metav1.Time, answered, dueAt, now time.Time) (at *metav1.Time, due bool) {
	t := metav1.NewTime(answered).Rfc3339Copy()
	if recorded != nil && !recorded.Before(&t) {
		return nil, false
	}
	return &t, !now.Before(dueAt)
}
