package decide

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func settled(t *testing.T, f Fleet) *Settlement {
	t.Helper()
	f.Now = now
	s, err := f.Settle(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAFleetSettles(t *testing.T) {
	t.Parallel()
	one := int32(1)
	tests := map[string]struct {
		placements []hubv1.PlacementObject
		clusters   []*hubv1.MemberCluster
		binding    hubv1.BindingObject
		want       string
		reason     string
	}{
		"an object without a binding gets one": {
			only(policy("web", named("eu"))), three(), nil, "eu", hubv1.ReasonScheduled,
		},
		"what no placement selects gets none": {
			nil, three(), nil, "no binding", "",
		},
		"a cluster that answers withdraws what it is told to, and is forgotten": {
			only(policy("web", named("sg"))), three(), bound(present("eu")), "sg", hubv1.ReasonScheduled,
		},
		"one that does not answer withdraws nothing": {
			only(policy("web", named("sg"))), []*hubv1.MemberCluster{cluster("eu", unreachable), cluster("sg")}, bound(present("eu")), "-eu sg", hubv1.ReasonScheduled,
		},
		"what holds the object keeps it": {
			only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: &one}))), three(), bound(present("us")), "us", hubv1.ReasonScheduled,
		},
		"a placement that is gone leaves everything where it is": {
			nil, three(), bound(present("eu")), "eu", hubv1.ReasonPlacementGone,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settled(t, Fleet{Clusters: tc.clusters, Placements: tc.placements, Objects: []FleetObject{{Object: template("a"), Binding: tc.binding}}})
			var spec *hubv1.BindingSpec
			if b := s.Outcomes[0].Binding; b != nil {
				spec = b.BindingSpec()
			}
			if diff := cmp.Diff(tc.want, shares(spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := s.Outcomes[0]; got.Scheduled.Reason != tc.reason || got.Restless {
				t.Errorf("it says %q, restless %v", got.Scheduled.Reason, got.Restless)
			}
		})
	}
}

func TestObjectsOfAFleetAreCountedWhereTheyGo(t *testing.T) {
	t.Parallel()
	one := int32(1)
	f := Fleet{
		Clusters: three(), Elsewhere: map[string]int{"eu": 2, "us": 1},
		Placements: only(policy("web", spreading(hubv1.SpreadPolicy{
			NumberOfClusters: &one, Scores: []hubv1.WeighedScore{{Name: hubv1.ScoreFewestObjects, Weight: 100}},
		}))),
		Objects: many(6),
	}
	sums := map[string]int{"eu": 2, "us": 1}
	s := settled(t, f)
	for _, o := range s.Outcomes {
		sums[o.Binding.BindingSpec().Clusters[0].Name]++
	}
	if diff := cmp.Diff(map[string]int{"eu": 3, "sg": 3, "us": 3}, sums); diff != "" {
		t.Errorf("objects by cluster (-want +got):\n%s", diff)
	}
}

func TestAFleetWithoutAClusterIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	f := Fleet{Clusters: three(), Now: now}
	without := f.Without("eu")
	if !without.Clusters[0].IsAway() || without.Clusters[1].IsAway() || slices.ContainsFunc(f.Clusters, (*hubv1.MemberCluster).IsAway) {
		t.Errorf("away are %v of it, and %v of the fleet itself", without.Clusters, f.Clusters)
	}
}

// many returns n objects. The order of their names is the order in the list.
func many(n int) []FleetObject {
	out := make([]FleetObject, n)
	for i := range out {
		u := template("a")
		u.SetName(fmt.Sprintf("web-%05d", i))
		out[i].Object = u
	}
	return out
}

// BenchmarkSettle decides on all objects of a fleet of 30 clusters in 3 regions, and then decides again without one
// cluster.
func BenchmarkSettle(b *testing.B) {
	three := int32(3)
	f := Fleet{Objects: many(10_000), Now: now, Placements: only(policy("web", spreading(hubv1.SpreadPolicy{
		NumberOfClusters:          &three,
		TopologySpreadConstraints: []hubv1.TopologySpreadConstraint{{TopologyKey: hubv1.RegionLabel, MinDomains: &three}},
	})))}
	for i := range 30 {
		f.Clusters = append(f.Clusters, cluster(fmt.Sprintf("c-%02d", i), func(c *hubv1.MemberCluster) {
			c.Labels[hubv1.RegionLabel] = fmt.Sprintf("r-%d", i%3)
		}))
	}
	for b.Loop() {
		s, err := f.Settle(b.Context(), func(int, int) {})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.Without("c-00").From(s).Settle(b.Context(), func(int, int) {}); err != nil {
			b.Fatal(err)
		}
	}
}
