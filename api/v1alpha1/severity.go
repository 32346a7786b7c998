package v1alpha1

import corev1 "k8s.io/api/core/v1"

// EventClustersAway is the reason of an event on a placement: a cluster with copies does not answer.
const EventClustersAway = "ClustersAway"

// critical are the reasons of Warning events about unreachable clusters, and about copies that wait for a user.
// docs/notifications.md lists them.
var critical = map[string]bool{
	EventClustersAway:   true,
	ReasonUnreachable:   true,
	ReasonTooManyAway:   true,
	ReasonNoReplacement: true,
	ReasonRemovalHeld:   true,
	ReasonHubIsOlder:    true,
}

// SeverityOf returns how urgent an event of the hub is, by its type and reason.
func SeverityOf(eventType, reason string) NotificationSeverity {
	switch {
	case eventType != corev1.EventTypeWarning:
		return SeverityNormal
	case critical[reason]:
		return SeverityCritical
	}
	return SeverityWarning
}
