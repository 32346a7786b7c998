package command

import (
	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view/preview"
)

// unmatched returns notes about names and labels in the policies of files that no cluster has. some is true if the user
// sees only some of the clusters.
func unmatched(files *fleetFiles, clusters []*hubv1.MemberCluster, some bool) []string {
	none := "no cluster"
	if some {
		none = "no cluster that you may see"
	}
	var notes []string
	add := func(policy string, texts []string) {
		for _, text := range texts {
			notes = append(notes, policy+": "+text)
		}
	}
	for _, p := range files.placements {
		add(decide.OwnerOf(decide.ReferenceTo(p)).String(), preview.UnmatchedPlacement(p, clusters, none))
	}
	for _, p := range files.overrides {
		add(overrides.RefOf(p).String(), preview.UnmatchedOverrides(p, clusters, none))
	}
	return notes
}
