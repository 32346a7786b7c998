package view

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestACordonedClusterNamesTheWaveThatWaitsForIt(t *testing.T) {
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "metrics", UID: "p"}}
	p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{
		{Name: "singapore", Clusters: &hubv1.RuleClusters{Names: []string{"ap-se-1"}}}, {Name: "rest"},
	}}
	const waits = "wave singapore waits for ap-se-1 now: to leave the cluster out, use hansectl rollout skip metrics ap-se-1 -n monitoring"
	tests := map[string]struct {
		cluster string
		rollout *hubv1.BindingRollout
		follows types.UID
		want    string
	}{
		"the current wave has the cluster": {"ap-se-1", &hubv1.BindingRollout{Wave: "singapore"}, "p", waits},
		"a later wave has the cluster":     {"eu-fra-1", &hubv1.BindingRollout{Wave: "singapore"}, "p", ""},
		"the wave has passed":              {"ap-se-1", &hubv1.BindingRollout{Wave: "rest"}, "p", ""},
		"no change is in progress":         {"ap-se-1", &hubv1.BindingRollout{Phase: hubv1.RolloutComplete}, "p", ""},
		"the change has failed":            {"ap-se-1", &hubv1.BindingRollout{Wave: "singapore", Failed: 2}, "p", ""},
		"a user has promoted the change":   {"ap-se-1", &hubv1.BindingRollout{Wave: "singapore", Start: hubv1.StartPromotion}, "p", ""},
		"the object has no rollout":        {"ap-se-1", nil, "p", ""},
		"the object follows another one":   {"ap-se-1", &hubv1.BindingRollout{Wave: "singapore"}, "other", ""},
		"the object is on no such cluster": {"cn-sha-1", &hubv1.BindingRollout{Wave: "rest"}, "p", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &hubv1.ResourceBinding{Spec: hubv1.BindingSpec{
				Rollout: tc.rollout, PlacementRef: &hubv1.PlacementReference{Kind: "Placement", UID: tc.follows},
				Clusters: []hubv1.BindingTarget{{Name: "ap-se-1", State: hubv1.TargetPresent}, {Name: "eu-fra-1", State: hubv1.TargetPresent}},
			}}
			m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: tc.cluster}}
			if got := WaveThatWaits(p, []hubv1.BindingObject{b}, m); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
