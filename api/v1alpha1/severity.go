package v1alpha1

import corev1 "k8s.io/api/core/v1"

// EventClustersAway is the reason of an event on a placement. It means that a cluster with copies of the placement's
// objects does not answer.
const EventClustersAway = "ClustersAway"

// critical has the reasons of Warning events about unreachable clusters, and about copies for which a user must decide.
// Their severity is Critical. docs/notifications.md lists them.
var critical = map[string]bool{
	EventClustersAway:   true,
	ReasonUnreachable:   true,
	ReasonTooManyAway:   true,
	ReasonNoReplacement: true,
	ReasonRemovalHeld:   true,
	ReasonHubIsOlder:    true,
}

// SeverityOf returns the severity of an event of the hub. It depends on the event's type and reason.
func SeverityOf(eventType, reason string) NotificationSeverity {
	switch {
	case eventType != corev1.EventTypeWarning:
		return SeverityNormal
	case critical[reason]:
		return SeverityCritical
	}
	return SeverityWarning
}
