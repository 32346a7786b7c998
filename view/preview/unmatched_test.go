package preview

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide/decidetest"
)

// regions returns a cluster in each of these regions, named by its region.
func regions(names ...string) (out []*hubv1.MemberCluster) {
	for _, name := range names {
		out = append(out, decidetest.Cluster(name+"-1", func(c *hubv1.MemberCluster) { c.Labels = map[string]string{hubv1.RegionLabel: name} }))
	}
	return out
}

func inRegions(values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: hubv1.RegionLabel, Operator: metav1.LabelSelectorOpIn, Values: values}}}
}

func TestSelectionsThatNoClusterMatchesAreNamedWithWhatExists(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec     hubv1.PlacementSpec
		clusters []*hubv1.MemberCluster
		want     []string
	}{
		"all regions exist": {hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{LabelSelector: inRegions("eu", "cn")}}, regions("cn", "eu"), nil},
		"a typo in one of two regions": {
			hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{LabelSelector: inRegions("cn", "euu")}}, regions("cn", "eu"),
			[]string{"no cluster has topology.kubernetes.io/region=euu: there are cn, eu"},
		},
		"a label that no cluster has": {
			hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"tier": "gold"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gpu", Operator: metav1.LabelSelectorOpExists}},
			}}},
			regions("cn"), []string{"no cluster has the label tier", "no cluster has the label gpu"},
		},
		"labels that clusters shall not have": {
			hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "gpu", Operator: metav1.LabelSelectorOpDoesNotExist}, {Key: hubv1.RegionLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"us"}},
			}}}},
			regions("cn"), nil,
		},
		"names, selected and excluded": {
			hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{"cn-1", "cn-2"}, ExcludedNames: []string{"us-1"}}}, regions("cn"),
			[]string{"no cluster is named cn-2: there are cn-1", "no cluster is named us-1: there are cn-1"},
		},
		"no cluster yet": {hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{"cn-1"}}}, nil, []string{"no cluster is named cn-1: there are none"}},
		"a wave": {
			hubv1.PlacementSpec{Rollout: &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "first", Clusters: &hubv1.RuleClusters{Names: []string{"eu-1", "eu-2"}}}, {Name: "rest"}}}},
			regions("cn", "eu"), []string{"wave first: no cluster is named eu-2: there are cn-1, eu-1"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, UnmatchedPlacement(&hubv1.Placement{Spec: tc.spec}, tc.clusters, "no cluster")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRulesThatNoClusterMatchesAreNamed(t *testing.T) {
	t.Parallel()
	policy := &hubv1.OverridePolicy{}
	policy.Spec.Rules = []hubv1.OverrideRule{
		{Name: "all"}, {Name: "large", Clusters: &hubv1.RuleClusters{LabelSelector: inRegions("eu-centrall-1")}},
	}
	want := []string{"rule large: no cluster that you may see has topology.kubernetes.io/region=eu-centrall-1: there are cn, eu-central-1"}
	if diff := cmp.Diff(want, UnmatchedOverrides(policy, regions("cn", "eu-central-1"), "no cluster that you may see")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfManyNamesThoseThatBeginAlikeAreListed(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("cn-%02d", i), fmt.Sprintf("eu-%02d", i))
	}
	if got, want := ThereAreLike("eu-1x", names), "there are eu-10, eu-11, eu-12, eu-13, eu-14, eu-15, eu-16, eu-17, eu-18, eu-19 and 30 more"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
