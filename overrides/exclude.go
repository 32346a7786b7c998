package overrides

import (
	"errors"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Excludes says whether a policy has a rule that keeps objects out of clusters. No other policy has a part in where
// objects go.
func Excludes(policy hubv1.OverridePolicyObject) bool {
	return slices.ContainsFunc(policy.OverrideSpec().Rules, func(r hubv1.OverrideRule) bool { return r.Exclude })
}

// Exclusions are the rules that keep one object out of clusters.
type Exclusions struct{ rules []excludingRule }

type excludingRule struct {
	ref     RuleRef
	rule    *hubv1.OverrideRule
	passing bool // it asks for what changes by itself
}

// Exclusion is a rule that keeps the object out of a cluster.
type Exclusion struct {
	Rule RuleRef
	// Passing is true if the rule asks for what changes of a cluster by itself, or gives no answer for it, as Why says:
	// then it is no reason to take away what is there. Why does not change as long as the rule says the same.
	Passing bool
	Why     string
}

// ExclusionsOf returns the rules of the policies that keep the object out of clusters, whatever their rank. The error
// joins an *InvalidError for each policy, or rule of one that selects the object, that cannot be read: nobody knows
// what it excludes.
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

// Of returns the rule that keeps the object out of the cluster: of several one that is not Passing, then the first by
// name of the policy and place in it. There may be none.
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
			found.Why = "its expression reads facts that change by themselves"
		}
		if !excluded {
			first, excluded = found, true
		}
	}
	return first, excluded
}

// ReadsFacts says whether a change of a cluster's version or capacity may change what Of says.
func (x Exclusions) ReadsFacts() bool {
	return slices.ContainsFunc(x.rules, func(r excludingRule) bool { return r.passing })
}
