package report

import (
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

// ends reports whether the hub object is deleted, so that the binding is deleted after the last copy.
func (r *run) ends() bool {
	isLeft := func(t hubv1.BindingTarget) bool { return t.State != hubv1.TargetAbsent || t.Absent == nil }
	return !slices.ContainsFunc(r.targets, isLeft) && slices.ContainsFunc(r.targets, func(t hubv1.BindingTarget) bool {
		return t.Absent.Reason == hubv1.ReasonObjectDeleted
	})
}

// ending reports whether the writes of a deleted object's rows are delayed. They are delayed while copies are being
// removed. After the last copy, the leader deletes the binding without writing its rows.
//
// Two parts are written without a delay: a row that says why a withdrawal fails, and the list of orphaned copies. Other
// replicas write their rows, too, because the leader has no other way to learn that their copies are removed.
func (r *run) ending() bool {
	if !r.ends() || len(r.after.Orphaned) > 0 {
		return false
	}
	underWay := false
	for _, row := range r.rows {
		if row.Reason == hubv1.ReasonWithdrawn || (r.elsewhere[row.Name] && !r.leads) {
			continue
		}
		fact, known := r.facts[row.Name]
		if known && (!fact.Connected || fact.Outcome != nil && fact.Outcome.Reason != hubv1.ReasonWithdrawn) {
			return false
		}
		underWay = true
	}
	if underWay || !r.leads || r.reporter.opts.Withdrawn == nil {
		return underWay
	}
	if r.reporter.opts.Withdrawn(r.binding) {
		e, unlock := r.entry()
		defer unlock()
		e.settleUntil = r.now.Add(3 * pace.AnswerWithin) // until then the leader ends the binding
		r.tellPhases(e, r.binding.BindingStatus())
	}
	return true
}
