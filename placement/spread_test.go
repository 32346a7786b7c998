package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestSpread(t *testing.T) {
	away := func(c *Cluster) { c.Ready = false }
	regions := func(c hubv1.TopologySpreadConstraint) []hubv1.TopologySpreadConstraint {
		c.TopologyKey = hubv1.RegionLabel
		return []hubv1.TopologySpreadConstraint{c}
	}
	prefers := []hubv1.ClusterPreference{{Weight: 10, Expression: "'best' in labels"}}
	best := label("best", "")
	tests := map[string]struct {
		spread   hubv1.SpreadPolicy
		clusters []Cluster
		held     []string
		want     string
		drops    string
	}{
		"domains that are lacking come before the score": {
			spread:   hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](3), TopologySpreadConstraints: regions(hubv1.TopologySpreadConstraint{MinDomains: ptr.To[int32](2)}), Preferences: prefers},
			clusters: []Cluster{open("a1", region("a"), best), open("a2", region("a"), best), open("a3", region("a"), best), open("b1", region("b"))},
			want:     "a1 a2 b1",
		},
		"room is left for the domains that are lacking": {
			spread:   hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](2), TopologySpreadConstraints: regions(hubv1.TopologySpreadConstraint{MinDomains: ptr.To[int32](2)})},
			clusters: []Cluster{open("a1", region("a")), open("a2", region("a")), open("b1", region("b"))}, held: []string{"a1", "a2"},
			want: "a1 b1", drops: "a2",
		},
		"a wish for domains takes nothing away": {
			spread: hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](2), TopologySpreadConstraints: regions(hubv1.TopologySpreadConstraint{
				MinDomains: ptr.To[int32](2), WhenUnsatisfiable: hubv1.ScheduleAnyway,
			})},
			clusters: []Cluster{open("a1", region("a")), open("a2", region("a")), open("b1", region("b"))}, held: []string{"a1", "a2"},
			want: "a1 a2",
		},
		"a new domain does not make the skew take anything away": {
			spread:   hubv1.SpreadPolicy{TopologySpreadConstraints: regions(hubv1.TopologySpreadConstraint{MaxSkew: ptr.To[int32](1)})},
			clusters: []Cluster{open("a1", region("a")), open("a2", region("a")), open("a3", region("a")), open("b1", region("b"))}, held: []string{"a1", "a2", "a3"},
			want: "a1 a2 a3 b1",
		},
		"rebalancing evens the domains out": {
			spread:   hubv1.SpreadPolicy{TopologySpreadConstraints: regions(hubv1.TopologySpreadConstraint{MaxSkew: ptr.To[int32](1)}), Rebalance: hubv1.RebalanceAlways},
			clusters: []Cluster{open("a1", region("a")), open("a2", region("a")), open("a3", region("a")), open("b1", region("b"))}, held: []string{"a1", "a2", "a3"},
			want: "a1 a2 b1", drops: "a3",
		},
		"rebalancing moves nothing from a cluster that is away": {
			spread:   hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1), Preferences: prefers, Rebalance: hubv1.RebalanceAlways},
			clusters: []Cluster{open("a1", away), open("b1", best)}, held: []string{"a1"},
			want: "a1",
		},
		"fewer domains than before": {
			spread:   hubv1.SpreadPolicy{TopologySpreadConstraints: regions(hubv1.TopologySpreadConstraint{MaxDomains: ptr.To[int32](1)}), Preferences: prefers},
			clusters: []Cluster{open("a1", region("a")), open("b1", region("b"), best), open("c1", region("b"))}, held: []string{"a1", "b1"},
			want: "b1 c1", drops: "a1",
		},
		"a cluster in no domain gets nothing and keeps what it has": {
			spread:   hubv1.SpreadPolicy{TopologySpreadConstraints: regions(hubv1.TopologySpreadConstraint{ClustersPerDomain: ptr.To[int32](1)})},
			clusters: []Cluster{open("a1", region("a")), open("b1"), open("c1")}, held: []string{"c1"},
			want: "a1 c1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decide(Input{Placement: compiled(t, every(), &tc.spread), Clusters: tc.clusters, Held: set(tc.held)})
			var dropped []string
			for _, x := range d.Withdraw {
				dropped = append(dropped, x.Cluster)
			}
			if got := strings.Join(clustersOf(d), " "); got != tc.want || strings.Join(dropped, " ") != tc.drops {
				t.Errorf("on %s, dropped from %v; want %s, dropped from %s\n%+v", got, dropped, tc.want, tc.drops, d)
			}
		})
	}
}

func TestWhatIsRememberedIsForgottenWithTheRevision(t *testing.T) {
	in := Input{Placement: compiled(t, matching("env", "In", "prod"), nil), Clusters: []Cluster{open("a", label("env", "dev"))}}
	in.Clusters[0].Revision = "1"
	if d := Decide(in); len(d.Targets) != 0 {
		t.Fatalf("chosen: %v", d.Targets)
	}
	in.Clusters[0] = open("a", label("env", "prod"))
	in.Clusters[0].Revision = "2"
	if d := Decide(in); len(d.Targets) != 1 {
		t.Errorf("a new revision is taken for the old one: %v", d.Rejected)
	}
}

func TestScoresAreTracedByPart(t *testing.T) {
	p := compiled(t, every(), &hubv1.SpreadPolicy{
		Preferences: []hubv1.ClusterPreference{{Weight: 7, Expression: "name == 'a'"}, {Weight: 3, Expression: "labels['none'] == ''"}},
		Scores:      []hubv1.WeighedScore{{Name: hubv1.ScoreFewestObjects, Weight: 50}},
	})
	a, b := open("a"), open("b")
	a.Objects, b.Objects, a.Revision, b.Revision = 10, 5, "1", "1"
	want := [][]Part{
		{{Name: "preferences[0]", Score: 7}, {Name: "preferences[1]", Note: "expression fails: no such key: none"}, {Name: "FewestObjects"}},
		{{Name: "preferences[0]"}, {Name: "preferences[1]", Note: "expression fails: no such key: none"}, {Name: "FewestObjects", Score: 25}},
	}
	for range 2 { // the second time, the cached findings must be unchanged
		_, trace := Explain(Input{Placement: p, Clusters: []Cluster{a, b}})
		for i, c := range trace.Clusters {
			if diff := cmp.Diff(want[i], c.Parts); diff != "" {
				t.Errorf("parts of %s (-want +got):\n%s", c.Cluster, diff)
			}
		}
	}
}

func TestExplainTellsTheSteps(t *testing.T) {
	p := compiled(t, every(), &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](2), TopologySpreadConstraints: []hubv1.TopologySpreadConstraint{
		{TopologyKey: hubv1.RegionLabel, ClustersPerDomain: ptr.To[int32](1)},
	}})
	d, trace := Explain(Input{
		Placement: p, Clusters: []Cluster{open("a", region("x")), open("b", region("x")), open("c", region("y"))}, Held: set([]string{"a", "b"}),
	})
	var steps []string
	for _, s := range trace.Steps {
		steps = append(steps, fmt.Sprintf("%s %s: %s", s.Action, s.Cluster, s.Why))
	}
	want := []string{
		"Keep a: it holds the object, score 0, region x now has 1",
		"Choose c: score 0, region y now has 1",
		"Drop b: numberOfClusters is 2, and other clusters come first",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s\n%+v", diff, d)
	}
	if n := len(trace.Clusters[0].Filters); n != len(filters) {
		t.Errorf("%d of %d filters are told of", n, len(filters))
	}
}

func TestAnExpressionThatCostsTooMuchGivesNoAnswer(t *testing.T) {
	p := compiled(t, hubv1.ClusterSelection{Expression: "labels.all(a, labels.all(b, labels.all(c, a + b + c != '')))"}, nil)
	clusters := []Cluster{open("a"), open("b")}
	for i := range clusters {
		clusters[i].Labels = map[string]string{}
		for n := range 60 {
			clusters[i].Labels[fmt.Sprint("label", n)] = ""
		}
	}
	d := Decide(Input{Placement: p, Clusters: clusters, Held: set([]string{"a"})})
	if len(d.Targets) != 1 || len(d.Rejected) != 1 || d.Rejected[0].Reason != hubv1.ReasonExpressionFailed || !strings.Contains(d.Rejected[0].Message, "cost limit exceeded") {
		t.Errorf("decided %+v", d)
	}
}
