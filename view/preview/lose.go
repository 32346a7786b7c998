package preview

import (
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// maxThere is the maximum number of names that ThereAre lists.
const maxThere = 10

// ThereAre returns a list of existing names for an error text: "there are a, b and 3 more".
func ThereAre(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "there are none"
	}
	text := "there are " + strings.Join(names[:min(len(names), maxThere)], ", ")
	if more := len(names) - maxThere; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// FindCluster returns the index of the named cluster in f.Clusters. If no cluster has the name, the error lists names
// that exist.
func FindCluster(f *decide.Fleet, name string) (int, error) {
	i := slices.IndexFunc(f.Clusters, func(c *hubv1.MemberCluster) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range f.Clusters {
			names = append(names, c.Name)
		}
		return 0, fmt.Errorf("no MemberCluster has this name: %s", ThereAre(names))
	}
	return i, nil
}

const silent = "not answer for longer than any placement waits"

// LoseCluster marks the named cluster in the fleet as a cluster that does not answer. It returns a description of this
// change.
func LoseCluster(f *decide.Fleet, name string) (string, error) {
	i, err := FindCluster(f, name)
	if err != nil {
		return "", err
	}
	already := f.Clusters[i].IsAway()
	*f = f.Without(name)
	if already {
		return fmt.Sprintf("cluster %s, which is away already, does %s", name, silent), nil
	}
	return fmt.Sprintf("cluster %s does %s", name, silent), nil
}

// LoseRegion marks all clusters of the named region in the fleet as clusters that do not answer. It returns a
// description of this change.
func LoseRegion(f *decide.Fleet, region string) (string, error) {
	var names, regions []string
	for _, c := range f.Clusters {
		in := c.SelectableLabels()[hubv1.RegionLabel]
		if in == region {
			names = append(names, c.Name)
		}
		if in != "" {
			regions = append(regions, in)
		}
	}
	if region == "" || len(names) == 0 {
		return "", fmt.Errorf("no cluster is in this region: %s", ThereAre(regions))
	}
	*f = f.Without(names...)
	return fmt.Sprintf("region %s does %s: %s", region, silent, strings.Join(names, ", ")), nil
}
