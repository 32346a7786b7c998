package rollout

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Event is an event about a rollout.
type Event struct {
	// Type is Normal or Warning.
	Type, Reason string
	// Action names the wave and the revision. The recorder of events merges events about one object with the same type,
	// reason and action, and keeps only the first note.
	Action, Note string
}

const maxNote = 1024 // maximum length of Event.Note, in characters

// Events returns the events for a change of an object's rollout from was to is, in the order in which they happened.
// The first revision of an object, which all clusters get at once, causes no event.
func Events(was, is *hubv1.BindingRollout) []Event {
	if was == nil || is == nil {
		return nil
	}
	n := eventList{action: fmt.Sprintf("RollOut/%s/%d", is.Wave, is.Revision)}
	same := was.Wave == is.Wave && was.Revision == is.Revision && was.Began.Equal(&is.Began)
	entered := was.Phase != is.Phase || !same
	if is.WaveBegan != nil && (!same || was.WaveBegan == nil) {
		n.normal(hubv1.ReasonWaveStarted, fmt.Sprintf("wave %s has begun: its clusters get revision %d", is.Wave, is.Revision))
	}
	if is.Failed != 0 && (was.Failed != is.Failed || is.Phase == hubv1.RolloutFailed && was.Phase != hubv1.RolloutFailed) {
		how := is.Message
		if is.Phase != hubv1.RolloutFailed {
			how = fmt.Sprintf("the clusters return to revision %d", is.Revision)
		}
		n.warn(hubv1.ReasonRolloutFailed, fmt.Sprintf("revision %d failed: %s", is.Failed, how))
	}
	switch {
	case !entered:
	case is.Phase == hubv1.RolloutWaitingForApproval:
		n.warn(hubv1.ReasonWaitingForApproval, fmt.Sprintf("revision %d: %s", is.Revision, is.Message))
	case is.Phase == hubv1.RolloutWaitingForClusters:
		n.warn(hubv1.ReasonWaitingForClusters, fmt.Sprintf("revision %d: %s", is.Revision, is.Message))
	case is.Phase == hubv1.RolloutRolledBack:
		n.warn(hubv1.ReasonRolledBack, is.Message)
	case is.Phase == hubv1.RolloutComplete && !isFirst(was.Wave, was.Phase):
		n.normal(hubv1.ReasonRolloutComplete, join(fmt.Sprintf("revision %d has passed all waves", is.Revision), is.Message))
	}
	return n.events
}

// PlacementNews returns the events for a change of the summary of a placement's rollouts from was to is. There is one
// event for all objects of the placement.
func PlacementNews(was, is *hubv1.PlacementRollout) []Event {
	if is == nil {
		return nil
	}
	if was == nil {
		was = &hubv1.PlacementRollout{}
	}
	n := eventList{action: fmt.Sprintf("RollOut/%s/%d", is.Wave, is.Revision)}
	n.approvals(was.Approvals, is.Approvals)
	same := was.Wave == is.Wave && (was.Object != is.Object || was.Revision == is.Revision)
	if is.WaveBegan != nil && (!same || was.WaveBegan == nil) {
		n.normal(hubv1.ReasonWaveStarted, fmt.Sprintf("wave %s has begun: %s goes to revision %d%s", is.Wave, is.Object, is.Revision, others(is.Objects.Moving)))
	}
	if s, before := is.Stopped, was.Stopped; s != nil && (before == nil || before.Object != s.Object || before.Revision != s.Revision) {
		n.warn(hubv1.ReasonRolloutFailed, fmt.Sprintf("revision %d failed, which stops the rollouts of the placement: %s", s.Revision, is.Message))
	}
	switch entered := was.Phase != is.Phase || !same; {
	case !entered:
	case is.Phase == hubv1.RolloutWaitingForApproval:
		n.warn(hubv1.ReasonWaitingForApproval, is.Message)
	case is.Phase == hubv1.RolloutWaitingForClusters:
		n.warn(hubv1.ReasonWaitingForClusters, is.Message)
	case is.Phase == hubv1.RolloutRolledBack:
		n.warn(hubv1.ReasonRolledBack, is.Message)
	case is.Phase == hubv1.RolloutComplete && was.Phase != "" && !isFirst(was.Wave, was.Phase):
		n.normal(hubv1.ReasonRolloutComplete, fmt.Sprintf("objects with their newest revision on all clusters: %d", is.Objects.Passed))
	}
	return n.events
}

// isFirst reports whether the first revision of an object goes to its clusters.
func isFirst(wave string, phase hubv1.RolloutPhase) bool {
	return wave == "" && phase == hubv1.RolloutProgressing
}

// others returns a text about the other objects that change. moving is the number of all objects that change.
func others(moving int32) string {
	if moving < 2 {
		return ""
	}
	return fmt.Sprintf("; objects that change: %d", moving)
}

// eventList collects events.
type eventList struct {
	action string
	events []Event
}

func (n *eventList) normal(reason, note string) {
	n.add(corev1.EventTypeNormal, reason, n.action, note)
}

func (n *eventList) warn(reason, note string) { n.add(corev1.EventTypeWarning, reason, n.action, note) }

func (n *eventList) add(kind, reason, action, note string) {
	n.events = append(n.events, Event{kind, reason, action, hubv1.CutMessage(note, maxNote)})
}

// approvals adds an event for each approval that the hub has recorded since, except the refused ones.
func (n *eventList) approvals(was, is []hubv1.RolloutRequest) {
	type request struct {
		wave string
		time int64
	}
	known := map[request]bool{}
	for _, r := range was {
		known[request{r.Wave, r.Time.Unix()}] = true
	}
	for _, r := range is {
		if r.Refused || known[request{r.Wave, r.Time.Unix()}] {
			continue
		}
		by := ""
		if r.By != "" {
			by = " by " + r.By
		}
		note := fmt.Sprintf("wave %s is approved%s for the changes that began until %s", r.Wave, by, r.Time.UTC().Format("2006-01-02T15:04:05Z"))
		n.add(corev1.EventTypeNormal, hubv1.ReasonRolloutApproved, "Approve/"+r.Wave, note)
	}
}
