package overrides_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
	"github.com/hanse-dev/hanse/overrides"
)

func TestReadsAreTheFactsOfClustersThatARuleLooksAt(t *testing.T) {
	rule := &hubv1.OverrideRule{
		Clusters: &hubv1.RuleClusters{
			LabelSelector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"tier": "gold"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpExists}},
			},
			Expression: "version != '' && labels.exists(k, k == 'a')",
		},
		Patches: []hubv1.PatchOperation{
			{Op: hubv1.PatchAdd, Path: "/spec/a", Expression: "cluster.labels['zone'] + object.metadata.name"}, {Op: hubv1.PatchAdd, Path: "/spec/b", Expression: "this is none"},
		},
	}
	want := []cel.Reading{
		{Variable: "labels", Key: "tier"}, {Variable: "labels", Key: "team"}, {Variable: "version"}, {Variable: "labels"}, {Variable: "labels", Key: "zone"},
	}
	if diff := cmp.Diff(want, overrides.Reads(rule)); diff != "" {
		t.Error(diff)
	}
}
