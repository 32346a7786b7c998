package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// RolloutHistory is the output of `rollout history`: the stored revisions of an object.
type RolloutHistory struct {
	Object    Object `json:"object"`
	Placement string `json:"placement,omitempty"`
	// Revision is the number of the revision that the clusters get. Newest is the latest revision of the hub object. They
	// differ after a rollback or an undo.
	Revision  int64             `json:"revision"`
	Newest    int64             `json:"newest"`
	Revisions []HistoryRevision `json:"revisions"`
}

// HistoryRevision is one revision of an object.
type HistoryRevision struct {
	Number int64 `json:"number"`
	// Generation is the generation of the hub object from which the revision was made.
	Generation int64       `json:"generation,omitempty"`
	FirstSeen  metav1.Time `json:"firstSeen"`
	// Passed is true if the revision was healthy on all clusters.
	Passed bool `json:"passed"`
	// Failed is true if the hub has recorded that this revision failed. The hub records only the last failures.
	Failed bool `json:"failed,omitempty"`
	// SupersededBy is the revision whose rollout began before this revision had failed or had become healthy on all
	// clusters.
	SupersededBy int64 `json:"supersededBy,omitempty"`
	// TemplateOf is the earlier revision that was made from the same state of the hub object. It is 0 unless only policies
	// changed after a rollback or an undo.
	TemplateOf int64 `json:"templateOf,omitempty"`
	// Clusters are the clusters that hold the revision.
	Clusters []string `json:"clusters,omitempty"`
}

// RolloutHistoryOf shows the revisions of an object. The binding must have a rollout.
func RolloutHistoryOf(id hubv1.ObjectIdentity, binding hubv1.BindingObject) RolloutHistory {
	spec := binding.BindingSpec()
	h := RolloutHistory{
		Object: Object{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, State: Present}, Placement: followedBy(spec),
		Revision: spec.Rollout.Revision, Newest: spec.Rollout.Newest, Revisions: []HistoryRevision{},
	}
	for _, r := range spec.Revisions {
		one := HistoryRevision{Number: r.Number, Generation: r.Generation, FirstSeen: r.Time, Passed: r.Passed, SupersededBy: r.SupersededBy, TemplateOf: r.TemplateOf}
		one.Failed = r.Number == spec.Rollout.Failed || r.Number == spec.Rollout.RolledBack
		for _, row := range binding.BindingStatus().Clusters {
			if row.Revision == r.Number {
				one.Clusters = append(one.Clusters, row.Name)
			}
		}
		slices.Sort(one.Clusters)
		h.Revisions = append(h.Revisions, one)
	}
	slices.SortFunc(h.Revisions, func(a, b HistoryRevision) int { return int(a.Number - b.Number) })
	return h
}

// Write writes the revisions, the oldest one first.
func (h RolloutHistory) Write(w io.Writer, _ time.Time) {
	id := hubv1.ObjectIdentity{Group: h.Object.Group, Kind: h.Object.Kind, Namespace: h.Object.Namespace, Name: h.Object.Name}
	revisions := fmt.Sprintf("clusters get revision %d", h.Revision)
	if h.Revision != h.Newest {
		revisions += fmt.Sprintf(", the hub object has revision %d", h.Newest)
	}
	fmt.Fprintln(w, printable(id.String()+gap+h.Placement+gap+revisions))
	var rows [][]string
	for _, r := range h.Revisions {
		rows = append(rows, []string{revisionCell(r.Number), revisionCell(r.Generation), r.FirstSeen.UTC().Format(time.RFC3339), yes(r.Passed), list(r.Clusters), r.Note()})
	}
	table(w, []string{"REVISION", "GENERATION", "FIRST SEEN", "PASSED", "WHERE", "NOTE"}, rows)
}

// Note describes how the rollout of the revision ended, and which revision has the same template, which is the state of
// the hub object.
func (r HistoryRevision) Note() string {
	var notes []string
	if r.Failed {
		notes = append(notes, "failed")
	}
	if r.SupersededBy != 0 {
		notes = append(notes, fmt.Sprintf("superseded by revision %d", r.SupersededBy))
	}
	if r.TemplateOf != 0 {
		notes = append(notes, fmt.Sprintf("template of revision %d", r.TemplateOf))
	}
	return strings.Join(notes, ", ")
}
