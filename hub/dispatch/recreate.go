package dispatch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

// recreation returns why a missing copy is not created again. The reason is empty if the copy is created again. held is
// true if the cluster held the wanted copy, and the hub has not removed it since. finished is true if the missing copy
// had run to completion.
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

// writeUnlessGone writes the copy, unless it was deleted on the cluster and must not be created again. If the watch has
// not listed the kind yet, or is late, the write may change an existing copy but not create one.
func (r *run) writeUnlessGone(ctx context.Context, w *wanted, drift bool) member.Outcome {
	ended, finished := r.finished(w)
	policy := orDefault(r.policy().Apply.Recreate, hubv1.RecreateUntilCompleted)
	reason := recreation(policy, r.wasThere(w), finished)
	if reason == "" {
		return r.write(ctx, w, drift)
	}
	key := types.NamespacedName{Namespace: r.in.object.Namespace, Name: r.in.object.Name}
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

// wasThere reports whether the cluster last held the wanted copy, and this hub has not removed the copy since.
func (r *run) wasThere(w *wanted) bool {
	if w.confirmedUID == "" || w.confirmedDigest != w.digest || w.record.withdrawn != nil || w.record.withdrawing {
		return false
	}
	if w.record.last.Hash != "" {
		return true
	}
	// A row with the reason Deleting or FinalizersRemain may be older than the current decision. The row then shows a
	// withdrawal by this hub. If the row is not older, it shows that another client deletes the copy.
	row := r.binding.BindingStatus().Row(r.target.Name)
	withdrawing := row.Reason == hubv1.ReasonDeleting || row.Reason == hubv1.ReasonFinalizersRemain
	return !withdrawing || r.binding.BindingStatus().ObservedGeneration == r.binding.GetGeneration()
}

// finished returns the last state of the copy if it ran to completion. The state comes from the cluster's last event,
// or from the row.
func (r *run) finished(w *wanted) (*member.Observation, bool) {
	gk := w.record.gvk.GroupKind()
	last := r.queue.copies.finished(r.key)
	if last != nil && last.Digest == w.digest && last.UID == w.confirmedUID {
		return last, true
	}
	row := r.binding.BindingStatus().Row(r.target.Name)
	if row == nil || row.Digest != w.digest {
		return nil, false
	}
	o := &member.Observation{Assessment: member.Assessment{Health: row.Health}}
	if row.Observed != nil {
		o.Observed = row.Observed.Raw
	}
	ended, ok := health.Finished(gk, o.Observed)
	if ok {
		o.Health = ended // instead of Unknown, which the row has while the cluster is unreachable
	}
	return o, ok || row.Reason == hubv1.ReasonCompleted
}

// Vanished is called when a copy was deleted on the cluster. It records the last state of the copy, and queues its
// binding.
func (d *Dispatcher) Vanished(cluster string, binding types.NamespacedName, o member.Observation) {
	q := d.queue(cluster)
	if q == nil {
		return
	}
	if ended, ok := health.Finished(o.GVK.GroupKind(), o.Observed); ok {
		o.Health, o.HealthReason, o.HealthMessage = ended, "", "" // without the message about the deletion
		q.copies.setFinished(binding, o)
	}
	q.gate.add(due{binding, normalPriority + q.copies.rank(binding)})
}
