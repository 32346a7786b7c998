package policies

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// These are the reasons of the events on a placement.
const (
	EventNotAccepted  = "NotAccepted"
	EventAccepted     = "Accepted"
	EventNotScheduled = "NotScheduled"
	EventScheduled    = "Scheduled"
	EventApplyFailed  = "ApplyFailed"
	EventApplied      = "Applied"
	EventDegraded     = "Degraded"
	EventHealthy      = "Healthy"
	EventClustersAway = hubv1.EventClustersAway
	EventClustersBack = "ClustersBack"
)

// event is one event on a placement. When a failure begins, there is one event, even if it concerns many objects. When
// the failure ends, there is another event.
type event struct{ kind, reason, action, note string }

// lastEvent describes the last event about one kind of failure of a placement.
type lastEvent struct {
	at   time.Time
	open bool // true: no event has reported the end of the failure
}

// chapter describes one kind of failure of a placement, and the events when the failure begins and ends.
type chapter struct {
	condition       string
	action          string
	trouble, relief string // reasons of the events about the failure and about its end
	// but is a reason with which the condition is False although nothing has failed. It is empty if False always means a
	// failure.
	but string
}

var chapters = []chapter{
	{hubv1.ConditionAccepted, "Accept", EventNotAccepted, EventAccepted, ""},
	{hubv1.ConditionScheduled, "Schedule", EventNotScheduled, EventScheduled, ""},
	{hubv1.ConditionApplied, "Apply", EventApplyFailed, EventApplied, hubv1.ReasonWaitingOnSome},
	{hubv1.ConditionHealthy, "Observe", EventDegraded, EventHealthy, hubv1.ReasonProgressingOnSome},
}

// story returns the events for a change of the status from `was` to `is`. gone are the clusters that do not answer.
func (m *record) story(was, is hubv1.PlacementStatus, gone []string, now time.Time) []event {
	var out []event
	for _, c := range chapters {
		before, after := meta.FindStatusCondition(was.Conditions, c.condition), meta.FindStatusCondition(is.Conditions, c.condition)
		switch last := m.events[c.condition]; {
		case after == nil:
		case c.troubled(after):
			if !c.troubled(before) && m.may(c.condition, now) {
				out = append(out, event{corev1.EventTypeWarning, c.trouble, c.action, after.Reason + ": " + after.Message})
			}
		case after.Status == metav1.ConditionTrue && (last.open || c.troubled(before)):
			m.events[c.condition] = lastEvent{at: last.at}
			out = append(out, event{corev1.EventTypeNormal, c.relief, c.action, cmp.Or(after.Message, "the placement is valid")})
		}
	}
	const away = "away"
	switch was, is := was.OldestObservedTime, is.OldestObservedTime; {
	case was == nil && is != nil && m.may(away, now):
		note := fmt.Sprintf("%s: no answer since %s; their copies are shown as of that time: see kubectl describe membercluster",
			firstOf(gone), is.UTC().Format(time.RFC3339))
		out = append(out, event{corev1.EventTypeWarning, EventClustersAway, "Observe", note})
	case was != nil && is == nil:
		m.events[away] = lastEvent{at: m.events[away].at}
		out = append(out, event{corev1.EventTypeNormal, EventClustersBack, "Observe", "all clusters answer again"})
	}
	for _, e := range rollout.PlacementNews(was.Rollout, is.Rollout) {
		out = append(out, event{e.Type, e.Reason, e.Action, e.Note})
	}
	return out
}

func (c chapter) troubled(now *metav1.Condition) bool {
	return now != nil && now.Status == metav1.ConditionFalse && (c.but == "" || now.Reason != c.but)
}

// may reports whether an event about the beginning of this kind of failure may be sent now. For some time after the
// last such event, it returns false. If it returns true, it records the event as sent.
func (m *record) may(what string, now time.Time) bool {
	last := m.events[what]
	if !last.at.IsZero() && now.Sub(last.at) < pace.RepeatAfter {
		return false
	}
	m.events[what] = lastEvent{at: now, open: true}
	return true
}
