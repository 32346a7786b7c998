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
	// Manifest is the object for one cluster. Callers must not change it, because it shares content with the template.
	// Clusters whose objects do not differ share one manifest.
	Manifest *unstructured.Unstructured
	// Whole is Manifest with the fields that are left out because the hub's API server has filled them in. It is nil if
	// there are none. LeftOut are the JSON pointers of these fields in Whole.
	Whole   *unstructured.Unstructured
	LeftOut []string
	// Applied are the override rules that were applied to the object, the lowest rank first.
	Applied []RuleRef
	// Skipped are the override rules that were skipped because their condition when is false or one of their test
	// operations failed, the lowest rank first.
	Skipped []SkippedRule
	// Fields are the authors of the fields that differ from the template, sorted by path. Only Explain sets Fields.
	Fields []FieldOrigin
}

// rankedRule is a rule that applies in the cluster, with its rank.
type rankedRule struct {
	ref      RuleRef
	rule     *hubv1.OverrideRule
	rank     rank
	compiled *compiledRule
	change   *change
}

// Prepared is a template: a hub object without the data that must not be copied to members. All clusters share it.
type Prepared struct {
	manifest *unstructured.Unstructured // with the fields that are left out
	owners   owners
	filled   []pointer // the fields that are left out if no rule and no division sets them
	result   Result    // the result without rules and division
	// folded is the manifest without write-only fields: what a member gets if no rule changes it and no field is left out.
	folded *unstructured.Unstructured
}

// Prepare prepares a hub object as a template. It removes labels and annotations whose keys begin with one of the
// prefixes, or with a built-in prefix. The error is an *InvalidError or ErrTooLarge. The caller must not change the
// object afterwards.
func Prepare(template *unstructured.Unstructured, deniedMetadataPrefixes []string) (*Prepared, error) {
	stripped, invalid := strip(template, deniedMetadataPrefixes)
	if invalid != nil {
		return nil, invalid
	}
	if err := fits(stripped); err != nil {
		return nil, err
	}
	manifest := &unstructured.Unstructured{Object: withoutGenerated(stripped)}
	owners := ownersOf(template)
	return newPrepared(manifest, owners, slices.Concat(owners.filled(manifest.Object), owners.atRest(stripped))), nil
}

func newPrepared(manifest *unstructured.Unstructured, o owners, filled []pointer) *Prepared {
	p := &Prepared{manifest: manifest, folded: FoldStringData(manifest), owners: o, filled: filled}
	p.result.leave(p.folded, filled)
	return p
}

// Manifest returns the template: the hub object without the data that must not be copied to members. It is shared, and
// the caller must not change it.
func (p *Prepared) Manifest() *unstructured.Unstructured { return p.result.Manifest }

// Whole returns the template with the fields that are not sent because the hub's API server has filled them in, and
// with the owners of its fields. Prepare makes the same template from it. It is shared, and the caller must not change
// it.
func (p *Prepared) Whole() *unstructured.Unstructured {
	if !p.owners.known {
		return p.manifest
	}
	return p.owners.on(p.manifest)
}

// AtVersion returns the object at another API version of its kind. It converts like an API server without a conversion
// webhook: only apiVersion changes. Both objects share their content.
func AtVersion(object *unstructured.Unstructured, version string) *unstructured.Unstructured {
	gv := object.GroupVersionKind().GroupVersion()
	if gv.Version == version {
		return object
	}
	gv.Version = version
	out := ownersOf(object).on(object)
	out.SetAPIVersion(gv.String())
	return out
}

// Render returns the object for the cluster. The policies must come from Matching, and the caller must not change them
// afterwards. divided has the numbers that the division of replicas gives this cluster. They are set before all rules.
// The error is an *InvalidError, a *ConflictError, a *DividedError or ErrTooLarge.
func (p *Prepared) Render(cluster Cluster, policies []hubv1.OverridePolicyObject, divided []Divided) (Result, error) {
	return p.render(cluster, policies, divided, nil)
}

// render renders the object. seen is a recorder of the authors of fields, or nil. If it is not nil, render passes it
// the manifest before and after each rule.
func (p *Prepared) render(cluster Cluster, policies []hubv1.OverridePolicyObject, divided []Divided, seen *recorder) (Result, error) {
	if len(policies) == 0 && len(divided) == 0 {
		return p.result, nil
	}
	rules, b, err := applying(policies, newEvaluation(cluster, shownToExpressions(p.manifest)))
	if err != nil {
		return Result{}, err
	}
	if len(rules) == 0 && len(divided) == 0 {
		return p.result, nil
	}
	manifest := runtime.DeepCopyJSON(p.manifest.Object)
	followTexts(nil, manifest)
	if err := setDivided(manifest, divided); err != nil {
		return Result{}, err
	}
	if err := untouched(rules, divided); err != nil {
		return Result{}, err
	}
	if err := seen.start(p.folded.Object, manifest, len(rules)); err != nil {
		return Result{}, err
	}
	var result Result
	forClaims := newBudget()
	all := rules
	for len(rules) > 0 {
		rest := slices.IndexFunc(rules, func(r *rankedRule) bool { return r.rank != rules[0].rank })
		if rest < 0 {
			rest = len(rules)
		}
		if err := conflict(rules[:rest], manifest, forClaims); err != nil {
			return Result{}, err
		}
		for _, r := range rules[:rest] {
			if manifest, err = result.apply(r, manifest, b, seen); err != nil {
				return Result{}, err
			}
		}
		rules = rules[rest:]
	}
	if len(result.Applied) > 0 {
		if err := fits(manifest); err != nil {
			return Result{}, err
		}
	}
	withoutTexts(manifest)
	result.leave(&unstructured.Unstructured{Object: manifest}, p.leftOut(manifest, func(at pointer) bool {
		return slices.ContainsFunc(divided, func(d Divided) bool { path, _ := parsePointer(d.Path); return path.over(at) }) ||
			slices.ContainsFunc(all, func(r *rankedRule) bool { return slices.Contains(result.Applied, r.ref) && r.change.touches(at) })
	}))
	return result, nil
}

// leave sets the manifest of the result, without the fields at the pointers.
func (res *Result) leave(manifest *unstructured.Unstructured, at []pointer) {
	res.Manifest = manifest
	if len(at) == 0 {
		return
	}
	res.Whole = manifest
	object, _ := cut(manifest.Object, at).(map[string]any)
	res.Manifest = &unstructured.Unstructured{Object: object}
	for _, p := range at {
		res.LeftOut = append(res.LeftOut, p.String())
	}
}

// apply applies one rule to the manifest and returns the result. If a test of the rule fails, apply returns the
// manifest without any change by this rule.
func (res *Result) apply(r *rankedRule, manifest map[string]any, b *budget, seen *recorder) (map[string]any, error) {
	kept := manifest
	if r.change.late {
		n, err := size(manifest, b.kept, maxManifestDepth)
		if err != nil {
			return nil, &InvalidError{Policy: r.ref.Policy, Rule: r.ref.Rule, Message: "is one of too many rules with a test after a change: move the test before all other operations"}
		}
		b.kept -= n
		kept = runtime.DeepCopyJSON(manifest)
	}
	seen.before(manifest)
	texts := textsOf(manifest)
	switch f := r.change.apply(manifest, b); {
	case f == nil:
		followTexts(texts, manifest)
		res.Applied = append(res.Applied, r.ref)
		seen.after(r, manifest)
		return manifest, nil
	case f.unmet:
		res.Skipped = append(res.Skipped, SkippedRule{Rule: r.ref, Path: f.path, Reason: f.message})
		return kept, nil
	default:
		return nil, f.of(r.ref)
	}
}

// fits returns an error if the manifest is so large or so deeply nested that no API server accepts it.
func fits(manifest map[string]any) error {
	_, err := size(manifest, maxManifestBytes, maxManifestDepth)
	if err == nil || errors.Is(err, ErrTooLarge) {
		return err
	}
	return &InvalidError{Message: err.Error()}
}

// applying returns the rules that apply in the cluster, the lowest rank first. Among rules of equal rank, the rules of
// one policy follow each other. The budget says how many bytes and operations these rules may use together.
func applying(policies []hubv1.OverridePolicyObject, evaluation *evaluation) ([]*rankedRule, *budget, error) {
	policies = slices.SortedFunc(slices.Values(policies), func(a, b hubv1.OverridePolicyObject) int {
		return comparePolicies(RefOf(a), RefOf(b))
	})
	var rules []*rankedRule
	b := newBudget()
	for _, p := range policies {
		selected, err := selectRules(p, evaluation)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range selected {
			if !b.spend(weight(r.rule)) {
				return nil, nil, &InvalidError{Policy: r.ref.Policy, Rule: r.ref.Rule, Message: b.exceeded()}
			}
		}
		rules = append(rules, selected...)
	}
	slices.SortStableFunc(rules, func(a, b *rankedRule) int { return a.rank.compare(b.rank) })
	for _, r := range rules {
		c, faults := r.compiled.compile(r.rule)
		if len(faults) > 0 {
			return nil, nil, faults[0].of(r.ref)
		}
		var f *fault
		if r.change, f = c.evaluated(evaluation, b); f != nil {
			return nil, nil, f.of(r.ref)
		}
	}
	return rules, b, nil
}

// selectRules returns the rules of the policy that select the cluster, in the order of the policy. It leaves out rules
// with exclude.
func selectRules(p hubv1.OverridePolicyObject, evaluation *evaluation) ([]*rankedRule, error) {
	policy, spec := RefOf(p), p.OverrideSpec()
	switch tier := p.OverrideTier(); {
	case !slices.Contains(stages, tier) || (tier == hubv1.TierNamespaced) != (p.GetNamespace() != ""):
		return nil, &InvalidError{Policy: policy, Message: fmt.Sprintf("has the unknown tier %q: use Baseline or Admin", printable(string(tier)))}
	case len(spec.Rules) > maxRules:
		return nil, &InvalidError{Policy: policy, Message: fmt.Sprintf("has more than %d rules: split the policy", maxRules)}
	}
	var out []*rankedRule
	compiled := compiledRules(spec.Rules)
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		if rule.Exclude {
			continue // the rule affects placement, not the manifest
		}
		t, f := compiled[i].readTarget(rule)
		ok := false
		if f == nil {
			ok, f = evaluation.in(t, rule.Clusters)
		}
		if f != nil {
			return nil, f.of(RuleRef{Policy: policy, Rule: printable(rule.Name)})
		}
		if ok {
			ref := RuleRef{Policy: policy, Rule: printable(rule.Name)}
			out = append(out, &rankedRule{ref: ref, rule: rule, rank: rankOf(p.OverrideTier(), rule), compiled: &compiled[i]})
		}
	}
	return out, nil
}

func comparePolicies(a, b PolicyRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}
