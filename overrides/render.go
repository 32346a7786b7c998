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

// Result of Render.
type Result struct {
	// Manifest is the object for the cluster. It is not to be changed: where nothing differs, all clusters share it, and it shares its
	// content with the template.
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

// Prepared is a template without what never travels: what all clusters have in common.
type Prepared struct{ manifest *unstructured.Unstructured }

// Prepare makes ready a template, as it is on the hub. Label and annotation keys that begin with one of the prefixes do not travel, nor do
// the built-in ones. The error is an *InvalidError or ErrTooLarge. The template is not to be changed from now on.
func Prepare(template *unstructured.Unstructured, deniedMetadataPrefixes []string) (*Prepared, error) {
	stripped, invalid := strip(template, deniedMetadataPrefixes)
	if invalid != nil {
		return nil, invalid
	}
	if err := fits(stripped); err != nil {
		return nil, err
	}
	return &Prepared{manifest: &unstructured.Unstructured{Object: withoutGenerated(stripped)}}, nil
}

// Render returns the object as it should be in the cluster. The policies are those that Matching returned; divided are the numbers that the
// cluster has its own share of, they are set before any rule. The error is an *InvalidError, a *ConflictError, a *DividedError or
// ErrTooLarge; no policy is changed.
func (p *Prepared) Render(cluster Cluster, policies []hubv1.OverridePolicyObject, divided []Divided) (Result, error) {
	evaluation := newEvaluation(cluster, p.manifest.Object)
	rules, budget, err := applying(policies, evaluation)
	if err != nil {
		return Result{}, err
	}
	if len(rules) == 0 && len(divided) == 0 {
		return Result{Manifest: p.manifest}, nil
	}
	manifest := runtime.DeepCopyJSON(p.manifest.Object)
	if err := setDivided(manifest, divided); err != nil {
		return Result{}, err
	}
	if err := untouched(rules, divided); err != nil {
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
func applying(policies []hubv1.OverridePolicyObject, evaluation *evaluation) ([]*rankedRule, int, error) {
	policies = slices.SortedFunc(slices.Values(policies), func(a, b hubv1.OverridePolicyObject) int {
		return comparePolicies(RefOf(a), RefOf(b))
	})
	var rules []*rankedRule
	budget, operations := maxAdded, 0
	for _, p := range policies {
		selected, err := selectRules(p, evaluation)
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
		var f *fault
		if c.ops, f = evaluation.evaluated(c.ops, &budget); f != nil {
			return nil, 0, f.of(r.ref)
		}
		r.change = c
	}
	return rules, budget, nil
}

// selectRules returns the rules of a policy that apply in the cluster, in their order.
func selectRules(p hubv1.OverridePolicyObject, evaluation *evaluation) ([]*rankedRule, error) {
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
		if rule.Exclude {
			continue // it has a part in where the object goes, not in how it looks
		}
		ref := RuleRef{Policy: policy, Rule: printable(rule.Name)}
		ok, f := evaluation.selects(rule)
		if f != nil {
			return nil, f.of(ref)
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
