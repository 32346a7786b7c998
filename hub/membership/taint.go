package membership

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// taint sets the hub's own taints of the cluster according to the condition Ready. Until the first connection attempt
// has ended, the taints do not change. Therefore the taints keep their timeAdded after a restart, or after another
// replica has taken over the cluster.
func (r *Reconciler) taint(_ context.Context, run *run) (ctrl.Result, error) {
	if !run.settled && (run.state == nil || run.state.Ready == metav1.ConditionUnknown) {
		return ctrl.Result{}, nil
	}
	status := &run.cluster.Status
	after, wait := tainted(status.Taints, silent(run.cluster), time.Now(), r.grace)
	status.Taints = after
	return ctrl.Result{RequeueAfter: wait}, nil
}

// silent reports whether a cluster does not answer. It is false for a cluster that refuses the credentials, has another
// certificate, or throttles requests, because such a cluster answers.
func silent(c *hubv1.MemberCluster) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason == hubv1.ReasonUnreachable
}

// tainted returns the new taints of a cluster. wait is the time until they must be checked again; it is 0 if no check
// is needed.
func tainted(before []corev1.Taint, silent bool, now time.Time, grace time.Duration) (after []corev1.Taint, wait time.Duration) {
	after = slices.DeleteFunc(slices.Clone(before), func(t corev1.Taint) bool { return t.Key == hubv1.UnreachableTaint && !silent })
	if !silent {
		return after, 0
	}
	at := metav1.NewTime(now).Rfc3339Copy()
	since := find(after, corev1.TaintEffectNoSchedule)
	if since == nil {
		after = append(after, corev1.Taint{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at})
		since = &at
	}
	if find(after, corev1.TaintEffectNoExecute) != nil {
		return after, 0
	}
	if wait = since.Add(grace).Sub(now); wait > 0 {
		return after, wait
	}
	return append(after, corev1.Taint{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}), 0
}

// find returns the time at which the hub's own taint with this effect was added. It is nil if there is no such taint.
func find(taints []corev1.Taint, effect corev1.TaintEffect) *metav1.Time {
	for _, t := range taints {
		if t.Key == hubv1.UnreachableTaint && t.Effect == effect && t.TimeAdded != nil {
			return t.TimeAdded
		}
	}
	return nil
}
