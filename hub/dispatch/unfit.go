package dispatch

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/values"
	"github.com/hanse-dev/hanse/overrides"
)

// overridden is how a manifest was made that rules changed; zero if none did.
type overridden struct {
	cluster  overrides.Cluster
	policies []hubv1.OverridePolicyObject
	divided  []overrides.Divided
	applied  []overrides.RuleRef
}

// misfits finds the values in a manifest that a schema does not take.
type misfits func(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit

// unfit is the outcome for a manifest in which a rule has put what the schema of the hub, or of the cluster, does not take: what runs there
// stays as it is. What was wrong without rules is the server's to judge, as of objects that no rule changes. It is asked just before a
// write, so that what is as it should be costs nothing.
func (r *run) unfit(ctx context.Context, manifest *unstructured.Unstructured) *member.Outcome {
	if len(r.overridden.applied) == 0 {
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
			o.Retry = member.RetrySlowly // no event tells of a schema of the hub
			return o
		}
	}
	return nil
}

// renderedWith is the manifest by these policies alone.
func (r *run) renderedWith(policies []hubv1.OverridePolicyObject) (*unstructured.Unstructured, error) {
	result, err := r.rendering.prepared.Render(r.overridden.cluster, policies, r.overridden.divided)
	return result.Manifest, err
}

// blamed names the rule without which the misfit is not there; if there is no such rule, the last one. Of a value only one that the rule
// itself holds is told, and of a Secret none.
func (r *run) blamed(ctx context.Context, find misfits, m member.Misfit, whose string) error {
	applied := r.overridden.applied
	guilty := applied[len(applied)-1]
	for _, ref := range slices.Backward(applied) {
		policies, _ := without(r.overridden.policies, ref)
		if manifest, err := r.renderedWith(policies); err == nil && !slices.Contains(find(ctx, manifest), m) {
			guilty = ref
			break
		}
	}
	_, rule := without(r.overridden.policies, guilty)
	message := m.Message
	if raw, err := json.Marshal(rule); err == nil && !isSecret(r.object.ObjectIdentity) && m.Value != "" && values.Literals(raw).Has(m.Value) {
		message += ", not " + m.Value
	}
	return &overrides.InvalidError{Policy: guilty.Policy, Rule: guilty.Rule, Path: m.Path, Message: message + ", by " + whose + " schema"}
}

func isSecret(id hubv1.ObjectIdentity) bool { return id.Group == "" && id.Kind == "Secret" }

// without returns the policies without one rule, and that rule.
func without(policies []hubv1.OverridePolicyObject, ref overrides.RuleRef) ([]hubv1.OverridePolicyObject, *hubv1.OverrideRule) {
	var removed *hubv1.OverrideRule
	out := slices.Clone(policies)
	for i, p := range out {
		if overrides.RefOf(p) != ref.Policy {
			continue
		}
		reduced := p.DeepCopyObject().(hubv1.OverridePolicyObject)
		spec := reduced.OverrideSpec()
		spec.Rules = slices.DeleteFunc(spec.Rules, func(rule hubv1.OverrideRule) bool {
			if rule.Name != ref.Rule {
				return false
			}
			removed = &rule
			return true
		})
		out[i] = reduced
	}
	return out, removed
}
