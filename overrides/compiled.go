package overrides

import (
	"runtime"
	"sync"
	"weak"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// compiledRule is what a rule comes down to whatever the object and the cluster, made when it is first asked for.
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

// compiledPolicies keeps compiled rules for as long as they are in memory: a policy is rendered for each of its objects
// and clusters, and reading its expressions alone takes longer than all the rest. A list of rules is known by the
// address of its first one, which copies of a policy from a cache share, and is never changed.
var compiledPolicies sync.Map // of weak.Pointer[hubv1.OverrideRule] to []compiledRule

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
