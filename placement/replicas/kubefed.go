package replicas

import (
	"fmt"

	fed "sigs.k8s.io/kubefed/pkg/apis/scheduling/v1alpha1"
	"sigs.k8s.io/kubefed/pkg/controller/util/planner"
)

// manyReplicas limits the work of the planner of KubeFed. If the total is larger, the current shares become minimums
// for the planner (see hold). Without minimums, the planner may need one round for each current replica: 10,000 rounds
// over 100 clusters take some 70 ms.
const manyReplicas = 10_000

// kubefed divides the replicas with the planner of KubeFed. The planner gives wrong results for some inputs, so this
// package never passes such inputs to the planner:
//
//   - The planner turns numbers below 0 into shares below 0. slotOf raises such numbers to 0.
//   - The planner follows a minimum above the maximum. slotOf lowers the minimum to the maximum.
//   - The planner overflows on numbers above Unlimited. slotOf lowers such numbers to Unlimited.
//   - The planner keeps clusters with equal hashes in the order of the input. Here the clusters are sorted by name.
//   - The planner counts replicas above a capacity twice. Here it gets no capacity.
//   - The planner needs seconds to minutes for many held replicas. hold avoids this.
func kubefed(open []slot, total int64, in Input) error {
	if total > manyReplicas && !in.Rebalance {
		hold(open, total)
	}
	spec := fed.ReplicaSchedulingPreferenceSpec{
		TotalReplicas: int32(total), Rebalance: in.Rebalance, Clusters: make(map[string]fed.ClusterPreferences, len(open)),
	}
	names, held := make([]string, len(open)), make(map[string]int64, len(open))
	for i, s := range open {
		names[i], held[s.name] = s.name, s.held
		spec.Clusters[s.name] = fed.ClusterPreferences{Weight: s.weight, MinReplicas: s.lo, MaxReplicas: &open[i].hi}
	}
	plan, _, err := planner.NewPlanner(&fed.ReplicaSchedulingPreference{Spec: spec}).Plan(names, held, nil, in.Key)
	if err != nil {
		return fmt.Errorf("dividing replicas by the planner of KubeFed: %w", err)
	}
	for i := range open {
		open[i].share = plan[open[i].name]
	}
	return nil
}

// hold makes the current share of each cluster its minimum, if the total is larger than the sum of the current shares.
// The planner of KubeFed then divides only the other replicas, by weight. Without minimums, the planner would need many
// rounds, and would move a few replicas in each.
func hold(open []slot, total int64) {
	kept := func(s slot) int64 { return max(s.lo, min(s.held, s.hi)) }
	for _, s := range open {
		total -= kept(s)
	}
	if total <= 0 {
		return
	}
	for i := range open {
		open[i].lo = kept(open[i])
	}
}
