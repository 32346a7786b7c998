package operators

import (
	"embed"
	"encoding/json"
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

// Situation is one object on three clusters, with an expert's verdict on the health of each copy and on the merged
// status.
type Situation struct {
	// Operator is the file of the situation; Name describes the reports of the clusters.
	Operator string `json:"-"`
	Name     string `json:"name"`
	// Why explains the expert's verdicts.
	Why string `json:"why"`
	// Object is the hub object, without a status.
	Object *unstructured.Unstructured `json:"object"`
	// Clusters has the reports of the clusters, by name.
	Clusters map[string]Report `json:"clusters"`
	// StatusAggregation are the rules of the placement.
	StatusAggregation hubv1.StatusAggregation `json:"statusAggregation,omitzero"`
	// Healthy is the status of the binding's condition Healthy.
	Healthy string `json:"healthy"`
	// Merged is the whole status of the hub object, without missing or additional fields. Its conditions are a map of
	// their types to their values.
	Merged map[string]any `json:"merged,omitempty"`
	// Generations are the types of the merged conditions that have an observedGeneration, in addition to the hub's own.
	Generations []string `json:"generations,omitempty"`
	// Lacks names the required fields without a merged value. If there are any, no status is written.
	Lacks string `json:"lacks,omitempty"`
	// NoSubresource is true if the definition has no status subresource, so that no status is merged.
	NoSubresource bool `json:"noSubresource,omitempty"`
}

// Report is the report of one cluster.
type Report struct {
	// Health is the expert's verdict. Reason is the row's reason if it is one of the hub.
	Health hubv1.Health   `json:"health"`
	Reason string         `json:"reason,omitempty"`
	Status map[string]any `json:"status,omitempty"`
	// Away is true if the cluster does not answer any more. The status is its last one.
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

// On returns the object with the status of a cluster.
func (s Situation) On(tb testing.TB, cluster string) *unstructured.Unstructured {
	tb.Helper()
	out := s.Object.DeepCopy()
	if status := s.Clusters[cluster].Status; status != nil {
		out.Object["status"] = status
	}
	text, err := json.Marshal(out.Object)
	if err != nil {
		tb.Fatal(err)
	}
	out = &unstructured.Unstructured{} // with whole numbers, as from an API server
	if err := out.UnmarshalJSON(text); err != nil {
		tb.Fatal(err)
	}
	return out
}
