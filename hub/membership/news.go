package membership

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// maxNoteLength is the maximum length of an event's note, in characters. The API server accepts 1,024 bytes, and a
// character has at most four bytes.
const maxNoteLength = 256

// clusterEvent is one event about a cluster.
type clusterEvent struct{ kind, reason, note string }

// troubles are the condition types whose status True means that a user must act.
var troubles = []string{
	hubv1.ConditionCredentialsExpireSoon, hubv1.ConditionTopologyChanged, hubv1.ConditionAnswersTooLarge, hubv1.ConditionUnclaimed,
}

// changes returns the events for a changed status. Ready and CredentialsValid cause an event if they become False, if
// the reason of False changes, and if they become True after False. The first True of Ready also causes an event. The
// condition types in troubles cause an event if they become True, or get another reason while True. A new message alone
// causes no event.
func changes(before, after []metav1.Condition, now time.Time) []clusterEvent {
	var out []clusterEvent
	for _, t := range []string{hubv1.ConditionReady, hubv1.ConditionCredentialsValid} {
		was, is := meta.FindStatusCondition(before, t), meta.FindStatusCondition(after, t)
		switch {
		case turned(metav1.ConditionFalse, was, is):
			out = append(out, clusterEvent{corev1.EventTypeWarning, is.Reason, is.Message})
		case is == nil || is.Status != metav1.ConditionTrue:
		case was != nil && was.Status == metav1.ConditionFalse:
			out = append(out, clusterEvent{corev1.EventTypeNormal, is.Reason, back(t, was, is, now)})
		case t == hubv1.ConditionReady && (was == nil || was.Status != is.Status):
			out = append(out, clusterEvent{corev1.EventTypeNormal, is.Reason, is.Message})
		}
	}
	for _, t := range troubles {
		was, is := meta.FindStatusCondition(before, t), meta.FindStatusCondition(after, t)
		if turned(metav1.ConditionTrue, was, is) {
			out = append(out, clusterEvent{corev1.EventTypeWarning, is.Reason, is.Message})
		}
	}
	// Ready and CredentialsValid may have the same reason, such as Unauthorized. In this case, one event is enough.
	var reasons []string
	out = slices.DeleteFunc(out, func(n clusterEvent) bool {
		duplicate := slices.Contains(reasons, n.reason)
		reasons = append(reasons, n.reason)
		return duplicate
	})
	for i := range out {
		out[i].note = member.Line(out[i].note, maxNoteLength)
	}
	return out
}

// turned reports whether a condition has the status `to` now, and had another status or another reason before.
func turned(to metav1.ConditionStatus, was, is *metav1.Condition) bool {
	return is != nil && is.Status == to && (was == nil || was.Status != is.Status || was.Reason != is.Reason)
}

// back returns the message for a cluster that answers again, with the duration of its outage.
func back(conditionType string, was, is *metav1.Condition, now time.Time) string {
	if conditionType != hubv1.ConditionReady {
		return is.Message
	}
	return fmt.Sprintf("the cluster answers again after %s (%s): %s", duration.HumanDuration(max(now.Sub(was.LastTransitionTime.Time), 0)), was.Reason, is.Message)
}
