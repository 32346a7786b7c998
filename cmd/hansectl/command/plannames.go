package command

import (
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// unknownNames returns notes about clusters that placements name in spec.clusters.names but that do not exist. some is
// true if the user sees only some of the clusters.
func unknownNames(placements []hubv1.PlacementObject, clusters []*hubv1.MemberCluster, some bool) []string {
	var known []string
	for _, c := range clusters {
		known = append(known, c.Name)
	}
	which := "no cluster"
	if some {
		which = "no cluster that you may see"
	}
	var notes []string
	for _, p := range placements {
		var unknown, meant []string
		for _, name := range p.PlacementSpec().Clusters.Names {
			if !slices.Contains(known, name) {
				unknown = append(unknown, name)
				meant = append(meant, similar(name, known)...)
			}
		}
		if len(unknown) == 0 {
			continue
		}
		if more := len(unknown) - maxSimilar; more > 0 {
			unknown = append(unknown[:maxSimilar], fmt.Sprintf("%d more", more))
		}
		slices.Sort(meant)
		meant = slices.Compact(meant)
		notes = append(notes, fmt.Sprintf("%s: %s is named %s%s", decide.OwnerOf(decide.ReferenceTo(p)), which, strings.Join(unknown, " or "), didYouMean(meant[:min(len(meant), maxSimilar)])))
	}
	return notes
}
