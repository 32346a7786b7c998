package notify

import (
	"fmt"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// countEvery is the minimum time between two writes of counts alone.
	countEvery = time.Minute
	// failsFor is how long the failure of one replica counts more than the success of another one. The failing replica
	// renews its time after half of it.
	failsFor = 10 * time.Minute
)

// fold returns the status of a sink with the tally of a replica, and whether it is to be written now. last is when this
// replica last wrote it.
func fold(sink *hubv1.NotificationSink, t tally, replica string, last, now time.Time) (hubv1.NotificationSinkStatus, bool) {
	was, out := sink.Status, *sink.Status.DeepCopy()
	out.Delivered += t.delivered
	out.Dropped += t.dropped
	if t.delivered > 0 && !isBefore(t.lastDelivered, was.LastDeliveredTime) {
		out.LastDeliveredTime = &metav1.Time{Time: t.lastDelivered}
	}
	if t.tried && was.ObservedGeneration == sink.Generation { // else the leader has not seen the new spec
		judgeReady(&out, sink, t, replica)
	}
	renewed := out.LastFailedTime != nil && (was.LastFailedTime == nil || out.LastFailedTime.Sub(was.LastFailedTime.Time) >= failsFor/2)
	counted := (t.delivered > 0 || t.dropped > 0) && now.Sub(last) >= countEvery
	return out, renewed || counted || !equality.Semantic.DeepEqual(out.Conditions, was.Conditions)
}

// judgeReady sets the condition Ready by the last try of a replica, unless another replica knows better.
func judgeReady(out *hubv1.NotificationSinkStatus, sink *hubv1.NotificationSink, t tally, replica string) {
	ready := metav1.Condition{Type: hubv1.ConditionReady, ObservedGeneration: sink.Generation}
	failing := meta.IsStatusConditionFalse(out.Conditions, hubv1.ConditionReady)
	switch {
	case t.failure == nil && failing && out.FailingReplica != replica && isBefore(t.lastDelivered.Add(-failsFor), out.LastFailedTime):
		return
	case t.failure == nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, hubv1.ReasonDelivered, "the receiver takes notifications"
		out.FailingReplica = ""
	case !failing && isBefore(t.lastFailed, out.LastDeliveredTime):
		return
	default:
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonOf(t.failure)
		ready.Message = hubv1.CutMessage(clean(fmt.Sprintf("replica %s cannot deliver to %s since %s: %v", replica, hostOf(sink.Spec.URL),
			t.since.UTC().Format(time.RFC3339), t.failure)), mostMessage)
		out.LastFailedTime, out.FailingReplica = &metav1.Time{Time: t.lastFailed}, replica
	}
	meta.SetStatusCondition(&out.Conditions, ready)
}

// isBefore reports whether a time is before another one that is known.
func isBefore(t time.Time, other *metav1.Time) bool { return other != nil && t.Before(other.Time) }

// hostOf returns the host of a URL. The path and the query may have a token.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the receiver"
	}
	return u.Host
}
