package dispatch

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/tenancy"
)

// overridden has the policies and rules that changed a manifest. It is empty if no rule changed the manifest.
type overridden struct {
	cluster  overrides.Cluster
	policies []hubv1.OverridePolicyObject
	divided  []overrides.Divided
	applied  []overrides.RuleRef
}

// misfits finds the values in a manifest that violate a schema.
type misfits func(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit

// unfit returns the outcome for a manifest that must not be written. The outcome is nil if the manifest may be written.
func (r *run) unfit(ctx context.Context, manifest *unstructured.Unstructured) *member.Outcome {
	if refusal := tenancy.Of(manifest, r.in.namespaceLabels, r.binding.BindingSpec().ObjectRef.IsOfOperator()); refusal != nil {
		o := outcome(metav1.ConditionFalse, refusal.Reason, "%s", refusal.Message)
		return &o
	}
	return r.misfit(ctx, manifest)
}

// misfit returns an outcome if an override rule sets a value that violates the schema of the hub or of the cluster. The
// copy is then not changed. A value that is invalid even without the override rules is left to the member's API server.
// The check runs just before a write, so that an unchanged copy costs nothing.
func (r *run) misfit(ctx context.Context, manifest *unstructured.Unstructured) *member.Outcome {
	if len(r.out.overridden.applied) == 0 {
		return nil
	}
	for _, schema := range []struct {
		whose string
		find  misfits
	}{{"the hub's", r.queue.opts.Misfits}, {"the cluster's", r.cluster.Misfits}} {
		find := schema.find
		found := find(ctx, manifest)
		if len(found) == 0 {
			continue
		}
		if without, err := r.renderedWith(nil); err == nil {
			before := find(ctx, without)
			found = slices.DeleteFunc(found, func(m member.Misfit) bool { return slices.Contains(before, m) })
		}
		if len(found) > 0 {
			o := refused(hubv1.ReasonOverrideInvalid, r.blamed(ctx, find, found[0], schema.whose))
			o.Retry = member.RetrySlowly // retried, because a changed schema of the hub causes no event
			return o
		}
	}
	return nil
}

// renderedWith returns the manifest that results if only these policies apply.
func (r *run) renderedWith(policies []hubv1.OverridePolicyObject) (*unstructured.Unstructured, error) {
	result, err := r.out.prepared.Render(r.out.overridden.cluster, policies, r.out.overridden.divided)
	return result.Manifest, err
}

// culprit returns the override rule that makes a manifest wrong. Rules apply in a certain order. If wrong returns true
// for the manifest after the first n rules, but not after the first n-1 rules, rule n is the culprit.
func (r *run) culprit(ctx context.Context, wrong func(*unstructured.Unstructured) bool) overrides.RuleRef {
	applied := r.out.overridden.applied
	fits, not := 0, len(applied)
	for not-fits > 1 && ctx.Err() == nil {
		middle := (fits + not) / 2
		manifest, err := r.renderedWith(only(r.out.overridden.policies, applied[:middle]))
		if err == nil && !wrong(manifest) {
			fits = middle
		} else {
			not = middle
		}
	}
	return applied[not-1]
}

// blamed returns an error that names the rule which causes the misfit. The error shows only those parts of the invalid
// value and of its path that are in the rule or the schema. For a Secret, the error shows only parts that are in the
// schema.
func (r *run) blamed(ctx context.Context, find misfits, m member.Misfit, whose string) error {
	culprit := r.culprit(ctx, func(manifest *unstructured.Unstructured) bool { return slices.Contains(find(ctx, manifest), m) })
	var known sets.Set[string]
	if !hubv1.IsSecret(r.in.object.GroupKind()) {
		known = literals(r.out.overridden.policies, culprit)
	}
	misfit := openapi.Fault(m).Redacted(known)
	message := misfit.Message
	if misfit.Value != "" {
		message += ", not " + misfit.Value
	}
	return &overrides.InvalidError{Policy: culprit.Policy, Rule: culprit.Rule, Path: misfit.Path, Message: message + ", by " + whose + " schema"}
}

// only returns the policies with only these rules, without all other rules.
func only(policies []hubv1.OverridePolicyObject, rules []overrides.RuleRef) []hubv1.OverridePolicyObject {
	kept := sets.New(rules...)
	out := make([]hubv1.OverridePolicyObject, len(policies))
	for i, p := range policies {
		reduced := p.DeepCopyObject().(hubv1.OverridePolicyObject)
		spec := reduced.OverrideSpec()
		spec.Rules = slices.DeleteFunc(spec.Rules, func(rule hubv1.OverrideRule) bool {
			return !kept.Has(overrides.RuleRef{Policy: overrides.RefOf(p), Rule: rule.Name})
		})
		out[i] = reduced
	}
	return out
}

// literals returns the constant values in a rule. Values that the rule reads from elsewhere are left out.
func literals(policies []hubv1.OverridePolicyObject, ref overrides.RuleRef) sets.Set[string] {
	for _, p := range policies {
		if overrides.RefOf(p) != ref.Policy {
			continue
		}
		for i := range p.OverrideSpec().Rules {
			rule := &p.OverrideSpec().Rules[i]
			if rule.Name != ref.Rule {
				continue
			}
			if raw, err := json.Marshal(rule); err == nil {
				return openapi.Literals(raw)
			}
		}
	}
	return nil
}
