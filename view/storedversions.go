package view

import (
	"maps"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// StoredVersions returns the versions at which clusters store the objects of a CustomResourceDefinition, such as
// "gears.example.com has v1 on eu-1, us-1, v2 on eu-1". It returns an empty text for an object of another kind, and if
// no cluster has reported versions.
func StoredVersions(b hubv1.BindingObject) string {
	stored, err := health.StoredVersions(b.BindingStatus().Clusters)
	if err != nil {
		return ""
	}
	clusters := map[string][]string{} // clusters by version
	for _, cluster := range slices.Sorted(maps.Keys(stored)) {
		for _, version := range stored[cluster] {
			clusters[version] = append(clusters[version], cluster)
		}
	}
	if len(clusters) == 0 {
		return ""
	}
	var versions []string
	for _, version := range slices.Sorted(maps.Keys(clusters)) {
		versions = append(versions, version+" on "+list(clusters[version]))
	}
	return b.BindingSpec().ObjectRef.Name + " has " + strings.Join(versions, ", ")
}
