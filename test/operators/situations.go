package operators

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

//go:embed situations/*.yaml
var situationFiles embed.FS

// Situation is one object with its statuses on three clusters. It has an expert's verdict on the health of each copy
// and on the merged status.
type Situation struct {
	// Operator is the name of the situation's file. Name describes the statuses on the clusters.
	Operator string `json:"-"`
	Name     string `json:"name"`
	// Why explains the expert's verdicts.
	Why string `json:"why"`
	// Object is the hub object, without a status.
	Object *unstructured.Unstructured `json:"object"`
	// Clusters has the report of each cluster, by the name of the cluster.
	Clusters map[string]Report `json:"clusters"`
	// StatusAggregation has the rules of the placement for merging statuses.
	StatusAggregation hubv1.StatusAggregation `json:"statusAggregation,omitzero"`
	// Healthy is the status of the condition Healthy of the binding.
	Healthy string `json:"healthy"`
	// Merged is the complete status of the hub object. In it, the conditions are a map from their types to their
	// statuses.
	Merged map[string]any `json:"merged,omitempty"`
	// Generations has the types of those merged conditions that have an observedGeneration, except for the hub's own
	// conditions.
	Generations []string `json:"generations,omitempty"`
	// Lacks names the required fields for which the merge has no value. If it is not empty, the hub writes no status.
	Lacks string `json:"lacks,omitempty"`
	// NoSubresource is true if the definition has no status subresource, so that the hub merges no status.
	NoSubresource bool `json:"noSubresource,omitempty"`
}

// Report is the status on one cluster, with an expert's verdict.
type Report struct {
	// Health is the verdict of the expert. Reason is the reason in the row, if it is a reason of the hub and not of the
	// object.
	Health hubv1.Health   `json:"health"`
	Reason string         `json:"reason,omitempty"`
	Status map[string]any `json:"status,omitempty"`
	// Away is true if the cluster no longer answers. Its status is then the last known one.
	Away bool `json:"away,omitempty"`
}

// Situations returns all situations, sorted by operator.
func Situations(tb testing.TB) []Situation {
	tb.Helper()
	entries, err := situationFiles.ReadDir("situations")
	if err != nil {
		tb.Fatal(err)
	}
	var out []Situation
	for _, entry := range entries {
		situations, err := readSituations(path.Join("situations", entry.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, situations...)
	}
	return out
}

func readSituations(file string) (situations []Situation, err error) {
	text, err := situationFiles.ReadFile(file)
	if err != nil {
		return nil, err
	}
	err = documents(text, func(document []byte) error {
		s := Situation{Operator: strings.TrimSuffix(path.Base(file), ".yaml")}
		if err := yaml.UnmarshalStrict(document, &s); err != nil {
			return err
		}
		if s.Name == "" || s.Why == "" || s.Object == nil || len(s.Clusters) == 0 || s.Healthy == "" || (s.Merged == nil) != (s.NoSubresource || s.Lacks != "") {
			return fmt.Errorf("situation %q lacks name, why, object, clusters, healthy or what is merged", s.Name)
		}
		situations = append(situations, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return situations, nil
}

// Names returns the names of the clusters, sorted.
func (s Situation) Names() []string { return slices.Sorted(maps.Keys(s.Clusters)) }

// On returns the object with the status that it has on a cluster.
func (s Situation) On(tb testing.TB, cluster string) *unstructured.Unstructured {
	tb.Helper()
	out := s.Object.DeepCopy()
	if status := s.Clusters[cluster].Status; status != nil {
		out.Object["status"] = status
	}
	return decoded(tb, out)
}
