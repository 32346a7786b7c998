package rollup

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

const (
	maxRows = 200 << 10 // JSON bytes of all rows together
	// fullRow is the assumed full size in bytes of a row that was cut. The assumption is used until the cluster of the row
	// reports again.
	fullRow = 7 << 8
	// minChanged is the length to which fit cuts the field changedByCluster. It must not become empty, because the
	// hub tries such a copy again.
	minChanged = 32
	// escaped is the maximum number of JSON bytes that one byte of text needs. beside is an upper bound of the JSON size
	// of a row without its texts.
	escaped = 6
	beside  = 512
)

// fit shortens the rows if their total size is too large, and then sets the condition RowsTruncated. It first cuts the
// rows of healthy copies to the data that the hub needs after a restart. If all rows together are still too large, it
// removes the observed status from the other rows and cuts their messages.
func fit(status *hubv1.BindingStatus, rows []hubv1.ClusterRow, in Input) []hubv1.ClusterRow {
	if roughly(rows) <= maxRows || measured(rows) <= maxRows {
		if meta.FindStatusCondition(status.Conditions, hubv1.ConditionRowsTruncated) != nil {
			setTruncated(status, metav1.ConditionFalse, hubv1.ReasonComplete, "", in)
		}
		return rows
	}
	out := make([]hubv1.ClusterRow, 0, len(rows))
	cutRows := 0
	for _, row := range rows {
		if good(row) {
			row = hubv1.ClusterRow{
				Name: row.Name, UID: row.UID, Generation: row.Generation, Digest: row.Digest, Hash: row.Hash, Adopted: row.Adopted, Applied: row.Applied, Health: row.Health,
				Revision: row.Revision, Version: row.Version, PassingSince: row.PassingSince, Observed: essential(row.Observed),
			}
			cutRows++
		}
		out = append(out, row)
	}
	for _, limit := range []int{maxMessage, maxMessage / 4, 0} {
		if total(out) <= maxRows {
			break
		}
		for i := range out {
			if limit == 0 || !good(out[i]) {
				out[i].Observed = nil
			}
			out[i].Message = hubv1.CutMessage(out[i].Message, limit)
			out[i].ChangedByCluster = hubv1.CutMessage(out[i].ChangedByCluster, max(limit, minChanged))
		}
	}
	setTruncated(status, metav1.ConditionTrue, hubv1.ReasonOverBudget,
		fmt.Sprintf("%d of %d rows were shortened to keep the limit of %d KiB: rows of healthy clusters have no details", cutRows, len(rows), maxRows>>10), in)
	return out
}

// roughly returns an upper bound of the rows' size, without encoding them as JSON. For most objects, this bound is
// below the limit, so that the exact size is not needed.
func roughly(rows []hubv1.ClusterRow) int {
	size := 0
	for i := range rows {
		row := &rows[i]
		size += beside + fullRow + escaped*(len(row.Name)+len(row.UID)+len(row.Digest)+len(row.Hash)+len(row.Version)+len(row.Reason)+len(row.Message)+len(row.ChangedByCluster))
		if row.Observed != nil {
			size += escaped * len(row.Observed.Raw)
		}
	}
	return size
}

// measured returns the total size of the rows as JSON. A row that was cut counts with its assumed full size.
func measured(rows []hubv1.ClusterRow) int {
	size := total(rows)
	for _, row := range rows {
		if shrunk(row) {
			size += fullRow
		}
	}
	return size
}

func setTruncated(status *hubv1.BindingStatus, value metav1.ConditionStatus, reason, message string, in Input) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: hubv1.ConditionRowsTruncated, Status: value, Reason: reason, Message: message,
		ObservedGeneration: in.BindingGeneration, LastTransitionTime: in.Now,
	})
}

func essential(observed *runtime.RawExtension) *runtime.RawExtension {
	if observed == nil {
		return nil
	}
	return raw(health.Essential(observed.Raw))
}

func good(row hubv1.ClusterRow) bool {
	return row.Applied == metav1.ConditionTrue && row.Health == hubv1.HealthHealthy && row.Reason == ""
}

// shrunk reports whether fit has cut the row of a healthy copy, and the row's cluster has not reported since then. fit
// removes LastTransitionTime from such a row. All other rows have a LastTransitionTime.
func shrunk(row hubv1.ClusterRow) bool { return good(row) && row.LastTransitionTime == nil }

func total(rows []hubv1.ClusterRow) int {
	size := 0
	for _, row := range rows {
		size += jsonSize(row)
	}
	return size
}

func jsonSize(row hubv1.ClusterRow) int {
	data, err := json.Marshal(row)
	if err != nil {
		return fullRow // observed is not valid JSON, so the server will refuse the row
	}
	return len(data) + len(",")
}
