package rollup

import (
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// maxID is the maximum length in bytes of an identifier that comes from a cluster.
const maxID = 64

// orphaned returns the updated list of orphaned copies, which are objects that the hub has withdrawn but not deleted. A
// new orphaned copy is added. A copy that the hub applies again is removed from the list. rows are the new rows, sorted
// by cluster.
func orphaned(previous []hubv1.OrphanedCopy, before map[string]*hubv1.ClusterRow, rows []hubv1.ClusterRow, in Input) []hubv1.OrphanedCopy {
	out := slices.Clone(previous)
	for i, t := range byName(in.Targets) {
		if row := rows[i]; t.State != hubv1.TargetAbsent && row.UID != "" {
			out = slices.DeleteFunc(out, func(o hubv1.OrphanedCopy) bool { return o.UID == row.UID })
			continue
		}
		if o, ok := leftNow(before[t.Name], rows[i], in.Facts[t.Name]); ok && !in.Elsewhere[t.Name] {
			out = slices.DeleteFunc(out, func(earlier hubv1.OrphanedCopy) bool { return earlier.ClusterID == o.ClusterID })
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[max(0, len(out)-hubv1.MaxOrphaned):]
}

// leftNow returns the copy that a withdrawal has just orphaned. ok is true only when a row shows this withdrawal for
// the first time, so that a repeated report does not change the list.
func leftNow(before *hubv1.ClusterRow, row hubv1.ClusterRow, f Fact) (o hubv1.OrphanedCopy, ok bool) {
	if row.Reason != hubv1.ReasonWithdrawn || (before != nil && before.Reason == hubv1.ReasonWithdrawn) || f.Outcome == nil || f.Outcome.Orphaned == nil {
		return o, false
	}
	o = *f.Outcome.Orphaned
	return o, o.ClusterID != "" && len(o.ClusterID) <= maxID && o.UID != "" && len(o.UID) <= maxID && len(o.Digest) <= maxID
}
