package view

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
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

func TestAnExplanationIsPrintedAsInTestdata(t *testing.T) {
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

func TestTheConditionOfTheHubDecidesWhetherItRunsWorkloads(t *testing.T) {
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

func TestACapacityThatCountsLessIsExplained(t *testing.T) {
	list := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	cut := func(name, counts, reported string) *hubv1.MemberCluster {
		c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Capacity, c.Status.CapacityGrowth = list(counts), &hubv1.CapacityGrowth{Reported: list(reported)}
		return c
	}
	limited, honest := cut("limited", "60", "70"), &hubv1.MemberCluster{}
	limited.Spec.Capacity, honest.Status.CapacityGrowth = list("60"), &hubv1.CapacityGrowth{}
	want := []string{
		"cluster evil: cpu 20 of the reported 100e18 counts in decisions: the amount grows at most twofold an hour, unless spec.capacity of the MemberCluster allows more",
		"cluster limited: cpu 60 of the reported 70 counts in decisions: spec.capacity of the MemberCluster allows no more",
	}
	if diff := cmp.Diff(want, cutCapacities([]*hubv1.MemberCluster{{}, honest, cut("evil", "20", "1e20"), limited})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	many := cutCapacities([]*hubv1.MemberCluster{limited, limited, limited, limited, limited, limited, limited})
	if len(many) != maxCutCapacities+1 || !strings.Contains(many[maxCutCapacities], "see status.capacityGrowth") {
		t.Errorf("got %q", many)
	}
}
