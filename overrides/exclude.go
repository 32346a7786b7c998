package overrides

import (
	"errors"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Excludes reports whether a policy has a rule that excludes objects from clusters. Other policies do not affect
// placement.
func Excludes(policy hubv1.OverridePolicyObject) bool {
	return slices.ContainsFunc(policy.OverrideSpec().Rules, func(r hubv1.OverrideRule) bool { return r.Exclude })
}

// Exclusions are the rules that exclude one object from clusters.
type Exclusions struct{ rules []excludingRule }

type excludingRule struct {
	ref     RuleRef
	rule    *hubv1.OverrideRule
	passing bool // whether the rule reads data of clusters that changes without a user
}

// Exclusion is a rule that excludes the object from a cluster.
type Exclusion struct {
	Rule RuleRef
	// Passing is true if the result of the rule may change without an action of a user. This is the case if the rule reads
	// such data of clusters, or if its expression fails for the cluster. Such an exclusion prevents new copies, but
	// removes no existing copy. Why has the reason, and changes only when the result of the rule changes.
	Passing bool
	Why     string
}

// ExclusionsOf returns the rules of the policies that exclude the object from clusters. The rank of the rules does not
// matter. The error joins an *InvalidError for each policy whose selectors cannot be read, and for each excluding rule
// that cannot be read in a policy that selects the object. It is not known from which clusters these policies and rules
// exclude the object.
func ExclusionsOf(policies []hubv1.OverridePolicyObject, object hubv1.SelectableObject) (Exclusions, error) {
	excluding := slices.DeleteFunc(slices.Clone(policies), func(p hubv1.OverridePolicyObject) bool { return !Excludes(p) })
	slices.SortFunc(excluding, func(a, b hubv1.OverridePolicyObject) int { return comparePolicies(RefOf(a), RefOf(b)) })
	matching, err := Matching(excluding, object)
	invalid := []error{err}
	var x Exclusions
	for _, p := range matching {
		spec := p.OverrideSpec()
		for i := range spec.Rules {
			rule := &spec.Rules[i]
			if !rule.Exclude {
				continue
			}
			ref := RuleRef{Policy: RefOf(p), Rule: printable(rule.Name)}
			if _, f := readTarget(rule.Clusters); f != nil {
				invalid = append(invalid, f.of(ref))
				continue
			}
			x.rules = append(x.rules, excludingRule{ref: ref, rule: rule, passing: ReadsFacts(rule)})
		}
	}
	return x, errors.Join(invalid...)
}

// Of returns a rule that excludes the object from the cluster. Rules whose result changes only by an action of a user
// come before the other rules (Passing). After that, the name of the policy decides, and then the position of the rule
// in the policy. excluded is false if no rule excludes the object.
func (x Exclusions) Of(cluster Cluster) (first Exclusion, excluded bool) {
	if len(x.rules) == 0 {
		return Exclusion{}, false
	}
	e := newEvaluation(cluster, nil)
	for _, r := range x.rules {
		found := Exclusion{Rule: r.ref, Passing: r.passing}
		switch yes, f := e.selects(r.rule); {
		case f != nil:
			found.Passing, found.Why = true, f.message
		case !yes:
			continue
		case !r.passing:
			return found, true
		default:
			found.Why = "its expression reads facts of the cluster that can change at any time"
		}
		if !excluded {
			first, excluded = found, true
		}
	}
	return first, excluded
}

// ReadsFacts reports whether a change of a cluster's annotations, version, capacity or operators may change whether a
// rule excludes the object from the cluster.
func (x Exclusions) ReadsFacts() bool {
	return slices.ContainsFunc(x.rules, func(r excludingRule) bool { return r.passing })
}
