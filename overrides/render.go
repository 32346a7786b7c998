package overrides

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Options of Render.
type Options struct {
	// DeniedMetadataPrefixes are beginnings of label and annotation keys that do not travel, beside the built-in ones.
	DeniedMetadataPrefixes []string
	// Divided are the numbers that the cluster has its own share of. They are set before any rule.
	Divided []Divided
}

// Result of Render.
type Result struct {
	// Manifest is the object for the cluster. It shares nothing with the template.
	Manifest *unstructured.Unstructured
	// Applied are the rules that made it, the lowest rank first.
	Applied []RuleRef
}

// rankedRule is a rule that applies, in its place.
type rankedRule struct {
	ref    RuleRef
	rule   *hubv1.OverrideRule
	rank   rank
	change *change
}

// Render returns the template, as it is on the hub, as it should be in the cluster. The policies are those that Matching
// returned. The error is an *InvalidError, a *ConflictError, a *DividedError or ErrTooLarge; neither the template nor a policy is changed.
func Render(template *unstructured.Unstructured, cluster Cluster, policies []hubv1.OverridePolicyObject, opts Options) (Result, error) {
	stripped, invalid := strip(template, opts.DeniedMetadataPrefixes)
	if invalid != nil {
		return Result{}, invalid
	}
	if err := fits(stripped); err != nil {
		return Result{}, err
	}
	rules, budget, err := applying(policies, cluster)
	if err != nil {
		return Result{}, err
	}
	manifest := runtime.DeepCopyJSON(stripped)
	dropGenerated(manifest)
	if err := setDivided(manifest, opts.Divided); err != nil {
		return Result{}, err
	}
	if err := untouched(rules, opts.Divided); err != nil {
		return Result{}, err
	}
	result := Result{Manifest: &unstructured.Unstructured{Object: manifest}}
	for len(rules) > 0 {
		rest := slices.IndexFunc(rules, func(r *rankedRule) bool { return r.rank != rules[0].rank })
		if rest < 0 {
			rest = len(rules)
		}
		if err := conflict(rules[:rest], manifest); err != nil {
			return Result{}, err
		}
		for _, r := range rules[:rest] {
			if f := r.change.apply(manifest, &budget); f != nil {
				return Result{}, f.of(r.ref)
			}
			result.Applied = append(result.Applied, r.ref)
		}
		rules = rules[rest:]
	}
	if len(result.Applied) > 0 {
		if err := fits(manifest); err != nil {
			return Result{}, err
		}
	}
	return result, nil
}

// fits says whether a member can take the manifest at all.
func fits(manifest map[string]any) error {
	_, err := size(manifest, maxManifestBytes, maxManifestDepth)
	if err == nil || errors.Is(err, ErrTooLarge) {
		return err
	}
	return &InvalidError{Message: err.Error()}
}

// applying returns the rules that apply in the cluster, the lowest rank first and those of one policy together, and how
// much they may copy.
func applying(policies []hubv1.OverridePolicyObject, cluster Cluster) ([]*rankedRule, int, error) {
	policies = slices.SortedFunc(slices.Values(policies), func(a, b hubv1.OverridePolicyObject) int {
		return comparePolicies(RefOf(a), RefOf(b))
	})
	var rules []*rankedRule
	budget, operations := maxAdded, 0
	for _, p := range policies {
		selected, err := selectRules(p, cluster)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range selected {
			bytes, ops := weight(r.rule)
			budget -= bytes
			operations += ops
			if budget < 0 || operations > maxOperations {
				return nil, 0, &InvalidError{Policy: r.ref.Policy, Rule: r.ref.Rule, Message: fmt.Sprintf(
					"the rules for one object in one cluster may hold %d KiB and %d operations in all, which this one exceeds: make them smaller",
					maxAdded>>10, maxOperations)}
			}
		}
		rules = append(rules, selected...)
	}
	slices.SortStableFunc(rules, func(a, b *rankedRule) int { return a.rank.compare(b.rank) })
	for _, r := range rules {
		c, faults := compile(r.rule)
		if len(faults) > 0 {
			return nil, 0, faults[0].of(r.ref)
		}
		r.change = c
	}
	return rules, budget, nil
}

// selectRules returns the rules of a policy that apply in the cluster, in their order.
func selectRules(p hubv1.OverridePolicyObject, cluster Cluster) ([]*rankedRule, error) {
	policy, spec := RefOf(p), p.OverrideSpec()
	switch tier := p.OverrideTier(); {
	case !slices.Contains(stages, tier) || (tier == hubv1.TierNamespaced) != (p.GetNamespace() != ""):
		return nil, &InvalidError{Policy: policy, Message: fmt.Sprintf("has the unknown tier %q: use Baseline or Admin", printable(string(tier)))}
	case len(spec.Rules) > maxRules:
		return nil, &InvalidError{Policy: policy, Message: fmt.Sprintf("has more than %d rules: split it", maxRules)}
	}
	var out []*rankedRule
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		ref := RuleRef{Policy: policy, Rule: printable(rule.Name)}
		ok, err := Selects(rule, cluster)
		if err != nil {
			return nil, clusterFault(err).of(ref)
		}
		if ok {
			out = append(out, &rankedRule{ref: ref, rule: rule, rank: rankOf(p.OverrideTier(), rule)})
		}
	}
	return out, nil
}

func comparePolicies(a, b PolicyRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}
