package health

import (
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// StoredVersions returns, for each cluster, status.storedVersions of a CustomResourceDefinition. It reads the rows of
// the definition's binding. A cluster is missing in the result if its row has no status.
func StoredVersions(rows []hubv1.ClusterRow) (map[string][]string, error) {
	stored := map[string][]string{}
	for _, row := range rows {
		if row.Observed == nil {
			continue
		}
		projection, err := ReadProjection(row.Observed.Raw)
		if err != nil {
			return nil, fmt.Errorf("reading the row of cluster %s: %w", row.Name, err)
		}
		versions, _ := projection.Named["/storedVersions"].([]any)
		for _, v := range versions {
			if version, ok := v.(string); ok {
				stored[row.Name] = append(stored[row.Name], version)
			}
		}
	}
	return stored, nil
}
