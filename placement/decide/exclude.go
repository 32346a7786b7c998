package decide

import (
	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement"
)

// exclusions returns the clusters from which rules of override policies exclude the object. It returns an error if a
// rule cannot be read.
func (in input) exclusions() (map[string]placement.Exclusion, error) {
	var policies []hubv1.OverridePolicyObject
	for _, p := range in.Facts.Overrides {
		if overrides.Excludes(p) {
			policies = append(policies, p)
		}
	}
	if policies == nil {
		return nil, nil
	}
	rules, err := overrides.ExclusionsOf(policies, in.selectable())
	if err != nil {
		return nil, err
	}
	out := map[string]placement.Exclusion{}
	ofOperator := in.selectable().IsOfOperator()
	for _, m := range in.Facts.Clusters {
		c := in.Memo.cluster(m)
		if ofOperator {
			c = withoutOperators(c)
		}
		x, excluded := rules.Of(overrides.Cluster{
			Name: c.Name, Labels: c.Labels, Annotations: overrides.ReadableAnnotations(c.Annotations), Version: c.Version, Capacity: c.Capacity, Operators: c.Operators,
		})
		if excluded {
			out[m.Name] = placement.Exclusion{Rule: x.Rule.String(), Passing: x.Passing, Why: x.Why}
		}
	}
	return out, nil
}
