package overrides

import (
	"runtime"
	"sync"
	"weak"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// compiledRule is the part of a rule that does not depend on the object and the cluster. It is compiled at its first
// use.
type compiledRule struct {
	targetOnce  sync.Once
	target      target
	targetFault *fault

	changeOnce sync.Once
	change     *change
	faults     []fault
}

func (c *compiledRule) readTarget(rule *hubv1.OverrideRule) (*target, *fault) {
	c.targetOnce.Do(func() { c.target, c.targetFault = readTarget(rule.Clusters) })
	return &c.target, c.targetFault
}

func (c *compiledRule) compile(rule *hubv1.OverrideRule) (*change, []fault) {
	c.changeOnce.Do(func() { c.change, c.faults = compile(rule) })
	return c.change, c.faults
}

// compiledPolicies caches the compiled rules of each policy while the policy is in memory. A policy is applied to each
// of its objects in each cluster. Without the cache, most of that time would be the compilation of expressions. The key
// is the address of the first rule of a policy. All copies of a policy share its list of rules, and the list never
// changes.
var compiledPolicies sync.Map // maps weak.Pointer[hubv1.OverrideRule] to []compiledRule

func compiledRules(rules []hubv1.OverrideRule) []compiledRule {
	if len(rules) == 0 {
		return nil
	}
	key := weak.Make(&rules[0])
	if known, ok := compiledPolicies.Load(key); ok && len(known.([]compiledRule)) == len(rules) {
		return known.([]compiledRule)
	}
	fresh := make([]compiledRule, len(rules))
	compiledPolicies.Store(key, fresh)
	runtime.AddCleanup(&rules[0], func(key weak.Pointer[hubv1.OverrideRule]) { compiledPolicies.Delete(key) }, key)
	return fresh
}
