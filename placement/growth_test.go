package placement

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// fleet returns n clusters of three providers. The clusters are in ten regions, and each region has three zones.
func fleet(n int) []Cluster {
	out := make([]Cluster, n)
	for i := range out {
		out[i] = open(fmt.Sprintf("c%04d", (i*7919)%n), func(c *Cluster) {
			r := i % 10
			c.Revision = "1"
			c.Labels = map[string]string{
				hubv1.RegionLabel: fmt.Sprint("region-", r), hubv1.ZoneLabel: fmt.Sprintf("region-%d%c", r, 'a'+(i/10)%3),
				"provider": fmt.Sprint("provider-", (i/30)%3), "tier": fmt.Sprint(i % 4),
			}
			c.Allocatable = corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(int64(i%97)+1, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(i%89+1)<<30, resource.BinarySI),
			}
		})
	}
	return out
}

// spreading returns a placement that spreads over half of n clusters. It has three constraints, two preferences and a
// score.
func spreading(tb testing.TB, n int) *Compiled {
	tb.Helper()
	return compiled(tb, every(), &hubv1.SpreadPolicy{
		NumberOfClusters: ptr.To(int32(n / 2)),
		TopologySpreadConstraints: []hubv1.TopologySpreadConstraint{
			{TopologyKey: hubv1.RegionLabel, MinDomains: ptr.To[int32](3), MaxSkew: ptr.To[int32](2)},
			{TopologyKey: hubv1.ZoneLabel, MaxSkew: ptr.To[int32](2)},
			{TopologyKey: "provider", ClustersPerDomain: ptr.To(int32(n))},
		},
		Preferences: []hubv1.ClusterPreference{
			{Weight: 50, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "1"}}},
			{Weight: -20, Expression: "labels['tier'] == '3'"},
		},
		Scores: []hubv1.WeighedScore{{Name: hubv1.ScoreAvailableCapacity, Weight: 30}},
	})
}

// The test counts the allocations and comparisons of a decision for 10, 100 and 1000 clusters. From one number to the
// next, both may grow at most 10 % more than n log n grows.
func TestADecisionGrowsNoFasterThanTheLogarithmSays(t *testing.T) {
	work := map[string][]float64{}
	sizes := []int{10, 100, 1000}
	for _, n := range sizes {
		in := Input{Placement: spreading(t, n), Object: hubv1.HubObject{GVK: widget}, Clusters: fleet(n)}
		d, compared := decide(in, nil) // this call fills the cache with the findings for each cluster
		if len(d.Targets) != n/2 {
			t.Fatalf("%d of %d clusters chosen, want %d: %v", len(d.Targets), n, n/2, d.Shortfalls)
		}
		work["comparisons"] = append(work["comparisons"], float64(compared))
		work["allocations"] = append(work["allocations"], testing.AllocsPerRun(5, func() { Decide(in) }))
	}
	for what, counts := range work {
		for i := range sizes[1:] {
			a, b := float64(sizes[i]), float64(sizes[i+1])
			most := 1.1 * b * math.Log2(b) / (a * math.Log2(a))
			if grew := counts[i+1] / counts[i]; grew > most {
				t.Errorf("from %v to %v clusters %s grew from %v to %v, %.1f times; n log n grows %.1f times", a, b, what, counts[i], counts[i+1], grew, most/1.1)
			}
		}
		t.Log(what, counts)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			in := Input{Placement: spreading(b, n), Object: hubv1.HubObject{GVK: widget}, Clusters: fleet(n)}
			b.ReportAllocs()
			for b.Loop() {
				Decide(in)
			}
		})
	}
}
