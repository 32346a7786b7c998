package overrides

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func excluding(clusters *hubv1.RuleClusters) hubv1.OverrideRule {
	return hubv1.OverrideRule{Name: "r", Exclude: true, Clusters: clusters}
}

func TestExclusionsOf(t *testing.T) {
	fra, sha := Cluster{Name: "fra", Version: "v1.30.1", Labels: map[string]string{hubv1.RegionLabel: "eu-central-1"}}, Cluster{Name: "sha"}
	european := &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: "eu-central-1"}}}
	odd := &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Odd"}}}}
	urgent := excluding(european)
	urgent.Name, urgent.Priority = "urgent", 1000
	changing := parseRule(t, `mergePatch: {spec: {v: 1}}`)
	things := hubv1.ResourceSelector{APIGroup: "example.com", Kind: "Thing"}
	policy := func(name string, rules ...hubv1.OverrideRule) *hubv1.OverridePolicy {
		p := policyWith(name, rules...)
		p.Spec.ResourceSelectors = []hubv1.ResourceSelector{things}
		return p
	}
	other := policy("a", excluding(european))
	other.Spec.ResourceSelectors[0].Kind = "Gadget"
	broken := policy("broken", excluding(european))
	broken.Spec.ResourceSelectors[0].LabelSelector = odd.LabelSelector
	unread := policy("unread", changing)
	unread.Spec.ResourceSelectors[0].LabelSelector = odd.LabelSelector
	everywhere := clusterPolicyWith("a", hubv1.TierAdmin, excluding(european))
	everywhere.Spec.ResourceSelectors, everywhere.Spec.NamespaceSelector = []hubv1.ResourceSelector{things}, &metav1.LabelSelector{}
	thing := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{Group: "example.com", Kind: "Thing", Namespace: "team", Name: "web"}}

	tests := map[string]struct {
		policies []hubv1.OverridePolicyObject
		want     map[string]string // the rule that excludes each cluster
		err      string
	}{
		"a rule for some clusters":                       {policies: some(policy("a", excluding(european))), want: map[string]string{"fra": `OverridePolicy team/a, rule "r"`}},
		"a rule for all clusters":                        {policies: some(policy("a", excluding(nil))), want: map[string]string{"fra": `OverridePolicy team/a, rule "r"`, "sha": `OverridePolicy team/a, rule "r"`}},
		"a rule that changes excludes nothing":           {policies: some(policy("a", changing))},
		"a policy for another kind excludes nothing":     {policies: some(other)},
		"the first policy by name is named, not by rank": {policies: some(policy("b", urgent), policy("a", excluding(european))), want: map[string]string{"fra": `OverridePolicy team/a, rule "r"`}},
		"the first rule of a policy is named":            {policies: some(policy("a", changing, urgent, excluding(european))), want: map[string]string{"fra": `OverridePolicy team/a, rule "urgent"`}},
		"a cluster policy excludes as well":              {policies: some(everywhere), want: map[string]string{"fra": `ClusterOverridePolicy a, rule "r"`}},
		"a policy whose objects cannot be read": {
			policies: some(policy("a", excluding(european)), broken), want: map[string]string{"fra": `OverridePolicy team/a, rule "r"`},
			err: `OverridePolicy team/broken: resourceSelectors[0].labelSelector: "Odd" is not a valid label selector operator: correct the selector`,
		},
		"a rule whose clusters cannot be read": {
			policies: some(policy("a", excluding(odd))),
			err:      `OverridePolicy team/a, rule "r": clusters.labelSelector: "Odd" is not a valid label selector operator: correct the selector`,
		},
		"a rule whose expression cannot be read": {
			policies: some(policy("a", excluding(&hubv1.RuleClusters{Expression: "regio == ''"}))),
			err:      `OverridePolicy team/a, rule "r": clusters.expression: line 1, column 1: undeclared reference to 'regio': correct the expression`,
		},
		"an expression over what was said of a cluster": {
			policies: some(policy("a", excluding(&hubv1.RuleClusters{Expression: "region.startsWith('eu-')"}))), want: map[string]string{"fra": `OverridePolicy team/a, rule "r"`},
		},
		"an expression over what a cluster is": {
			policies: some(policy("a", excluding(&hubv1.RuleClusters{Expression: "region.startsWith('eu-') && version < 'v1.36'"}))),
			want:     map[string]string{"fra": `for now: OverridePolicy team/a, rule "r": its expression reads facts of the cluster that can change at any time`},
		},
		"an expression that gives no answer": {
			policies: some(policy("a", excluding(&hubv1.RuleClusters{Expression: "labels['tier'] == 'x'", LabelSelector: european.LabelSelector}))),
			want:     map[string]string{"fra": `for now: OverridePolicy team/a, rule "r": clusters.expression: fails for cluster fra: no such key: tier: ` + adviceMissing},
		},
		"a rule for good is named before one for now": {
			policies: some(policy("a", excluding(&hubv1.RuleClusters{Expression: "version == 'v1.30.1'"})), policy("b", excluding(european))),
			want:     map[string]string{"fra": `OverridePolicy team/b, rule "r"`},
		},
		"a policy that excludes nothing may be unreadable": {policies: some(unread)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x, err := ExclusionsOf(tc.policies, thing)
			if diff := cmp.Diff(tc.err, message(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			got := map[string]string{}
			for _, c := range []Cluster{fra, sha} {
				e, yes := x.Of(c)
				switch {
				case yes && e.Passing:
					got[c.Name] = "for now: " + e.Rule.String() + ": " + e.Why
				case yes:
					got[c.Name] = e.Rule.String()
				}
			}
			if tc.want == nil {
				tc.want = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func some(policies ...hubv1.OverridePolicyObject) []hubv1.OverridePolicyObject { return policies }

func TestARuleThatExcludesChangesNothing(t *testing.T) {
	unanswered := excluding(&hubv1.RuleClusters{Expression: "labels['tier'] == 'x'"})
	template := objectWith(map[string]any{"v": int64(1)})
	got, err := renderWith(template, policyWith("a", excluding(nil), unanswered))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(template.Object["spec"], got.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
