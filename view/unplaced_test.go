package view

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAnObjectNamesTheSelectedClustersThatDoNotGetIt(t *testing.T) {
	left := func(reason string, count int32, clusters ...string) hubv1.RejectedClusters {
		g := hubv1.RejectedClusters{Reason: reason, Count: count}
		for _, c := range clusters {
			g.Examples = append(g.Examples, c+": because")
		}
		return g
	}
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprint("c", i)
	}
	tests := map[string]struct {
		decision *hubv1.DecisionStatus
		want     string
	}{
		"without a decision nothing is said": {},
		"a cluster that is not selected is not missing": {
			decision: &hubv1.DecisionStatus{Rejected: []hubv1.RejectedClusters{left(hubv1.ReasonNotSelected, 3, "a", "b", "c")}},
		},
		"each cluster with its reason": {
			decision: &hubv1.DecisionStatus{Rejected: []hubv1.RejectedClusters{
				left(hubv1.ReasonTaintNotTolerated, 1, "a"), left(hubv1.ReasonUnschedulable, 1, "b"), left(hubv1.ReasonExcluded, 1, "c"),
			}},
			want: "1 of 3 selected clusters: a tainted, b cordoned",
		},
		"only some of many are named": {
			decision: &hubv1.DecisionStatus{Rejected: []hubv1.RejectedClusters{left(hubv1.ReasonClusterNotReady, 30, many...)}},
			want:     "1 of 31 selected clusters: c0 not Ready, c1 not Ready, c2 not Ready, c3 not Ready, c4 not Ready and 25 more",
		},
		"a placement that chooses among its clusters does without some": {
			decision: &hubv1.DecisionStatus{
				Reasons:  []hubv1.ChosenCluster{{Cluster: "x", Reason: hubv1.ReasonScheduled}},
				Rejected: []hubv1.RejectedClusters{left(hubv1.ReasonTaintNotTolerated, 1, "a")},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &hubv1.ResourceBinding{}
			b.Spec.Clusters = []hubv1.BindingTarget{{Name: "x", State: hubv1.TargetPresent}}
			b.Status.Decision = tc.decision
			for _, kind := range []string{hubv1.ConditionScheduled, hubv1.ConditionApplied, hubv1.ConditionHealthy} {
				b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
			}
			if got := SummaryOf(b).Message; got != tc.want {
				t.Errorf("the line of the object says %q, want %q", got, tc.want)
			}
		})
	}
}
