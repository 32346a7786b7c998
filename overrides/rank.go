package overrides

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// rank is the position of a rule in the order of precedence. A rule of higher rank is applied later. The rank depends
// only on the policy, not on labels of clusters.
type rank struct {
	stage        int
	priority     int32
	level        int
	requirements int
}

var (
	stages = []hubv1.Tier{hubv1.TierBaseline, hubv1.TierNamespaced, hubv1.TierAdmin}
	levels = []string{"none", "region", "zone", "names"}
)

func rankOf(tier hubv1.Tier, rule *hubv1.OverrideRule) rank {
	r := rank{stage: slices.Index(stages, tier), priority: rule.Priority}
	if rule.Clusters == nil {
		return r
	}
	sel := rule.Clusters.LabelSelector
	switch {
	case len(rule.Clusters.Names) > 0:
		r.level = 3
	case pins(sel, hubv1.ZoneLabel):
		r.level = 2
	case pins(sel, hubv1.RegionLabel):
		r.level = 1
	}
	if sel != nil {
		r.requirements = len(sel.MatchLabels) + len(sel.MatchExpressions)
	}
	if rule.Clusters.Expression != "" {
		r.requirements++
	}
	return r
}

// pins reports whether the selector allows only one value of the label.
func pins(sel *metav1.LabelSelector, key string) bool {
	if sel == nil {
		return false
	}
	if _, ok := sel.MatchLabels[key]; ok {
		return true
	}
	return slices.ContainsFunc(sel.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == key && r.Operator == metav1.LabelSelectorOpIn && len(r.Values) == 1
	})
}

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.stage, o.stage), cmp.Compare(r.priority, o.priority),
		cmp.Compare(r.level, o.level), cmp.Compare(r.requirements, o.requirements))
}

// String returns the rank as "tier/priority/topology level/number of requirements". The topology level is none, region,
// zone or names.
func (r rank) String() string {
	stage := "Unknown"
	if r.stage >= 0 {
		stage = string(stages[r.stage])
	}
	return fmt.Sprintf("%s/%d/%s/%d", stage, r.priority, levels[r.level], r.requirements)
}

// Rank returns the rank of a policy's rule in the order of precedence: tier/priority/topology level/number of
// requirements, such as "Namespaced/0/region/1". The topology level is none, region, zone or names. The requirements
// are the matchLabels, the matchExpressions, and the expression as one requirement.
func Rank(policy hubv1.OverridePolicyObject, rule *hubv1.OverrideRule) string {
	return rankOf(policy.OverrideTier(), rule).String()
}
