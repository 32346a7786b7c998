package report

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

// These are the reasons of the events on a hub object.
const (
	EventApplied        = "Applied"
	EventApplyFailed    = "ApplyFailed"
	EventDegraded       = "Degraded"
	EventHealthy        = "Healthy"
	EventWithdrawn      = "Withdrawn"
	EventDriftCorrected = "DriftCorrected"
	EventHubIsOlder     = hubv1.ReasonHubIsOlder
)

// namedInEvents is the maximum number of clusters that an event names.
const namedInEvents = 3

// event is one event on a hub object. If the state of the object changes on several clusters, there is one event for
// all of them.
type event struct {
	kind, reason, action, note string
}

// troubles has two kinds of problems, failed writes (applying) and bad health (health). A field is true if this process
// has sent an event about the problem, and no later event about the recovery. Problems from before a restart are read
// from the binding.
type troubles struct{ applying, health bool }

// note updates the fields of t for an event that is being sent.
func (t *troubles) note(ev event) {
	switch ev.reason {
	case EventApplyFailed, EventHubIsOlder, EventApplied:
		t.applying = ev.reason != EventApplied
	case EventDegraded, EventHealthy:
		t.health = ev.reason == EventDegraded
	}
}

// phases returns the events that a changed status of a binding causes. before is the status on the server. A restarted
// hub does not repeat events, because it compares with this status.
func (t troubles) phases(before, after *hubv1.BindingStatus, spec *hubv1.BindingSpec) []event {
	var out []event
	out = append(out, t.applyPhase(before, after, spec)...)
	out = append(out, t.healthPhase(before, after)...)
	withdrawn := rowsWhere(after, func(row hubv1.ClusterRow) bool {
		was := before.Row(row.Name)
		return row.Reason == hubv1.ReasonWithdrawn && (was == nil || was.Reason != hubv1.ReasonWithdrawn)
	})
	if len(withdrawn) > 0 {
		out = append(out, event{corev1.EventTypeNormal, EventWithdrawn, "Withdraw", "withdrawn from " + notes(withdrawn)})
	}
	return out
}

// applyPhase returns at most one event, for a change of the condition Applied.
func (t troubles) applyPhase(before, after *hubv1.BindingStatus, spec *hubv1.BindingSpec) []event {
	was, is := reason(before, hubv1.ConditionApplied), reason(after, hubv1.ConditionApplied)
	switch {
	// Two changes cause no event: a successful update, and a connection that is up again. Otherwise there would be an
	// event for each cluster. If the hub object's own status shows the success, no event is needed either.
	case is == hubv1.ReasonAppliedEverywhere && after.Summary.Desired > 0 && (was == hubv1.ReasonFailedOnSome || was == hubv1.ReasonHubIsOlder || t.applying || !heldEverywhere(before, spec) && !statusIsWritten(after)):
		return []event{{corev1.EventTypeNormal, EventApplied, "Apply", "applied to " + clusters(int(after.Summary.Desired))}}
	case is == hubv1.ReasonHubIsOlder && was != is:
		newer := rowsWhere(after, func(row hubv1.ClusterRow) bool { return row.Reason == hubv1.ReasonHubIsOlder })
		return []event{{corev1.EventTypeWarning, EventHubIsOlder, "Apply", "held on " + reasons(newer)}}
	case is == hubv1.ReasonFailedOnSome && was != is && was != hubv1.ReasonHubIsOlder:
		if failing := rowsWhere(after, failing); len(failing) > 0 {
			return []event{{corev1.EventTypeWarning, EventApplyFailed, "Apply", "failed on " + reasons(failing)}}
		}
	}
	return nil
}

// healthPhase returns at most one event, for a change of the condition Healthy.
func (t troubles) healthPhase(before, after *hubv1.BindingStatus) []event {
	switch was, is := reason(before, hubv1.ConditionHealthy), reason(after, hubv1.ConditionHealthy); {
	case is == hubv1.ReasonDegradedOnSome && was != is && !t.health:
		degraded := rowsWhere(after, func(row hubv1.ClusterRow) bool { return row.Health == hubv1.HealthDegraded })
		return []event{{corev1.EventTypeWarning, EventDegraded, "Observe", "degraded on " + reasons(degraded)}}
	case is == hubv1.ReasonHealthyEverywhere && (was == hubv1.ReasonDegradedOnSome || t.health):
		return []event{{corev1.EventTypeNormal, EventHealthy, "Observe", "healthy again on " + clusters(int(after.Summary.Desired))}}
	}
	return nil
}

// driftEvent returns one event about all fields that the hub has restored on members since the last such event.
func driftEvent(d drifts) event {
	note := fmt.Sprintf("restored %s on %s after a change by %s", d.field.Path, d.cluster, d.field.Manager)
	if d.count > 1 {
		note += fmt.Sprintf("; %d corrections in all", d.count)
	}
	return event{corev1.EventTypeNormal, EventDriftCorrected, "Apply", note}
}

func reason(s *hubv1.BindingStatus, kind string) string {
	if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

// failing reports whether the row shows a problem that a user must mend.
func failing(row hubv1.ClusterRow) bool {
	return rollup.Failed(row.Applied, row.Reason)
}

// statusIsWritten reports whether the merged status is written to the hub object.
func statusIsWritten(s *hubv1.BindingStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, hubv1.ConditionStatusWritten)
}

// heldEverywhere reports whether every cluster that shall have the object has a copy. The copy may have any generation.
func heldEverywhere(s *hubv1.BindingStatus, spec *hubv1.BindingSpec) bool {
	return !slices.ContainsFunc(spec.Clusters, func(t hubv1.BindingTarget) bool {
		row := s.Row(t.Name)
		return t.State == hubv1.TargetPresent && (row == nil || row.Generation == 0)
	})
}

func rowsWhere(s *hubv1.BindingStatus, chosen func(hubv1.ClusterRow) bool) []hubv1.ClusterRow {
	return slices.DeleteFunc(slices.Clone(s.Clusters), func(row hubv1.ClusterRow) bool { return !chosen(row) })
}

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

// reasons returns the names of the clusters with problems and the reasons as text, such as "2 clusters: cn-sha-1
// (ManifestRefused: spec.replicas: ...), eu-fra-1 (Forbidden)".
func reasons(rows []hubv1.ClusterRow) string {
	return listed(rows, func(row hubv1.ClusterRow) string {
		if row.Message == "" {
			return row.Name + " (" + row.Reason + ")"
		}
		return row.Name + " (" + row.Reason + ": " + row.Message + ")"
	})
}

// notes returns the names of the clusters and their rows' messages as text, such as "2 clusters: cn-sha-1, eu-fra-1
// (ConfigMap shop/web stays on the cluster)".
func notes(rows []hubv1.ClusterRow) string {
	return listed(rows, func(row hubv1.ClusterRow) string {
		if row.Message == "" {
			return row.Name
		}
		return row.Name + " (" + row.Message + ")"
	})
}

func listed(rows []hubv1.ClusterRow, text func(hubv1.ClusterRow) string) string {
	var parts []string
	for _, row := range rows[:min(len(rows), namedInEvents)] {
		parts = append(parts, text(row))
	}
	out := clusters(len(rows)) + ": " + strings.Join(parts, ", ")
	if more := len(rows) - len(parts); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
