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

// sightInterval is the least time between two writes that say no more than that a cluster was observed. With the time
// between two probes, the time that is said is never as old as hubv1.ObservedWithin.
const sightInterval = 30 * time.Second

// sight says when the cluster was last observed: with whatever else is written, and else when that is due. It comes
// last, since it has to know what the other steps have changed.
func (r *Reconciler) sight(_ context.Context, run *run) (ctrl.Result, error) {
	if run.released || run.state == nil || run.state.LastHeard.IsZero() {
		return ctrl.Result{}, nil
	}
	now, dueAt, status := time.Now(), r.sightDue(run.cluster), &run.cluster.Status
	at, due := sighted(status.LastObservedTime, run.state.LastHeard, dueAt, now)
	if at != nil && (due || !equality.Semantic.DeepEqual(run.before.Status, *status)) {
		status.LastObservedTime = at
	}
	if run.state.Ready != metav1.ConditionTrue {
		return ctrl.Result{}, nil // its link wakes it when it is heard again
	}
	wait := sightInterval
	if !due {
		wait = dueAt.Sub(now)
	}
	return ctrl.Result{RequeueAfter: min(max(wait, time.Second), sightInterval) + rand.N(sightInterval/8)}, nil // clusters that joined together do not stay together
}

// sightDue is when the time of a cluster may be written for its own sake. A replica that took the cluster over knows of
// the last write only what it said.
func (r *Reconciler) sightDue(c *hubv1.MemberCluster) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.sightWritten[c.Name]
	if said := c.Status.LastObservedTime; !known && said != nil {
		last = said.Time
	}
	return last.Add(sightInterval)
}

// sighted is the time to be written for a cluster that was last heard at a time; nil if the one that is said is not
// older. due says that it is worth a write of its own.
func sighted(said *metav1.Time, heard, dueAt, now time.Time) (at *metav1.Time, due bool) {
	t := metav1.NewTime(heard).Rfc3339Copy()
	if said != nil && !said.Before(&t) {
		return nil, false
	}
	return &t, !now.Before(dueAt)
}
