package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Write writes the rollout as text.
func (r Rollout) Write(w io.Writer, now time.Time) {
	state := r.Rollout
	fmt.Fprintln(w, printable(strings.Join([]string{r.subject(), r.Placement, r.revisions()}, gap)))
	wave := string(state.Phase) + " for " + age(state.Since, now)
	if state.Wave != "" {
		wave = state.Wave + ", " + wave
	}
	if r.Asked != "" {
		line(w, "Object", r.Asked+" changes with the bundle")
	}
	line(w, "Wave", wave)
	var rows [][]string
	for _, c := range r.Clusters {
		health := string(c.Health)
		if c.Away && c.Health != hubv1.HealthUnknown {
			health += "?" // a ? marks the last known health
		}
		rows = append(rows, []string{c.Cluster, c.Wave, revisionCell(c.Revision), revisionCell(c.Holds), health, since(c.PassingSince, now), why(c.Reason, c.Message)})
	}
	table(w, []string{"CLUSTER", "WAVE", "REVISION", "HOLDS", "HEALTH", "PASSING", "WHY"}, rows)
	var waves []string
	for _, wave := range r.Waves {
		waves = append(waves, fmt.Sprintf("%s %d/%d", wave.Name, wave.Updated, wave.Clusters))
	}
	line(w, "Waves", strings.Join(waves, gap))
	line(w, "Progress", r.Progress)
}

// revisions returns the old and the new revision as text: "revision 6 -> 7".
func (r Rollout) revisions() string {
	state := r.Rollout
	text := fmt.Sprintf("revision %d", state.Revision)
	if state.Passed != 0 && state.Passed != state.Revision {
		text = fmt.Sprintf("revision %d -> %d", state.Passed, state.Revision)
	}
	if state.Newest != state.Revision {
		text += fmt.Sprintf(", newest %d", state.Newest)
	}
	return text
}

// revisionCell returns a revision as text. It returns an empty text for 0, which means that the revision is not known.
func revisionCell(revision int64) string {
	if revision == 0 {
		return ""
	}
	return strconv.FormatInt(revision, 10)
}
