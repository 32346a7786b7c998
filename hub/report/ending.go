package report

import (
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

// ends reports whether the decision removes all copies because the hub object was deleted. After the last copy is gone,
// the leader deletes the binding.
func (r *run) ends() bool {
	isLeft := func(t hubv1.BindingTarget) bool { return t.State != hubv1.TargetAbsent || t.Absent == nil }
	return !slices.ContainsFunc(r.targets, isLeft) && slices.ContainsFunc(r.targets, func(t hubv1.BindingTarget) bool {
		return t.Absent.Reason == hubv1.ReasonObjectDeleted
	})
}

// ending reports whether the rows of a deleted object need not be written now. Removed copies are not reported one by
// one. When the last copy is gone, the leader deletes the binding, and no one needs the rows.
//
// Two changes are written in any case: a row with the reason why a withdrawal fails, and the list of orphaned copies. A
// replica that is not the leader also writes its rows after the last copy in its shard is removed. The leader reads
// from these rows that the copies are gone.
func (r *run) ending() bool {
	if !r.ends() || len(r.out.after.Orphaned) > 0 {
		return false
	}
	underWay := false
	for _, row := range r.out.rows {
		if row.Reason == hubv1.ReasonWithdrawn || (r.part.elsewhere[row.Name] && !r.part.leads) {
			continue
		}
		fact, known := r.in.facts[row.Name]
		if known && (!fact.Connected || fact.Outcome != nil && fact.Outcome.Reason != hubv1.ReasonWithdrawn) {
			return false
		}
		underWay = true
	}
	if underWay || !r.part.leads || r.reporter.opts.Withdrawn == nil {
		return underWay
	}
	if r.reporter.opts.Withdrawn(r.binding) {
		e, unlock := r.entry()
		defer unlock()
		e.settleUntil = r.now.Add(3 * pace.AnswerWithin) // by then the leader has deleted the binding
		r.tellPhases(e, r.binding.BindingStatus())
	}
	return true
}
