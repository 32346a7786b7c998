package replicas

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	fed "sigs.k8s.io/kubefed/pkg/apis/scheduling/v1alpha1"
	"sigs.k8s.io/kubefed/pkg/controller/util/planner"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// planOf returns the result of KubeFed's planner for the unchanged input.
func planOf(t interface{ Fatal(...any) }, in Input) map[string]int64 {
	spec := fed.ReplicaSchedulingPreferenceSpec{TotalReplicas: int32(in.Total), Rebalance: in.Rebalance, Clusters: map[string]fed.ClusterPreferences{}}
	names, held := []string{}, map[string]int64{}
	for _, c := range in.Clusters {
		names = append(names, c.Name)
		spec.Clusters[c.Name] = fed.ClusterPreferences{Weight: c.Weight, MinReplicas: c.Min, MaxReplicas: &c.Max}
		if c.Held != nil {
			held[c.Name] = *c.Held
		}
	}
	plan, _, err := planner.NewPlanner(&fed.ReplicaSchedulingPreference{Spec: spec}).Plan(names, held, nil, in.Key)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// Each test case is an input for which the planner of KubeFed gives a wrong result, if it gets the input unchanged. If
// the planner gives the right result, the test fails, because kubefed need not change this input any more.
func TestKubeFedIsGuardedWhereItsPlannerIsWrong(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		total    int64
		clusters string
		planner  map[string]int64
		want     map[string]int64
	}{
		"a maximum below 0 is no share below 0": {
			total: 6, clusters: "a 1 max=-5; b 1", planner: map[string]int64{"a": -5, "b": 11}, want: map[string]int64{"a": 0, "b": 6},
		},
		"a minimum below 0 gives others no more than the total": {
			total: 6, clusters: "a 0 min=-3; b 1", planner: map[string]int64{"a": -3, "b": 9}, want: map[string]int64{"a": 0, "b": 6},
		},
		"a weight below 0 takes nothing away": {
			total: 6, clusters: "a -1; b 1", planner: map[string]int64{"a": 0, "b": 0}, want: map[string]int64{"a": 0, "b": 6},
		},
		"a minimum above the maximum is lowered": {
			total: 6, clusters: "a 1 min=9 max=2; b 1", planner: map[string]int64{"a": 6, "b": 0}, want: map[string]int64{"a": 2, "b": 4},
		},
		"weights that overflow are bounded": {
			total: 10, clusters: "a 4611686018427387904; b 4611686018427387904", planner: map[string]int64{"a": 0, "b": 0},
			want: map[string]int64{"a": 5, "b": 5},
		},
		"a total that overflows is bounded": {
			total: 1<<32 + 6, clusters: "a 1", planner: map[string]int64{"a": 6}, want: map[string]int64{"a": Unlimited},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := Input{By: hubv1.DivideByKubeFed, Total: tc.total, Clusters: clusters(t, tc.clusters), Key: "shop/web"}
			if diff := cmp.Diff(tc.planner, planOf(t, in)); diff != "" {
				t.Errorf("the planner alone (-want +got):\n%s", diff)
			}
			got, err := Divide(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Shares); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKubeFedIsThePlannerForInputsThatMakeSense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, hubv1.DivideByKubeFed)
		in.Key = rapid.StringMatching(`[a-z]{0,4}/[a-z]{1,6}`).Draw(t, "key")
		for i := range in.Clusters {
			c := &in.Clusters[i]
			c.Min = min(max(0, c.Min), c.Max)
		}
		if diff := cmp.Diff(planOf(t, in), mustDivide(t, in).Shares); diff != "" {
			t.Fatal(diff)
		}
	})
}

// drawLargeInput generates an input of Divide. Each number is small, or from 0 to Unlimited, or any int64.
func drawLargeInput(t *rapid.T) Input {
	number := rapid.OneOf(rapid.Int64Range(-2, 9), rapid.Int64Range(0, Unlimited), rapid.Int64())
	in := Input{By: hubv1.DivideByKubeFed, Total: number.Draw(t, "total"), Rebalance: rapid.Bool().Draw(t, "rebalance"), Key: "shop/web"}
	for i := range rapid.IntRange(0, 30).Draw(t, "clusters") {
		c := Cluster{
			Name: fmt.Sprintf("c%d", i), Weight: number.Draw(t, "weight"), Min: number.Draw(t, "min"), Max: number.Draw(t, "max"),
		}
		if rapid.Bool().Draw(t, "holds") {
			held := number.Draw(t, "held")
			c.Held = &held
		}
		in.Clusters = append(in.Clusters, c)
	}
	return in
}

func TestKubeFedKeepsItsPromisesForNumbersOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawLargeInput(t)
		got := mustDivide(t, in)
		total := clamp(in.Total)
		sum, kept, open := int64(0), int64(0), false
		for _, c := range in.Clusters {
			s := slotOf(c, in.By)
			share := got.Shares[c.Name]
			if share < 0 || share > s.hi {
				t.Fatalf("%s has %d and may have 0 to %d", c.Name, share, s.hi)
			}
			sum += share
			kept += max(s.lo, min(s.held, s.hi))
			open = open || s.weight > 0 && share < s.hi
		}
		if sum+got.Rest != total || got.Rest < 0 || got.Rest > 0 && open {
			t.Fatalf("%d of %d, rest %d, and a cluster with room: %t", sum, total, got.Rest, open)
		}
		for _, c := range in.Clusters {
			s := slotOf(c, in.By)
			if !in.Rebalance && kept <= total && got.Shares[c.Name] < min(s.held, s.hi) {
				t.Fatalf("%s has %d and had %d", c.Name, got.Shares[c.Name], s.held)
			}
		}
		if diff := cmp.Diff(got, mustDivide(t, in)); diff != "" {
			t.Fatalf("another answer at the second time: %s", diff)
		}
		if diff := cmp.Diff(got, mustDivide(t, holding(in, got))); diff != "" {
			t.Fatalf("another division of shares that are held: %s", diff)
		}
	})
}

// With this input, the planner of KubeFed alone needs a round for each replica that the first cluster has, which takes
// about a minute.
func TestKubeFedDividesManyHeldReplicasAtOnce(t *testing.T) {
	t.Parallel()
	held := int64(2_000_000_000)
	in := Input{By: hubv1.DivideByKubeFed, Total: held + 1, Clusters: []Cluster{{Name: "a", Weight: 1, Max: Unlimited, Held: &held}}}
	for i := range 10 {
		in.Clusters = append(in.Clusters, Cluster{Name: fmt.Sprintf("b%d", i)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan Division, 1)
	go func() {
		got, err := Divide(in)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	select {
	case got := <-done:
		if got.Shares["a"] != held+1 {
			t.Errorf("a has %d, want %d", got.Shares["a"], held+1)
		}
	case <-ctx.Done():
		t.Fatal("it is not done after 10s")
	}
}
