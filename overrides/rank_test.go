package overrides

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestRank(t *testing.T) {
	tests := map[string]struct {
		tier hubv1.Tier // empty: a namespaced OverridePolicy
		rule string
		want string
	}{
		"a rule for all clusters":       {rule: `priority: 0`, want: "Namespaced/0/none/0"},
		"a priority":                    {rule: `priority: -1000`, want: "Namespaced/-1000/none/0"},
		"names":                         {rule: `clusters: {names: [a, b]}`, want: "Namespaced/0/names/0"},
		"names and a zone":              {rule: `clusters: {names: [a], labelSelector: {matchLabels: {topology.kubernetes.io/zone: z}}}`, want: "Namespaced/0/names/1"},
		"a zone and a region":           {rule: `clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/zone: z, topology.kubernetes.io/region: r}}}`, want: "Namespaced/0/zone/2"},
		"a region by In":                {rule: `clusters: {labelSelector: {matchExpressions: [{key: topology.kubernetes.io/region, operator: In, values: [r]}]}}`, want: "Namespaced/0/region/1"},
		"two regions are no level":      {rule: `clusters: {labelSelector: {matchExpressions: [{key: topology.kubernetes.io/region, operator: In, values: [r, s]}]}}`, want: "Namespaced/0/none/1"},
		"a region left out is no level": {rule: `clusters: {labelSelector: {matchExpressions: [{key: topology.kubernetes.io/region, operator: NotIn, values: [r]}]}}`, want: "Namespaced/0/none/1"},
		"an Admin policy":               {tier: hubv1.TierAdmin, rule: `clusters: {labelSelector: {matchLabels: {a: b, c: d}}}`, want: "Admin/0/none/2"},
		"a ClusterOverridePolicy without tier, by the API": {tier: hubv1.TierBaseline, rule: `clusters: {labelSelector: {}}`, want: "Baseline/0/none/0"},
		"a tier that there is not":                         {tier: "Emperor", rule: `priority: 5`, want: "Unknown/5/none/0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var p hubv1.OverridePolicyObject = policyWith("a")
			if tc.tier != "" {
				p = clusterPolicyWith("a", tc.tier)
			}
			rule := parseRule(t, tc.rule)
			if got := Rank(p, &rule); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSelects(t *testing.T) {
	cluster := Cluster{Name: "eu-1", Labels: map[string]string{"env": "prod"}}
	tests := map[string]struct {
		clusters string
		want     bool
	}{
		"no clusters are all":              {`{}`, true},
		"its name":                         {`{names: [eu-1]}`, true},
		"a name that begins like its own":  {`{names: [eu-10, eu]}`, false},
		"its label":                        {`{labelSelector: {matchLabels: {env: prod}}}`, true},
		"an empty selector is all":         {`{labelSelector: {}}`, true},
		"its name, but not its label":      {`{names: [eu-1], labelSelector: {matchLabels: {env: dev}}}`, false},
		"its label, but not its name":      {`{names: [us-1], labelSelector: {matchLabels: {env: prod}}}`, false},
		"a label that it has not, negated": {`{labelSelector: {matchExpressions: [{key: gpu, operator: DoesNotExist}]}}`, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rule := parseRule(t, "clusters: "+tc.clusters)
			got, err := Selects(&rule, cluster)
			if err != nil || got != tc.want {
				t.Errorf("got %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}

func TestMatchingKeepsWhatItCanReadAndNamesTheRest(t *testing.T) {
	selects := func(p hubv1.OverridePolicyObject, kind string, labels *metav1.LabelSelector) hubv1.OverridePolicyObject {
		p.OverrideSpec().ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "example.com", Kind: kind, LabelSelector: labels}}
		return p
	}
	unreadable := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Sometimes"}}}
	elsewhere := policyWith("elsewhere")
	elsewhere.Namespace = "other"
	unreadableNamespaces := clusterPolicyWith("namespaces", hubv1.TierAdmin)
	unreadableNamespaces.Spec.NamespaceSelector = unreadable
	all := clusterPolicyWith("all", hubv1.TierBaseline)
	all.Spec.NamespaceSelector = &metav1.LabelSelector{}
	policies := []hubv1.OverridePolicyObject{
		selects(policyWith("broken"), "Thing", unreadable),
		selects(policyWith("broken-elsewhere"), "Other", unreadable),
		selects(policyWith("good"), "Thing", nil),
		selects(elsewhere, "Thing", nil),
		selects(unreadableNamespaces, "Thing", nil),
		selects(clusterPolicyWith("cluster-scoped-only", hubv1.TierAdmin), "Thing", nil),
		selects(all, "Thing", nil),
	}
	object := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{Group: "example.com", Kind: "Thing", Namespace: "team", Name: "web"}}
	matching, err := Matching(policies, object)
	var got []string
	for _, p := range matching {
		got = append(got, RefOf(p).String())
	}
	if diff := cmp.Diff([]string{"OverridePolicy team/good", "ClusterOverridePolicy all"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := `OverridePolicy team/broken: resourceSelectors[0].labelSelector: "Sometimes" is not a valid label selector operator: correct the selector
ClusterOverridePolicy namespaces: namespaceSelector: "Sometimes" is not a valid label selector operator: correct the selector`
	if diff := cmp.Diff(want, message(err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !isInvalid(err) {
		t.Errorf("%v holds no *InvalidError", err)
	}
}
