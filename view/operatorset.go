package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// SetOnCluster is the revision of a bundle on one cluster.
type SetOnCluster struct {
	// Revision is the revision of the bundle that the cluster shall hold.
	Revision int64            `json:"revision"`
	Phase    WaveClusterState `json:"phase"`
	// Missing are the objects that the cluster has not applied yet at this revision. Leaving are the objects that shall
	// leave the cluster and are still there.
	Missing []string `json:"missing,omitempty"`
	Leaving []string `json:"leaving,omitempty"`
}

// SetChange is what a cluster gets and loses that goes from the last revision that passed to the newest one.
type SetChange struct {
	From    int64    `json:"from"`
	To      int64    `json:"to"`
	Added   []string `json:"added,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// setOnCluster returns the revision of a bundle on one cluster. It returns nil if the cluster has none.
func setOnCluster(in SetInput, cluster string, away bool) *SetOnCluster {
	entry := in.Spec.Cluster(cluster)
	if entry == nil {
		return nil
	}
	report := decide.ReportOfSet(in.Spec, in.Lists, cluster, in.Bindings)
	out := &SetOnCluster{Revision: entry.Revision, Phase: WaveClusterChanging}
	for _, m := range report.Missing {
		out.Missing = append(out.Missing, m.Object.String())
	}
	for _, id := range report.Leaving {
		out.Leaving = append(out.Leaving, id.String())
	}
	switch {
	case away:
		out.Phase = WaveClusterUnknown
	case report.Health == hubv1.HealthDegraded:
		out.Phase = WaveClusterDegraded
	case report.PassingSince.IsZero():
	case entry.Revision != in.Spec.Rollout.Revision:
		out.Phase = WaveClusterWaiting
	default:
		out.Phase = WaveClusterPassing
	}
	return out
}

// changeOfSet returns the change from the last revision that passed to the newest one. It returns nil if they are the
// same, or if a list cannot be read.
func changeOfSet(in SetInput) *SetChange {
	r := in.Spec.Rollout
	before, newest := in.Spec.Revision(r.Passed), in.Spec.Revision(r.Newest)
	if r.Passed == r.Newest && r.Revision != r.Newest {
		before = in.Spec.Revision(r.Revision) // after an undo
	}
	if before == nil || newest == nil || before.List == newest.List {
		return nil
	}
	from, read := in.Lists[before.List]
	to, readTo := in.Lists[newest.List]
	if !read || !readTo {
		return nil
	}
	change, names := decide.ChangeOfSet(from, to), func(ids []hubv1.ObjectIdentity) (out []string) {
		for _, id := range ids {
			out = append(out, id.String())
		}
		return out
	}
	return &SetChange{From: before.Number, To: newest.Number, Added: names(change.Added), Changed: names(change.Changed), Removed: names(change.Removed)}
}

// write writes a line for each part of the change.
func (c *SetChange) write(w io.Writer) {
	for _, part := range []struct {
		name    string
		objects []string
	}{{"Adds", c.Added}, {"Changes", c.Changed}, {"Removes", c.Removed}} {
		if len(part.objects) > 0 {
			line(w, part.name, fmt.Sprintf("%s: %s (revision %d -> %d)", counted(len(part.objects), "object"), list(part.objects), c.From, c.To))
		}
	}
}

// cells returns the columns REVISION, PHASE and MISSING of a cluster.
func (s *SetOnCluster) cells() []string {
	if s == nil {
		return []string{"", "", ""}
	}
	var parts []string
	if len(s.Missing) > 0 {
		parts = append(parts, list(s.Missing))
	}
	if len(s.Leaving) > 0 {
		parts = append(parts, "leaving: "+list(s.Leaving))
	}
	return []string{strconv.FormatInt(s.Revision, 10), string(s.Phase), strings.Join(parts, "; ")}
}
