package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
	"github.com/hanse-dev/hanse/placement"
)

func TestReadsAreWhatASpecLooksAt(t *testing.T) {
	spec := &hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Expression: "labels.tier == 'gold' && annotations['a/b'] == 'x'"},
		Spread: &hubv1.SpreadPolicy{
			TopologySpreadConstraints: []hubv1.TopologySpreadConstraint{{TopologyKey: "rack"}},
			Preferences:               []hubv1.ClusterPreference{{Expression: "nodes['ready'] > 3"}, {Expression: "this is none"}},
			Scores:                    []hubv1.WeighedScore{{Name: hubv1.ScoreAvailableCapacity}, {Name: hubv1.ScoreFewestObjects}},
		},
	}
	want := []cel.Reading{
		{Variable: "labels", Key: "tier"}, {Variable: "annotations", Key: "a/b"}, {Variable: "labels", Key: "rack"}, {Variable: "nodes", Key: "ready"},
		{Variable: "allocatable"}, {Variable: "capacity"},
	}
	if diff := cmp.Diff(want, placement.Reads(spec)); diff != "" {
		t.Error(diff)
	}
}
