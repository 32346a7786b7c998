package preview

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAPlacementIsChecked(t *testing.T) {
	tests := map[string]struct {
		aggregation hubv1.StatusAggregation
		suspend     hubv1.SuspendPolicy
		rollout     *hubv1.RolloutPolicy
		says        string // part of the finding; empty: there is none
	}{
		"expressions that can be read": {aggregation: hubv1.StatusAggregation{
			HealthExpression: "object.status.ok",
			Reducers:         []hubv1.StatusReducer{{Path: "/status/a", Reducer: hubv1.ReducerCEL, Expression: "values.size()"}, {Path: "/status/b", Reducer: hubv1.ReducerSum}},
		}},
		"a reducer that reads what there is not": {
			aggregation: hubv1.StatusAggregation{Reducers: []hubv1.StatusReducer{
				{Path: "/status/b", Reducer: hubv1.ReducerSum}, {Path: "/status/a", Reducer: hubv1.ReducerCEL, Expression: "value + 1"},
			}},
			says: "spec.statusAggregation.reducers[1].expression: line 1, column 1: undeclared reference to 'value'",
		},
		"a reducer that gives what JSON does not have": {
			aggregation: hubv1.StatusAggregation{Reducers: []hubv1.StatusReducer{{Path: "/status/a", Reducer: hubv1.ReducerCEL, Expression: "duration('1s')"}}},
			says:        "spec.statusAggregation.reducers[0].expression: gives a value of type google.protobuf.Duration, which JSON does not have: convert it, such as with string()",
		},
		"a selector of suspended clusters that cannot be read": {
			suspend: hubv1.SuspendPolicy{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}},
			says:    `spec.suspend.clusterSelector: "Near" is not a valid label selector operator`,
		},
		"a window that never opens": {
			rollout: &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "all"}}, Windows: []hubv1.RolloutWindow{{Schedule: "0 0 30 2 *", DurationSeconds: 60}}},
			says:    `spec.rollout.windows[0].schedule: Invalid value: "0 0 30 2 *": the schedule never fires`,
		},
		"an expression of a wave that reads operators": {
			rollout: &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "first", Clusters: &hubv1.RuleClusters{Expression: "operators.rotors.installed"}}, {Name: "rest"}}},
			says:    `spec.rollout.waves[0].clusters.expression: Forbidden: a wave cannot read operators, because a cluster must stay in its wave while an operator changes`,
		},
		"an expression of a wave that cannot be read": {
			rollout: &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "first", Clusters: &hubv1.RuleClusters{Expression: "regin == 'eu'"}}, {Name: "rest"}}},
			says:    `spec.rollout.waves[0].clusters.expression: Invalid value: line 1, column 1: undeclared reference to 'regin'`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &hubv1.Placement{Spec: hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}, StatusAggregation: tc.aggregation, Suspend: tc.suspend, Rollout: tc.rollout}}
			got := ""
			if err := CheckPlacement(p); err != nil {
				got = err.Error()
			}
			if got != tc.says {
				t.Errorf("got %q, want %q", got, tc.says)
			}
		})
	}
}
