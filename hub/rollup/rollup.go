// Package rollup folds the facts about an object's clusters: Status makes the status of a binding, MergeStatus the
// status of the hub object from its rows.
//
// It reads no clock and talks to no server: hub/report gathers an Input, and equal Inputs give byte-equal results. A
// second call with the same facts changes nothing, so that a quiet fleet costs no write.
//   - An unknown fact leaves the row as it was. After a restart a row holds until its cluster has reported; a cluster
//     that is away keeps its last numbers, marked Unknown, with the time that they are of. One that is away for a
//     moment changes nothing.
//   - Applied is True only for a generation and digest that were confirmed on the member, and is taken back when a
//     newer sight of the member object contradicts it.
//   - A time moves only when the thing that it dates does.
//   - A row says Withdrawn only for the absence that the binding asks for now: an entry is dropped because of it.
//   - The merged status is an allow-list by schema, with the Rules of a placement before it. What cannot be merged
//     honestly, or is not as the schema wants it, is left out and named.
//
// Not decided here: when something is written, and whether the hub object's status may be written at all (hub/report);
// the condition Scheduled, the decision and the other placements (hub/schedule), which are kept as they are.
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
	// Outcome is the last one of this process for this target, binding and hub object, since the link last came up; nil if
	// there is none. An outcome of an earlier state of the target must not be given.
	Outcome *member.Outcome
	// Observation is the last one by the cluster's watch; nil if there is none. Synced is false until the watch has
	// delivered its first list.
	Observation *member.Observation
	Synced      bool

	// Connected is false if the link is down, for the reason given. A cluster whose first try to connect has not ended has
	// no Fact.
	Connected   bool
	LinkReason  string
	LinkMessage string
	// InGrace is true while the link has been down for so short a time that it may be chance: the row stays as it is.
	InGrace bool
	// LastHeard is when a watch of the cluster last delivered; zero if none has in this process.
	LastHeard time.Time

	// IsHub is true if the cluster is the hub itself, whose object is the template.
	IsHub bool
}

// away is true if the link is down for longer than a moment.
func (f Fact) away() bool { return !f.Connected && !f.InGrace }

// Input is everything that the status of one binding depends on, beside the previous one.
type Input struct {
	Targets []hubv1.BindingTarget
	// BindingGeneration is that of the binding whose Targets these are.
	BindingGeneration int64

	// ObjectUID, HubGeneration and HubContent are those of the hub object; zero if it is not known.
	ObjectUID     types.UID
	HubGeneration int64
	HubContent    uint64
	// Revisions of the object that targets may name. Newest is the number of the newest one; 0 without a rollout.
	Revisions []hubv1.ObjectRevision
	Newest    int64
	// TemplateStatus is the projection of the hub object's own status, and TemplateHealth the verdict on it, for a member
	// that is the hub itself.
	TemplateStatus []byte
	TemplateHealth hubv1.Health

	// Facts by cluster. A target without one keeps its row.
	Facts map[string]Fact
	// Elsewhere are the targets that another replica reports on: their rows are left as they are.
	Elsewhere map[string]bool
	Now       metav1.Time
}

// Status returns the status of a binding: previous, brought up to date. Its rows are cut to fit the size limit; full
// has one uncut row for each target, sorted by name, which is what MergeStatus wants.
func Status(previous hubv1.BindingStatus, in Input) (status hubv1.BindingStatus, full []hubv1.ClusterRow) {
	in.Now = seconds(in.Now)
	before := rowsByName(previous.Clusters)
	full = newRows(before, previous.ObservedGeneration, in)
	previous.Clusters = nil // all of them are made anew
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

// newRows updates the rows. rowsOf is the generation of the binding to which the earlier rows belong.
func newRows(before map[string]*hubv1.ClusterRow, rowsOf int64, in Input) []hubv1.ClusterRow {
	rows := make([]hubv1.ClusterRow, 0, len(in.Targets))
	for _, t := range byName(in.Targets) {
		rows = append(rows, newRow(before[t.Name], rowsOf, t, in))
	}
	return rows
}

// updated is the number of Present clusters that hold the newest revision. Nil: the object has no rollout.
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
