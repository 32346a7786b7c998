package view

import (
	"fmt"
	"io"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/wire"
)

// Unclaimed is the output of hansectl prune --dry-run.
type Unclaimed struct {
	Copies []UnclaimedCopy `json:"copies"`
	// Notes name the kinds whose unclaimed copies could not be listed, with the reason. An unclaimed copy is one for which
	// the hub has no binding.
	Notes []ClusterNote `json:"notes,omitempty"`
}

// UnclaimedCopy is a copy for which the hub has no binding.
type UnclaimedCopy struct {
	Cluster string `json:"cluster"`
	wire.UnclaimedCopy
}

// ClusterNote is a note about one cluster.
type ClusterNote struct {
	Cluster string `json:"cluster"`
	Note    string `json:"note"`
}

// Write writes a table with one row for each copy.
func (u Unclaimed) Write(w io.Writer, now time.Time) {
	if len(u.Copies) == 0 {
		fmt.Fprintln(w, "No copy is unclaimed")
		return
	}
	var rows [][]string
	for _, c := range u.Copies {
		note := ""
		if c.Newer {
			note = "newer than the hub, which was restored from a backup"
		}
		rows = append(rows, []string{c.Cluster, objectName(c.Object), age(c.Created, now), string(c.Removal), note})
	}
	table(w, []string{"CLUSTER", "OBJECT", "AGE", "REMOVAL", "NOTE"}, rows)
}

func objectName(o wire.Object) string {
	return hubv1.ObjectIdentity{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}

// Pruned is the output of the command prune.
type Pruned struct {
	Copies []PrunedCopy `json:"copies"`
}

// PrunedCopy is the result of the command prune for one copy.
type PrunedCopy struct {
	Cluster string `json:"cluster"`
	wire.PrunedCopy
}

// Write writes a table with one row for each copy.
func (p Pruned) Write(w io.Writer, _ time.Time) {
	var rows [][]string
	for _, c := range p.Copies {
		rows = append(rows, []string{c.Cluster, objectName(c.Object), string(c.Outcome), c.Message})
	}
	table(w, []string{"CLUSTER", "OBJECT", "OUTCOME", "WHY"}, rows)
}

// Left returns the number of copies that were not removed. held is the number of these that the hub keeps, because they
// are newer than its own restored state.
func (p Pruned) Left() (left, held int) {
	for _, c := range p.Copies {
		switch c.Outcome {
		case wire.PruneHeld:
			held++
			left++
		case wire.PruneFailed:
			left++
		}
	}
	return left, held
}
