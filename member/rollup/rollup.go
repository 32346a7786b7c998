// Package rollup computes statuses from the states of an object's clusters, the targets of its binding. The function
// Status computes the status of a binding. The function MergeStatus computes the status of the hub object from the rows
// of its binding.
//
// The package reads neither a clock nor a server; the package hub/report collects the Input. Equal Inputs give results
// with equal bytes, so that nothing is written while nothing changes.
//
//   - A row does not change while the state of its cluster is unknown. After a restart, a row stays until its cluster
//     has reported. The row of an unreachable cluster keeps its last numbers, marked Unknown, with their time. A short
//     interruption changes no row.
//   - Applied is True only for a generation and digest that the member has confirmed. Applied changes if the watch
//     shows a newer state of the copy that contradicts the confirmation.
//   - A timestamp changes only together with the value that it dates.
//   - A row has the reason Withdrawn only for the current Absent entry of the binding's spec.clusters, because the
//     scheduler then removes the entry.
//   - A field is merged only if the schema or a Rule of the placement says how; Rules take precedence. A field that
//     cannot be merged correctly, or does not match the schema, is left out, and the status names it.
//
// The package hub/report decides when to write a status, and whether to write the status of the hub object. The package
// hub/schedule sets the condition Scheduled, the decision, and the list of other placements in the binding. Package
// rollup does not change these.
package rollup

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// Fact is the current state of one cluster, with its copy of the object.
type Fact struct {
	// Outcome is the result of the last write, check or removal of the copy by hub/dispatch. The result belongs to the
	// current content of the binding and of the hub object. It is nil if this process has no such result since it last
	// connected to the cluster.
	Outcome *member.Outcome
	// Observation is the last state of the copy that the cluster's watch has shown. It is nil if the watch has shown no
	// copy. Synced is false until the watch has delivered its first list.
	Observation *member.Observation
	Synced      bool
	// Unwatched is the error of the watch of the object's kind on the cluster. It is set only if the watch has failed for
	// longer than the grace time, a duration of failures that the hub ignores. Observation may then be outdated. Unwatched
	// is nil while the watch works.
	Unwatched *member.WatchFailure

	// Connected is false if the hub has no connection to the cluster. LinkReason and LinkMessage then say why. A cluster
	// has no Fact until the first connection attempt has ended.
	Connected   bool
	LinkReason  string
	LinkMessage string
	// InGrace is true if the connection has been down for less than the grace time. An outage that is so short does not
	// change the row of the cluster.
	InGrace bool
	// LastObserved is the time at which a watch of the cluster last delivered an event to this process. It is zero if no
	// watch has delivered one.
	LastObserved time.Time

	// IsHub is true if the cluster is the hub itself. The hub object is then its own copy.
	IsHub bool
}

// away reports whether the cluster counts as unreachable, because its connection has been down for longer than the
// grace time (for which the hub ignores an outage).
func (f Fact) away() bool { return !f.Connected && !f.InGrace }

// Input has all inputs for the status of one binding, except its previous status.
type Input struct {
	Targets []hubv1.BindingTarget
	// BindingGeneration is the generation of the binding from which the Targets are.
	BindingGeneration int64

	// ObjectUID, HubGeneration and HubContent identify the current content of the hub object. They are zero if the hub
	// does not know the object.
	ObjectUID     types.UID
	HubGeneration int64
	HubContent    uint64
	// Revisions are the revisions of the object that its rollout knows. Newest is the number of the newest one; it is 0
	// without a rollout.
	Revisions []hubv1.ObjectRevision
	Newest    int64
	// TemplateStatus is the part of the hub object's own status that a row keeps. TemplateHealth is the health of the hub
	// object. Both are used for a target that is the hub itself.
	TemplateStatus []byte
	TemplateHealth hubv1.Health

	// Facts has the state of each cluster by name. The row of a cluster without a Fact keeps its last known state.
	Facts map[string]Fact
	// Elsewhere has the clusters that other replicas of the hub serve. Their rows do not change.
	Elsewhere map[string]bool
	Now       metav1.Time
}

// Status returns the updated status of a binding. The rows in this status are cut to the size limit. full has the uncut
// row of each cluster of the binding, sorted by cluster, as the input of MergeStatus.
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

// newRows returns the updated row of each cluster of the binding. rowsOf is the generation of the binding for which the
// previous rows were computed.
func newRows(before map[string]*hubv1.ClusterRow, rowsOf int64, in Input) []hubv1.ClusterRow {
	rows := make([]hubv1.ClusterRow, 0, len(in.Targets))
	for _, t := range byName(in.Targets) {
		rows = append(rows, newRow(before[t.Name], rowsOf, t, in))
	}
	return rows
}

// updated returns the number of Present targets (clusters that shall have a copy) to which the newest revision of the
// object is applied. It is nil if the object has no rollout.
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
