package events

import (
	"fmt"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
	"github.com/hanse-dev/hanse/hub/pace"
)

// failsFor is how long the failure of one replica determines the sink's condition Ready, even if other replicas
// succeed. A replica that still has messages to send tries again within this time. If the replica fails again, failsFor
// begins again.
const failsFor = 2 * maxRequestedPause

// fold adds the results of a replica's deliveries (its tally) to the status of a sink. It reports whether the status
// must be written now. last is the time of the last write by this replica.
func fold(sink *hubv1.NotificationSink, t tally, replica string, last, now time.Time) (hubv1.NotificationSinkStatus, bool) {
	was, out := sink.Status, *sink.Status.DeepCopy()
	out.Delivered += t.delivered
	out.Dropped += t.dropped
	if t.delivered > 0 && !isBefore(t.lastDelivered, was.LastDeliveredTime) {
		out.LastDeliveredTime = stored(t.lastDelivered)
	}
	// The result of a delivery with an earlier spec must not set the condition of the current spec.
	if t.generation == sink.Generation && was.ObservedGeneration == sink.Generation {
		judgeReady(&out, sink, t, replica, now)
	}
	before, after := meta.FindStatusCondition(was.Conditions, hubv1.ConditionReady), meta.FindStatusCondition(out.Conditions, hubv1.ConditionReady)
	turned := after != nil && (before == nil || before.Status != after.Status || before.Reason != after.Reason)
	return out, turned || now.Sub(last) >= pace.RepeatAfter && !equality.Semantic.DeepEqual(out, was)
}

// judgeReady sets the condition Ready from the last delivery of a replica. It changes nothing if another replica has a
// newer result, or has failed within failsFor.
func judgeReady(out *hubv1.NotificationSinkStatus, sink *hubv1.NotificationSink, t tally, replica string, now time.Time) {
	ready := metav1.Condition{Type: hubv1.ConditionReady, ObservedGeneration: sink.Generation}
	failing := meta.IsStatusConditionFalse(out.Conditions, hubv1.ConditionReady)
	tried := t.lastDelivered
	if t.failure != nil {
		tried = t.lastFailed
	}
	switch {
	case failing && out.FailingReplica != replica && (isBefore(tried, out.LastFailedTime) || isBefore(now.Add(-failsFor), out.LastFailedTime)):
		return
	case t.failure == nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, hubv1.ReasonDelivered, "the receiver takes notifications"
		out.FailingReplica = ""
	case !failing && isBefore(tried, out.LastDeliveredTime):
		return
	default:
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonOf(t.failure)
		ready.Message = hubv1.CutMessage(format.Clean(fmt.Sprintf("replica %s cannot deliver to %s since %s, %s, and %s: %v", replica, receiverOf(sink),
			t.since.UTC().Format(time.RFC3339), counted(int64(t.waiting), "waits", "wait"), counted(t.lost, "was dropped", "were dropped"), t.failure)), format.MaxMessage)
		out.LastFailedTime, out.FailingReplica = stored(t.lastFailed), replica
	}
	meta.SetStatusCondition(&out.Conditions, ready)
}

// counted returns a number of notifications with a verb.
func counted(n int64, one, more string) string {
	if n == 1 {
		return "1 notification " + one
	}
	return fmt.Sprintf("%d notifications %s", n, more)
}

// stored truncates a time to whole seconds, because API servers store times without fractions of a second.
func stored(t time.Time) *metav1.Time { return &metav1.Time{Time: t.Truncate(time.Second)} }

// isBefore reports whether t is before other. It returns false if other is nil.
func isBefore(t time.Time, other *metav1.Time) bool { return other != nil && t.Before(other.Time) }

// receiverOf returns the host of a sink's receiver, without the path and the query, which may contain a token. If the
// URL is in a Secret, the host stays there, too.
func receiverOf(sink *hubv1.NotificationSink) string {
	text := sink.Spec.URL
	if text == "" && sink.Spec.Format == hubv1.FormatPagerDuty {
		text = format.DefaultPagerDutyURL
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "the receiver"
	}
	return u.Host
}
