package view

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the expected texts under testdata")

var now = time.Date(2026, 3, 1, 12, 4, 19, 0, time.UTC)

var web = hubv1.ObjectIdentity{Group: "monitoring.coreos.com", Kind: "Prometheus", Namespace: "monitoring", Name: "web"}

// fixture has the objects of the hub and the members.
type fixture struct {
	Object   map[string]any         `json:"object"`
	Binding  *hubv1.ResourceBinding `json:"binding"`
	Clusters []hubv1.MemberCluster  `json:"clusters"`
	Silence  *Silence               `json:"silence"`
	Digests  map[string]string      `json:"digests"`
	// Placements are used for an object that has no binding.
	Placements        []hubv1.Placement        `json:"placements"`
	ClusterPlacements []hubv1.ClusterPlacement `json:"clusterPlacements"`
}

func read(t *testing.T, path string) fixture {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}

func (f fixture) status() Status {
	var object *unstructured.Unstructured
	if f.Object != nil {
		object = &unstructured.Unstructured{Object: integers(f.Object).(map[string]any)}
	}
	if f.Binding != nil {
		return Of(StatusInput{ID: web, Object: object, Binding: f.Binding, Members: f.Clusters, Silence: f.Silence, Digests: f.Digests, Now: now})
	}
	s := Of(StatusInput{ID: web, Object: object, Members: f.Clusters, Silence: f.Silence, Now: now})
	var around Surroundings
	for i := range f.Placements {
		around.Placements = append(around.Placements, &f.Placements[i])
	}
	for i := range f.ClusterPlacements {
		around.Placements = append(around.Placements, &f.ClusterPlacements[i])
	}
	s.NotFederated = WhyNot(web, object, around)
	return s
}

// integers returns a value with integers, as a client reads them, because YAML gives floats.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestStatusIsPrintedAsInTestdata(t *testing.T) {
	cases, err := filepath.Glob("testdata/status/*.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			s := read(t, path).status()
			var text bytes.Buffer
			s.Write(&text, now)
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", text.String())
		})
	}
}

func TestWideStatusIsPrintedAsInTestdata(t *testing.T) {
	for _, name := range []string{"one-cluster-is-away", "a-link-was-just-lost"} {
		var text bytes.Buffer
		read(t, "testdata/status/"+name+".yaml").status().WriteWide(&text, now)
		golden(t, "testdata/status/"+name+".wide.txt", text.String())
	}
}

func TestStatusAsJSONHasStableFields(t *testing.T) {
	s := read(t, "testdata/status/one-cluster-is-away.yaml").status()
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/status/one-cluster-is-away.json", string(text)+"\n")
}

func TestClustersArePrintedAsInTestdata(t *testing.T) {
	f := read(t, "testdata/clusters.yaml")
	var text bytes.Buffer
	Clusters(f.Clusters, map[string]int{"cn-sha-1": 12}, nil, now).Write(&text, now)
	text.WriteString("\n")
	Clusters(f.Clusters, nil, &Silence{}, now).Write(&text, now)
	golden(t, "testdata/clusters.txt", text.String())

	asJSON, err := json.MarshalIndent(Clusters(f.Clusters, map[string]int{"cn-sha-1": 12}, nil, now), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/clusters.json", string(asJSON)+"\n")
}

func TestProblemsArePrintedAsInTestdata(t *testing.T) {
	var f struct {
		Bindings []hubv1.ResourceBinding `json:"bindings"`
		Clusters []hubv1.MemberCluster   `json:"clusters"`
		Policy   []metav1.Condition      `json:"policy"`
	}
	data, err := os.ReadFile("testdata/problems.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		t.Fatal(err)
	}
	g := NewGatherer(f.Clusters)
	g.AddPolicy("Placement shop/web", f.Policy)
	g.AddBundle(&hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Status: hubv1.BundleStatus{Conditions: f.Policy}})
	g.AddPolicy("Placement shop/fine", []metav1.Condition{{Type: hubv1.ConditionAccepted, Status: metav1.ConditionTrue}})
	var text bytes.Buffer
	g.Worst(10).Write(&text, now)
	for i := range f.Bindings {
		g.Add(&f.Bindings[i])
	}
	text.WriteString("\n")
	g.Worst(10).Write(&text, now)
	text.WriteString("\n")
	g.Worst(1).Write(&text, now)
	golden(t, "testdata/problems.txt", text.String())

	asJSON, err := json.MarshalIndent(g.Worst(1), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/problems.json", string(asJSON)+"\n")
}

func TestTextFromMembersCannotDisturbATerminal(t *testing.T) {
	var text bytes.Buffer
	table(&text, []string{"NAME", "WHY"}, [][]string{{"a", "one\ntwo\x1b[31m red"}, {"länger", ""}})
	want := "NAME     WHY\na        one two [31m red\nlänger   -\n"
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
