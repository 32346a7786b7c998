// Package rollup computes statuses from the states of an object's clusters. Status computes the status of a binding.
// MergeStatus computes the status of the hub object from the binding's rows.
//
// The package reads neither a clock nor a server. hub/report gathers an Input. Equal Inputs give byte-equal results, so
// that a fleet without changes causes no writes.
//
//   - A row does not change while the state of its cluster is unknown. After a restart, a row stays until its cluster
//     has reported. The row of an unreachable cluster keeps its last numbers, marked Unknown, with their time. A short
//     interruption changes no row.
//   - Applied is True only for a generation and digest that the member has confirmed. It changes if the watch shows a
//     newer state of the copy that contradicts the confirmation.
//   - A timestamp changes only together with the value that it dates.
//   - A row has the reason Withdrawn only for the current Absent entry of the binding's spec.clusters, because the
//     scheduler then removes the entry.
//   - A field is merged only if the schema or a Rule of the placement says how; Rules take precedence. A field that
//     cannot be merged correctly, or does not match the schema, is left out, and the status names it.
//
// hub/report decides when to write a status, and whether the status of the hub object may be written at all.
// hub/schedule provides the condition Scheduled, the decision and the other placements. This package does not change
// them.
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
	// Outcome is the result of the last run of hub/dispatch for the current target, binding and hub object, since the link
	// is up. It is nil if this process has none.
	Outcome *member.Outcome
	// Observation is the last state of the copy in the cluster's watch. It is nil if the watch has shown no copy. Synced
	// is false until the watch has delivered its first list.
	Observation *member.Observation
	Synced      bool
	// Unwatched is the error of the watch of the cluster's kind, if it has failed for longer than the grace time.
	// Observation may then be outdated. It is nil while the watch works.
	Unwatched *member.WatchFailure

	// Connected is false if the link is down; LinkReason and LinkMessage say why. A cluster has no Fact until its first
	// connection attempt has ended.
	Connected   bool
	LinkReason  string
	LinkMessage string
	// InGrace is true if the link has been down for less than the grace time. The row then stays as it is.
	InGrace bool
	// LastHeard is when a watch of the cluster last delivered an event to this process. It is zero if no watch has.
	LastHeard time.Time

	// IsHub is true if the cluster is the hub itself, so that the hub object is its own copy.
	IsHub bool
}

// away reports whether the link is down for longer than the grace time.
func (f Fact) away() bool { return !f.Connected && !f.InGrace }

// Input has all inputs for the status of one binding, except its previous status.
type Input struct {
	Targets []hubv1.BindingTarget
	// BindingGeneration is the generation of the binding that has these Targets.
	BindingGeneration int64

	// ObjectUID, HubGeneration and HubContent identify the current content of the hub object. They are zero if the hub
	// object is not known.
	ObjectUID     types.UID
	HubGeneration int64
	HubContent    uint64
	// Revisions are the object's revisions in its rollout. Newest is the number of the newest revision; it is 0 without
	// a rollout.
	Revisions []hubv1.ObjectRevision
	Newest    int64
	// TemplateStatus is the projection of the hub object's own status. TemplateHealth is the health of the hub object.
	// Both are used for a target that is the hub itself.
	TemplateStatus []byte
	TemplateHealth hubv1.Health

	// Facts has the states by cluster. The row of a target without a Fact does not change.
	Facts map[string]Fact
	// Elsewhere are the targets in shards of other replicas. Their rows do not change.
	Elsewhere map[string]bool
	Now       metav1.Time
}

// Status returns the updated status of a binding. Its rows are cut to the size limit. full has the uncut row of each
// target, sorted by name. It is the input of MergeStatus.
func Status(previous hubv1.BindingStatus, in Input) (status hubv1.BindingStatus, full []hubv1.ClusterRow) {
	in.Now = seconds(in.Now)
	before := rowsByName(previous.Clusters)
	full = newRows(before, previous.ObservedGeneration, in)
	previous.Clusters = nil // the rows are replaced below, so that they need no copy
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

// newRows returns the updated rows. rowsOf is the generation of the binding to which the previous rows belong.
func newRows(before map[string]*hubv1.ClusterRow, rowsOf int64, in Input) []hubv1.ClusterRow {
	rows := make([]hubv1.ClusterRow, 0, len(in.Targets))
	for _, t := range byName(in.Targets) {
		rows = append(rows, newRow(before[t.Name], rowsOf, t, in))
	}
	return rows
}

// updated returns the number of Present clusters that have the newest revision. It is nil if the object has no rollout.
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
