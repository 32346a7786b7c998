// Package rollup merges the states of an object's clusters. Status computes the status of a binding. MergeStatus
// computes the status of the hub object from the rows of the binding.
//
// The package reads no clock and no server: hub/report gathers an Input, and equal Inputs give byte-equal results. A
// second call with the same Input changes nothing, so that a fleet without changes causes no writes.
//
//   - An unknown fact does not change the row. After a restart a row stays until its cluster has reported. An
//     unreachable cluster keeps its last numbers, marked Unknown, with their time. A short interruption changes
//     nothing.
//   - Applied is True only for a generation and digest that the member has confirmed. It changes when a newer state of
//     the member object contradicts it.
//   - A time changes only with the value that it dates.
//   - A row has the reason Withdrawn only for the current Absent entry, because the entry is then dropped.
//   - The merged status is an allow-list by schema; the Rules of a placement come first. A field that cannot be merged
//     correctly, or does not match the schema, is left out and named.
//
// hub/report decides when to write, and whether the hub object's status may be written at all. hub/schedule provides
// the condition Scheduled, the decision and the other placements; this package does not change them.
package rollup

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// Fact is the current state of one cluster.
type Fact struct {
	// Outcome is the last result of this process for this target, binding and hub object, since the link is up. It is nil
	// if there is none. It must not be the result of an earlier state of the target.
	Outcome *member.Outcome
	// Observation is the last state from the cluster's watch. It is nil if the watch shows no copy. Synced is false until
	// the watch has delivered its first list.
	Observation *member.Observation
	Synced      bool

	// Connected is false if the link is down; LinkReason and LinkMessage have the cause. A cluster has no Fact until its
	// first connection attempt has ended.
	Connected   bool
	LinkReason  string
	LinkMessage string
	// InGrace is true while the link has been down for less than the grace time. The row then does not change.
	InGrace bool
	// LastHeard is the time of the last event from a watch of the cluster. It is zero if this process has received none.
	LastHeard time.Time

	// IsHub is true if the cluster is the hub itself, whose object is the template.
	IsHub bool
}

// away reports whether the link is down for longer than the grace period.
func (f Fact) away() bool { return !f.Connected && !f.InGrace }

// Input has all inputs for the status of one binding, except its previous status.
type Input struct {
	Targets []hubv1.BindingTarget
	// BindingGeneration is the generation of the binding that has these Targets.
	BindingGeneration int64

	// ObjectUID, HubGeneration and HubContent are those of the hub object. They are zero if the hub object is not known.
	ObjectUID     types.UID
	HubGeneration int64
	HubContent    uint64
	// Revisions of the object. Newest is the number of the newest revision; it is 0 without a rollout.
	Revisions []hubv1.ObjectRevision
	Newest    int64
	// TemplateStatus is the projection of the hub object's own status, and TemplateHealth is its health. Both are set for
	// a hub that is its own member.
	TemplateStatus []byte
	TemplateHealth hubv1.Health

	// Facts by cluster. The row of a target without a Fact does not change.
	Facts map[string]Fact
	// Elsewhere are the targets that another replica reports. Their rows do not change.
	Elsewhere map[string]bool
	Now       metav1.Time
}

// Status returns the updated status of a binding. Its rows are cut to fit the size limit. full has one uncut row for
// each target, sorted by name, for MergeStatus.
func Status(previous hubv1.BindingStatus, in Input) (status hubv1.BindingStatus, full []hubv1.ClusterRow) {
	in.Now = seconds(in.Now)
	before := rowsByName(previous.Clusters)
	full = newRows(before, previous.ObservedGeneration, in)
	previous.Clusters = nil // the rows are replaced below
	status = *previous.DeepCopy()
	status.ObservedGeneration = in.BindingGeneration
	status.Summary = summarize(full, in.Targets)
	status.Summary.Updated = updated(full, in)
	setConditions(&status, full, in)
	status.Orphaned = orphaned(previous.Orphaned, before, full, in)
	status.Clusters = fit(&status, full, in)
	return status, full
}

func rowsByName(rows []hubv1.ClusterRow) map[string]*hubv1.ClusterRow {
	out := make(map[string]*hubv1.ClusterRow, len(rows))
	for i := range rows {
		out[rows[i].Name] = &rows[i]
	}
	return out
}

// newRows returns the updated rows. rowsOf is the binding's generation at the time of the previous rows.
func newRows(before map[string]*hubv1.ClusterRow, rowsOf int64, in Input) []hubv1.ClusterRow {
	rows := make([]hubv1.ClusterRow, 0, len(in.Targets))
	for _, t := range byName(in.Targets) {
		rows = append(rows, newRow(before[t.Name], rowsOf, t, in))
	}
	return rows
}

// updated returns the number of Present clusters that hold the newest revision. It is nil if the object has no rollout.
func updated(rows []hubv1.ClusterRow, in Input) *int32 {
	if in.Newest == 0 {
		return nil
	}
	n := int32(0)
	for i, t := range byName(in.Targets) {
		if t.State == hubv1.TargetPresent && rows[i].Applied == metav1.ConditionTrue && rows[i].Revision == in.Newest {
			n++
		}
	}
	return &n
}

func summarize(rows []hubv1.ClusterRow, targets []hubv1.BindingTarget) hubv1.BindingSummary {
	var s hubv1.BindingSummary
	for i, t := range byName(targets) {
		if t.State != hubv1.TargetPresent {
			continue
		}
		s.Desired++
		switch rows[i].Applied {
		case metav1.ConditionTrue:
			s.Applied++
		case metav1.ConditionUnknown:
			s.Unknown++
		}
		if rows[i].Health == hubv1.HealthHealthy {
			s.Healthy++
		}
	}
	return s
}
