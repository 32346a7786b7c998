package dispatch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

// recreation says whether a copy that is not on the cluster is made. held says that the cluster held it as it is wanted
// now, and nobody but the cluster took it away; finished that it was seen to run to completion. reason is empty if it
// is made.
func recreation(policy hubv1.Recreate, held, finished bool) (reason string) {
	switch {
	case !held:
		return ""
	case policy == hubv1.RecreateNever:
		return hubv1.ReasonNotRecreated
	case policy != hubv1.RecreateAlways && finished:
		return hubv1.ReasonCompleted
	}
	return ""
}

// writeUnlessGone writes the copy unless it has vanished from the cluster and stays away. What its watch cannot tell,
// because it has not listed the kind or is late, the write finds out itself: it is told to make nothing then.
func (r *run) writeUnlessGone(ctx context.Context, w *wanted, drift bool) member.Outcome {
	ended, finished := r.finished(w)
	policy := orDefault(r.policy().Apply.Recreate, hubv1.RecreateUntilCompleted)
	reason := recreation(policy, r.wasThere(w), finished)
	if reason == "" {
		return r.write(ctx, w, drift)
	}
	key := types.NamespacedName{Namespace: r.object.Namespace, Name: r.object.Name}
	if _, found, synced := r.cluster.Observation(w.record.gvk, key); found || !synced {
		w.keepAway = true
		if o := r.write(ctx, w, drift); o.Reason != hubv1.ReasonNotRecreated {
			return o
		}
	}
	o := outcome(metav1.ConditionFalse, reason, "the copy was removed from the cluster, and is not created again until the object changes: apply.recreate is Never")
	if reason == hubv1.ReasonCompleted {
		o = outcome(metav1.ConditionTrue, reason, "the copy ran to completion and was removed from the cluster; the hub does not create it again")
		o.Last = ended
	}
	o.UID, o.Hash, o.Digest = w.confirmedUID, w.confirmed, w.digest
	return o
}

// wasThere says that the cluster held what is wanted now when it was last looked at, and that this hub has not taken it
// away since.
func (r *run) wasThere(w *wanted) bool {
	if w.confirmedUID == "" || w.confirmedDigest != w.digest || w.record.withdrawn != nil || w.record.withdrawing {
		return false
	}
	if w.record.last.Hash != "" {
		return true
	}
	// The row may speak of a withdrawal that was decided before this target was wanted again.
	row := r.binding.BindingStatus().Row(r.target.Name)
	withdrawing := row.Reason == hubv1.ReasonDeleting || row.Reason == hubv1.ReasonFinalizersRemain
	return !withdrawing || r.binding.BindingStatus().ObservedGeneration == r.binding.GetGeneration()
}

// finished returns the copy as it was last seen if it had run to completion by then, from the cluster's last event or
// from the row.
func (r *run) finished(w *wanted) (*member.Observation, bool) {
	gk := w.record.gvk.GroupKind()
	last := r.queue.records.getFinished(r.key)
	if last != nil && last.Digest == w.digest && last.UID == w.confirmedUID {
		return last, true
	}
	row := r.binding.BindingStatus().Row(r.target.Name)
	if row == nil || row.Digest != w.digest {
		return nil, false
	}
	o := &member.Observation{Health: row.Health}
	if row.Observed != nil {
		o.Observed = row.Observed.Raw
	}
	ended, ok := health.Finished(gk, o.Observed)
	if ok {
		o.Health = ended // that of the row is Unknown while the cluster is away
	}
	return o, ok || row.Reason == hubv1.ReasonCompleted
}

// Vanished notes the last state of a copy that was deleted on the cluster, and queues its binding.
func (d *Dispatcher) Vanished(cluster string, binding types.NamespacedName, o member.Observation) {
	q := d.queue(cluster)
	if q == nil {
		return
	}
	if ended, ok := health.Finished(o.GVK.GroupKind(), o.Observed); ok {
		o.Health, o.HealthReason, o.HealthMessage = ended, "", "" // not that it was being deleted
		q.records.setFinished(binding, o)
	}
	q.gate.add(due{binding, normalPriority + q.records.rank(binding)})
}
