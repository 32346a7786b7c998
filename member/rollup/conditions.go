package rollup

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const maxNamed = 3 // clusters named in a condition's message

// setConditions sets the conditions Applied, Healthy and, if it is True, Contested in the status. It keeps all other
// conditions.
func setConditions(status *hubv1.BindingStatus, rows []hubv1.ClusterRow, in Input) {
	for _, c := range []metav1.Condition{applied(rows, in.Targets), healthy(rows, in.Targets)} {
		c.ObservedGeneration, c.LastTransitionTime = in.BindingGeneration, in.Now
		meta.SetStatusCondition(&status.Conditions, c)
	}
	if c, ok := contested(rows, in.Targets); ok {
		c.ObservedGeneration, c.LastTransitionTime = in.BindingGeneration, in.Now
		meta.SetStatusCondition(&status.Conditions, c)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, hubv1.ConditionContested)
	}
}

// contested returns the condition Contested and true, if another field manager repeatedly undoes the hub's change of a
// copy, and false otherwise. The condition's message quotes the row of the first such copy, which names the field and
// the field manager.
func contested(rows []hubv1.ClusterRow, targets []hubv1.BindingTarget) (metav1.Condition, bool) {
	var fought []hubv1.ClusterRow
	for i, t := range byName(targets) {
		if t.State == hubv1.TargetPresent && rows[i].Reason == hubv1.ReasonContested {
			fought = append(fought, rows[i])
		}
	}
	if len(fought) == 0 {
		return metav1.Condition{}, false
	}
	c := metav1.Condition{Type: hubv1.ConditionContested, Status: metav1.ConditionTrue, Reason: hubv1.ReasonContested}
	c.Message = fmt.Sprintf("on %d of %d clusters: %s: %s", len(fought), len(rows), fought[0].Name, fought[0].Message)
	return c, true
}

// applied returns the condition Applied. It also counts the targets (clusters of the binding) that must remove their
// copy, because the decision is complete only after the removal. It does not count Evicting targets, because other
// clusters replace them. Copies whose values the cluster has changed are applied; the message counts them apart.
func applied(rows []hubv1.ClusterRow, targets []hubv1.BindingTarget) metav1.Condition {
	var failed, unknown, waiting, changed []hubv1.ClusterRow
	count := 0
	for i, t := range byName(targets) {
		if t.State == hubv1.TargetEvicting {
			continue // an Evicting cluster does not count: others get its replicas
		}
		count++
		switch row := rows[i]; {
		case t.State == hubv1.TargetPresent && row.Applied == metav1.ConditionTrue:
			if row.ChangedByCluster != "" {
				changed = append(changed, hubv1.ClusterRow{Name: row.Name})
			}
		case row.Reason == hubv1.ReasonWithdrawn && !t.Returns():
		case row.Reason == hubv1.ReasonWithdrawn, row.Reason == hubv1.ReasonPending, row.Reason == hubv1.ReasonDeleting, row.Reason == hubv1.ReasonFinalizersRemain:
			waiting = append(waiting, row)
		case row.Applied == metav1.ConditionUnknown:
			unknown = append(unknown, row)
		default:
			failed = append(failed, row)
		}
	}
	switch {
	case len(failed) > 0:
		return condition(hubv1.ConditionApplied, metav1.ConditionFalse, failedReason(failed), failed, count)
	case len(unknown) > 0:
		return condition(hubv1.ConditionApplied, metav1.ConditionUnknown, unknownReason(len(unknown), len(waiting), count), unknown, count)
	case len(waiting) > 0:
		return condition(hubv1.ConditionApplied, metav1.ConditionUnknown, hubv1.ReasonNotYetReported, waiting, count)
	case count == 0:
		return noCluster(hubv1.ConditionApplied)
	}
	c := condition(hubv1.ConditionApplied, metav1.ConditionTrue, hubv1.ReasonAppliedEverywhere, nil, count)
	if len(changed) > 0 {
		c.Message += "; values changed by the cluster " + condition("", "", "", changed, count).Message
	}
	return c
}

// failedReason returns HubIsOlder if a failed row has this reason, because an administrator must then act on the hub.
// It returns WaitingOnSome if all copies only wait (see Waits), and otherwise FailedOnSome.
func failedReason(failed []hubv1.ClusterRow) string {
	if slices.ContainsFunc(failed, func(row hubv1.ClusterRow) bool { return row.Reason == hubv1.ReasonHubIsOlder }) {
		return hubv1.ReasonHubIsOlder
	}
	if !slices.ContainsFunc(failed, func(row hubv1.ClusterRow) bool { return !Waits(row.Reason) }) {
		return hubv1.ReasonWaitingOnSome
	}
	return hubv1.ReasonFailedOnSome
}

// healthy returns the condition Healthy, from the health of the copies on the Present targets, which are the clusters
// that shall have a copy. A cluster that gets a copy again, in place of the copy of an earlier hub object, is
// progressing.
func healthy(rows []hubv1.ClusterRow, targets []hubv1.BindingTarget) metav1.Condition {
	var degraded, unknown, progressing []hubv1.ClusterRow
	held := 0
	for i, t := range byName(targets) {
		if t.Returns() {
			held++
			progressing = append(progressing, rows[i])
			continue
		}
		if t.State != hubv1.TargetPresent {
			continue
		}
		held++
		switch rows[i].Health {
		case hubv1.HealthHealthy:
		case hubv1.HealthDegraded:
			degraded = append(degraded, rows[i])
		case hubv1.HealthProgressing:
			progressing = append(progressing, rows[i])
		default:
			unknown = append(unknown, rows[i])
		}
	}
	switch {
	case len(degraded) > 0:
		return condition(hubv1.ConditionHealthy, metav1.ConditionFalse, hubv1.ReasonDegradedOnSome, degraded, held)
	case len(unknown) > 0:
		return condition(hubv1.ConditionHealthy, metav1.ConditionUnknown, unknownReason(len(unknown), len(progressing), held), unknown, held)
	case len(progressing) > 0:
		return condition(hubv1.ConditionHealthy, metav1.ConditionFalse, hubv1.ReasonProgressingOnSome, progressing, held)
	case held == 0:
		return noCluster(hubv1.ConditionHealthy)
	}
	return condition(hubv1.ConditionHealthy, metav1.ConditionTrue, hubv1.ReasonHealthyEverywhere, nil, held)
}

// unknownReason returns PartiallyUnknown if the health of some copies is known and all of these are healthy. Otherwise
// it returns UnknownOnSome. unknown is the number of copies with unknown health, underWay the number of progressing
// copies, and all the number of all copies.
func unknownReason(unknown, underWay, all int) string {
	if underWay == 0 && unknown < all {
		return hubv1.ReasonPartiallyUnknown
	}
	return hubv1.ReasonUnknownOnSome
}

func noCluster(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: hubv1.ReasonNoClusterSelected, Message: "no cluster is selected for the object"}
}

// condition returns a condition of a binding. causes are the rows that have caused the condition, and `of` is the
// number of clusters. The message says how many of these clusters have caused the condition, and names at most three of
// them.
func condition(kind string, status metav1.ConditionStatus, reason string, causes []hubv1.ClusterRow, of int) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: status, Reason: reason}
	if len(causes) == 0 {
		c.Message = fmt.Sprintf("on %d of %d clusters", of, of)
		return c
	}
	named := make([]string, 0, maxNamed)
	for _, row := range causes[:min(len(causes), maxNamed)] {
		if row.Reason == "" {
			named = append(named, row.Name)
			continue
		}
		named = append(named, fmt.Sprintf("%s (%s)", row.Name, row.Reason))
	}
	c.Message = fmt.Sprintf("on %d of %d clusters: %s", len(causes), of, strings.Join(named, ", "))
	if more := len(causes) - maxNamed; more > 0 {
		c.Message += fmt.Sprintf(" and %d more", more)
	}
	return c
}
