package format

import (
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// DefaultPagerDutyURL is the address of PagerDuty's Events API for accounts in the United States.
const DefaultPagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

type pagerDutyEvent struct {
	Action   string            `json:"event_action"`
	DedupKey string            `json:"dedup_key"`
	Client   string            `json:"client,omitempty"`
	Payload  *pagerDutyPayload `json:"payload,omitempty"`
}

type pagerDutyPayload struct {
	Summary   string            `json:"summary"`
	Source    string            `json:"source"`
	Severity  string            `json:"severity"`
	Timestamp string            `json:"timestamp"`
	Component string            `json:"component"`
	Group     string            `json:"group,omitempty"`
	Class     string            `json:"class"`
	Details   map[string]string `json:"custom_details"`
}

var pagerDutySeverity = map[hubv1.NotificationSeverity]string{
	hubv1.SeverityNormal: "info", hubv1.SeverityWarning: "warning", hubv1.SeverityCritical: "critical",
}

// PagerDuty returns an event of version 2 of PagerDuty's Events API, without the routing key. It returns nil if the
// notice neither begins nor ends an incident.
func (n Notice) PagerDuty(hub string) ([]byte, error) {
	does, key := n.incident(hub)
	switch {
	case n.Reason == SinkChanged: // an end of an incident that never began shows whether PagerDuty takes the routing key
		does = ends
	case n.Reason == SinkTest:
		does = begins
	}
	switch does {
	case begins:
		return encode(pagerDutyEvent{Action: "trigger", DedupKey: key, Client: "Hanse", Payload: n.payload(hub)})
	case ends:
		return encode(pagerDutyEvent{Action: "resolve", DedupKey: key})
	}
	return nil, nil
}

func (n Notice) payload(hub string) *pagerDutyPayload {
	detail := hubv1.CutMessage(Clean(n.Detail), MaxMessage)
	p := &pagerDutyPayload{
		Summary:  hubv1.CutMessage(Clean(n.Reason)+": "+named(n.Regarding)+": "+detail, MaxMessage),
		Source:   hubv1.CutMessage(n.Subject(), MaxMessage),
		Severity: pagerDutySeverity[n.Severity()], Timestamp: n.At.UTC().Format(time.RFC3339),
		Component: hubv1.CutMessage(Clean(n.Kind()), maxName), Class: Clean(n.Reason),
		Details: map[string]string{
			"message": detail, "object": hubv1.CutMessage(named(n.Regarding), MaxMessage), "run": hubv1.CutMessage(n.command(), MaxMessage), "hub": hub,
		},
	}
	if placement := n.placement(); placement != nil {
		p.Group = hubv1.CutMessage(named(*placement), maxName)
	}
	return p
}

// WithRoutingKey adds the routing key to an event for PagerDuty. The key has only letters and digits.
func WithRoutingKey(event []byte, key string) []byte {
	return append([]byte(`{"routing_key":"`+key+`",`), event[1:]...)
}
