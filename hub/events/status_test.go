package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestFold(t *testing.T) {
	now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	at := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
	cause := errors.New("the receiver answers 503 Service Unavailable")
	failed := func(last time.Time) tally {
		return tally{generation: 2, failure: cause, since: last, lastFailed: last}
	}
	delivered := func(n int64, last time.Time) tally { return tally{generation: 2, delivered: n, lastDelivered: last} }
	ready := func(is metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: hubv1.ConditionReady, Status: is, Reason: reason, Message: message, ObservedGeneration: 2}}
	}
	pending := hubv1.NotificationSinkStatus{ObservedGeneration: 2, Conditions: ready(metav1.ConditionUnknown, hubv1.ReasonDeliveryPending, "")}
	good := hubv1.NotificationSinkStatus{
		ObservedGeneration: 2, Delivered: 5, LastDeliveredTime: at(ago(time.Hour)),
		Conditions: ready(metav1.ConditionTrue, hubv1.ReasonDelivered, "the receiver takes notifications"),
	}
	earlier := func(t tally) tally { t.generation = 1; return t }
	bad := func(replica string, since, last time.Time) hubv1.NotificationSinkStatus {
		return hubv1.NotificationSinkStatus{
			ObservedGeneration: 2, FailingReplica: replica, LastFailedTime: at(last),
			Conditions: ready(metav1.ConditionFalse, hubv1.ReasonDeliveryFailed, fmt.Sprintf(
				"replica %s cannot deliver to chat.example.com since %s, 0 notifications wait, and 0 notifications were dropped: %s", replica, since.Format(time.RFC3339), cause)),
		}
	}
	longer := tally{generation: 2, failure: cause, since: ago(time.Hour), lastFailed: now, waiting: 2}
	old := pending
	old.ObservedGeneration = 1
	tests := map[string]struct {
		was    hubv1.NotificationSinkStatus
		tally  tally
		last   time.Time // last status write of this replica
		reason string
		due    bool
	}{
		"a first delivery":                                    {was: pending, tally: delivered(1, now), reason: hubv1.ReasonDelivered, due: true},
		"a first failure":                                     {was: pending, tally: failed(now), reason: hubv1.ReasonDeliveryFailed, due: true},
		"nothing was tried":                                   {was: pending, reason: hubv1.ReasonDeliveryPending},
		"the leader has not looked at the spec yet":           {was: old, tally: failed(now), last: now, reason: hubv1.ReasonDeliveryPending},
		"counts alone wait":                                   {was: good, tally: delivered(3, now), last: ago(time.Minute - 1), reason: hubv1.ReasonDelivered},
		"counts alone are written once a minute":              {was: good, tally: delivered(3, now), last: ago(time.Minute), reason: hubv1.ReasonDelivered, due: true},
		"dropped ones are counts":                             {was: good, tally: tally{dropped: 1}, last: ago(time.Minute), reason: hubv1.ReasonDelivered, due: true},
		"a failure is written at once":                        {was: good, tally: failed(now), last: now, reason: hubv1.ReasonDeliveryFailed, due: true},
		"a failure by a former spec is none":                  {was: pending, tally: earlier(failed(now)), last: now, reason: hubv1.ReasonDeliveryPending},
		"a delivery by a former spec is none":                 {was: pending, tally: earlier(delivered(1, now)), last: now, reason: hubv1.ReasonDeliveryPending},
		"the same failure waits":                              {was: bad("a", ago(time.Hour), ago(50*time.Second)), tally: longer, last: ago(time.Minute - 1), reason: hubv1.ReasonDeliveryFailed},
		"the same failure is renewed":                         {was: bad("a", ago(time.Hour), ago(time.Minute)), tally: longer, last: ago(time.Minute), reason: hubv1.ReasonDeliveryFailed, due: true},
		"a failure that is not tried again is not renewed":    {was: bad("a", ago(time.Hour), ago(time.Hour)), tally: failed(ago(time.Hour)), reason: hubv1.ReasonDeliveryFailed},
		"the replica delivers again":                          {was: bad("a", ago(time.Hour), ago(time.Minute)), tally: delivered(1, now), last: now, reason: hubv1.ReasonDelivered, due: true},
		"the failure of another replica stays":                {was: bad("b", ago(time.Hour), ago(failsFor-time.Second)), tally: delivered(1, now), last: now, reason: hubv1.ReasonDeliveryFailed},
		"an old failure of another replica ends":              {was: bad("b", ago(time.Hour), ago(failsFor)), tally: delivered(1, now), last: now, reason: hubv1.ReasonDelivered, due: true},
		"it ends also if nothing was sent meanwhile":          {was: bad("b", ago(time.Hour), ago(failsFor)), tally: delivered(0, ago(time.Minute)), last: now, reason: hubv1.ReasonDelivered, due: true},
		"a success before the failure of another one is none": {was: bad("b", ago(time.Hour), ago(20*time.Minute)), tally: delivered(0, ago(time.Hour)), reason: hubv1.ReasonDeliveryFailed},
		"two failing replicas do not take turns":              {was: bad("b", ago(time.Hour), ago(time.Minute)), tally: failed(now), reason: hubv1.ReasonDeliveryFailed},
		"a replica takes over an old failure":                 {was: bad("b", ago(time.Hour), ago(failsFor)), tally: failed(now), reason: hubv1.ReasonDeliveryFailed, due: true},
		"the later one of two old failures stays":             {was: bad("b", ago(time.Hour), ago(failsFor)), tally: failed(ago(time.Hour)), reason: hubv1.ReasonDeliveryFailed},
		"a failure before the success of another one is none": {was: good, tally: failed(ago(2 * time.Hour)), reason: hubv1.ReasonDelivered},
		"no key": {
			was: good, tally: tally{generation: 2, failure: fmt.Errorf("%w: Secret hanse-system/a does not exist", errSigningKey), lastFailed: now}, last: now,
			reason: hubv1.ReasonSigningKeyInvalid, due: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sink := &hubv1.NotificationSink{Spec: hubv1.NotificationSinkSpec{URL: "https://chat.example.com/token?key=secret"}, Status: tc.was}
			sink.Generation = 2
			before := sink.DeepCopy()
			got, due := fold(sink, tc.tally, "a", tc.last, now)
			c := meta.FindStatusCondition(got.Conditions, hubv1.ConditionReady)
			if due != tc.due || c.Reason != tc.reason {
				t.Errorf("due is %v, and the condition %+v", due, c)
			}
			if strings.Contains(c.Message, "token") || strings.Contains(c.Message, "secret") {
				t.Errorf("the message has the path: %s", c.Message)
			}
			if want := tc.was.Delivered + tc.tally.delivered; got.Delivered != want || got.Dropped != tc.tally.dropped {
				t.Errorf("delivered is %d, want %d; dropped is %d", got.Delivered, want, got.Dropped)
			}
			if failing := c.Status == metav1.ConditionFalse; failing != (got.FailingReplica != "") {
				t.Errorf("failingReplica is %q", got.FailingReplica)
			}
			if tc.tally.delivered > 0 && !got.LastDeliveredTime.Time.Equal(tc.tally.lastDelivered) {
				t.Errorf("lastDeliveredTime is %s", got.LastDeliveredTime)
			}
			if sink.Status.FailingReplica != before.Status.FailingReplica || len(sink.Status.Conditions) != len(before.Status.Conditions) || sink.Status.Conditions[0] != before.Status.Conditions[0] {
				t.Error("the status of the cache was changed")
			}
		})
	}
}

// The message alone must tell an administrator since when notifications fail, and how many are waiting or lost.
func TestTheMessageOfAFailureHasItsTimeAndItsBacklog(t *testing.T) {
	now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	sink := &hubv1.NotificationSink{Spec: hubv1.NotificationSinkSpec{URL: "https://chat.example.com/token"}}
	sink.Generation, sink.Status.ObservedGeneration = 2, 2
	got, due := fold(sink, tally{
		generation: 2, failure: errors.New("the receiver answers 503 Service Unavailable"), since: now.Add(-time.Hour), lastFailed: now, waiting: 12, lost: 1, dropped: 1,
	}, "a", now, now)
	want := "replica a cannot deliver to chat.example.com since 2026-11-27T02:00:00Z, 12 notifications wait, and 1 notification was dropped: the receiver answers 503 Service Unavailable"
	if c := meta.FindStatusCondition(got.Conditions, hubv1.ConditionReady); !due || c == nil || c.Message != want {
		t.Errorf("due is %v, and the condition %+v", due, c)
	}
}
