package view

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
)

// decision has the objects of the hub, and the arguments of the command.
type decision struct {
	fixture `json:",inline"`
	Cluster string         `json:"cluster"`
	Counts  map[string]int `json:"counts"`
}

func (d decision) explain() Explanation {
	object := &unstructured.Unstructured{Object: integers(d.Object).(map[string]any)}
	in := decide.Input{
		Object:  decide.Object{ID: hubv1.IdentityOf(object), Template: object, HubRuns: Refused(d.Binding, object)},
		Binding: d.Binding, Now: now, Objects: d.Counts,
	}
	for i := range d.Placements {
		in.Facts.Placements = append(in.Facts.Placements, &d.Placements[i])
	}
	for i := range d.ClusterPlacements {
		in.Facts.Placements = append(in.Facts.Placements, &d.ClusterPlacements[i])
	}
	for i := range d.Clusters {
		in.Facts.Clusters = append(in.Facts.Clusters, &d.Clusters[i])
	}
	return Explain(in, decide.Replay(in), d.Cluster)
}

func readDecision(t *testing.T, path string) decision {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d decision
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return d
}

func TestAnExplanationReads(t *testing.T) {
	cases, err := filepath.Glob("testdata/explain/*.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			var text bytes.Buffer
			readDecision(t, path).explain().Write(&text, now)
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", text.String())
		})
	}
}

func TestAnExplanationAsJSONHasStableFields(t *testing.T) {
	text, err := json.MarshalIndent(readDecision(t, "testdata/explain/spread-over-regions.yaml").explain(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/explain/spread-over-regions.json", string(text)+"\n")
}

func TestTheHubsWordDecidesWhetherItRunsWorkloads(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	binding := &hubv1.ResourceBinding{}
	if Refused(binding, object) {
		t.Error("a Deployment is refused although the hub has not said so")
	}
	binding.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: hubv1.ReasonHubWouldRun}}
	if !Refused(binding, object) {
		t.Error("a Deployment is not refused although the hub has said so")
	}
}
