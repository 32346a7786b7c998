package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/charts"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
)

// memberValues are the values of the chart hanse-member that join sets.
type memberValues struct {
	kinds     []kindGrant
	operators []operatorrights.OperatorRules
	optional  map[string]bool // by the names of the values in optionalRights
	policy    policyChoice    // without a choice, the chart renders no admission policy
}

// asMap returns the values for the chart. Each API group has one entry of grantedKinds.
func (v memberValues) asMap() (map[string]any, error) {
	of := operatorrights.MemberValues{GrantedKinds: []operatorrights.GrantedKinds{}, Operators: v.operators}
	for _, k := range v.kinds {
		i := slices.IndexFunc(of.GrantedKinds, func(g operatorrights.GrantedKinds) bool { return g.APIGroups[0] == k.group })
		if i < 0 {
			i = len(of.GrantedKinds)
			of.GrantedKinds = append(of.GrantedKinds, operatorrights.GrantedKinds{APIGroups: []string{k.group}})
		}
		if granted := &of.GrantedKinds[i]; !slices.Contains(granted.Resources, k.resource) {
			granted.Resources = append(granted.Resources, k.resource)
		}
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&of)
	if err != nil {
		return nil, fmt.Errorf("writing the values of the chart hanse-member: %w", err)
	}
	for _, right := range optionalRights {
		out[right.value] = v.optional[right.value]
	}
	out["admissionPolicy"] = map[string]any{"enabled": v.policy == policyOn || v.policy == policyAdopt, "adoption": v.policy == policyAdopt}
	return out, nil
}

// writeOrder are the kinds of the chart's objects, in the order in which join writes them: the admission policy exists
// before the hub has any right.
var writeOrder = []string{
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ServiceAccount", "ClusterRole", "Role", "RoleBinding", "ClusterRoleBinding",
}

// render returns the objects of the chart hanse-member, in the order in which join writes them. The objects with the
// rules of operators come last.
func (v memberValues) render(ctx context.Context) ([]*unstructured.Unstructured, error) {
	archive, err := charts.Archive("hanse-member", charts.Member())
	if err != nil {
		return nil, err
	}
	values, err := v.asMap()
	if err != nil {
		return nil, err
	}
	rendered, err := chart.Render(ctx, chart.Input{Archive: archive, Namespace: hubv1.SystemNamespace, Values: []map[string]any{values}})
	if err != nil {
		return nil, err
	}
	for _, o := range rendered.Objects {
		if !slices.Contains(writeOrder, o.GetKind()) {
			return nil, fmt.Errorf("the chart hanse-member has %s %s: join writes no object of this kind", o.GetKind(), o.GetName())
		}
	}
	slices.SortStableFunc(rendered.Objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(operatorOf(a), operatorOf(b)), cmp.Compare(slices.Index(writeOrder, a.GetKind()), slices.Index(writeOrder, b.GetKind())))
	})
	return rendered.Objects, nil
}

// operatorOf returns the operator whose rules an object of the chart grants. It returns an empty text for any other
// object.
func operatorOf(o *unstructured.Unstructured) string {
	operator, found := strings.CutPrefix(o.GetName(), operatorrights.RolePrefix)
	if !found {
		return ""
	}
	return operator
}

// rulesOf returns the rules of a role. It returns nil for an object of another kind.
func rulesOf(o *unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	var role rbacv1.ClusterRole // a Role has its rules in the same field
	if o.Object["rules"] == nil {
		return nil, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
		return nil, fmt.Errorf("reading the rules of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return role.Rules, nil
}

// setRules replaces the rules of a role.
func setRules(o *unstructured.Unstructured, rules []rbacv1.PolicyRule) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: rules})
	if err != nil {
		return fmt.Errorf("writing the rules of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	o.Object["rules"] = content["rules"]
	return nil
}

func isHubRole(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ClusterRole" && o.GetName() == accountName
}

// hubRole returns the hub's ClusterRole among the objects of the chart.
func hubRole(objects []*unstructured.Unstructured) *unstructured.Unstructured {
	return objects[slices.IndexFunc(objects, isHubRole)]
}

// chartRules are the rules that the chart hanse-member can put into the hub's ClusterRole.
type chartRules struct {
	always   []rbacv1.PolicyRule
	optional map[string][]rbacv1.PolicyRule // by the value that adds them
	verbs    []string                       // of the rule for a granted kind
}

// rulesOfChart finds out by rendering which values of the chart add which rules.
var rulesOfChart = sync.OnceValues(func() (*chartRules, error) {
	c := &chartRules{optional: map[string][]rbacv1.PolicyRule{}}
	added := func(v memberValues) ([]rbacv1.PolicyRule, error) {
		objects, err := v.render(context.Background()) // it ends by itself after chart.MaxTime
		if err != nil {
			return nil, err
		}
		rules, err := rulesOf(hubRole(objects))
		return slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return among(r, c.always) }), err
	}
	var err error
	if c.always, err = added(memberValues{}); err != nil {
		return nil, err
	}
	for _, right := range optionalRights {
		if c.optional[right.value], err = added(memberValues{optional: map[string]bool{right.value: true}}); err != nil {
			return nil, err
		}
	}
	of, err := added(memberValues{kinds: []kindGrant{{"example.com", "examples"}}})
	if err != nil {
		return nil, err
	}
	c.verbs = of[0].Verbs
	return c, nil
})

func among(rule rbacv1.PolicyRule, rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) })
}

// values returns the values with which the chart renders the rules of the hub's ClusterRole. It also returns the rules
// that no value renders. A part of the rules of an optional value belongs to them.
func (c *chartRules) values(rules []rbacv1.PolicyRule) (v memberValues, others []rbacv1.PolicyRule) {
	v.optional = map[string]bool{}
	for value, adds := range c.optional {
		v.optional[value] = !slices.ContainsFunc(adds, func(r rbacv1.PolicyRule) bool { return !among(r, rules) })
	}
	for _, rule := range rules {
		known := among(rule, c.always)
		for value, adds := range c.optional {
			known = known || v.optional[value] && among(rule, adds)
		}
		kinds := kindsIn(rule)
		granted := slices.DeleteFunc(slices.Clone(kinds), kindGrant.invalid)
		switch {
		case known:
		case !slices.Equal(rule.Verbs, c.verbs) || len(rule.ResourceNames) > 0 || len(granted) == 0:
			others = append(others, rule)
		default:
			v.kinds = append(v.kinds, granted...)
			for _, k := range kinds {
				if k.invalid() {
					others = append(others, rbacv1.PolicyRule{APIGroups: []string{k.group}, Resources: []string{k.resource}, Verbs: rule.Verbs})
				}
			}
		}
	}
	return v, others
}

// writtenBy reports whether a rule lets the hub write the kind, or a kind of this name if k has no group.
func (k kindGrant) writtenBy(rule rbacv1.PolicyRule) bool {
	inGroup := slices.Contains(rule.APIGroups, k.group) || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll)
	named, all := slices.Contains(rule.Resources, k.resource), slices.Contains(rule.Resources, rbacv1.ResourceAll)
	return (inGroup && (named || all) || k.group == "" && named) &&
		slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
}

// objects returns the objects that join writes on the member. before are the rules of the hub's ClusterRole there.
// Rules that no value renders stay in it.
func (c grantChange) objects(ctx context.Context, before []rbacv1.PolicyRule) ([]*unstructured.Unstructured, error) {
	known, err := rulesOfChart()
	if err != nil {
		return nil, err
	}
	v, others := known.values(before)
	for value, wanted := range c.optional {
		v.optional[value] = wanted
		others = slices.DeleteFunc(others, func(r rbacv1.PolicyRule) bool { return among(r, known.optional[value]) })
	}
	v.kinds = slices.DeleteFunc(slices.Concat(v.kinds, c.add, c.operators.kinds), func(k kindGrant) bool {
		return slices.ContainsFunc(c.remove, func(r kindGrant) bool { return r == k || (r.group == "" && r.resource == k.resource) })
	})
	for _, kind := range c.remove {
		if i := slices.IndexFunc(others, kind.writtenBy); i >= 0 {
			return nil, fmt.Errorf("--ungrant %s: ClusterRole %s of the member has a rule that join did not write (%s): change the rule there", kind, accountName, ruleText(others[i]))
		}
	}
	v.operators, v.policy = c.operators.operators, c.policy
	objects, err := v.render(ctx)
	if err != nil || len(others) == 0 {
		return objects, err
	}
	rules, err := rulesOf(hubRole(objects))
	if err != nil {
		return nil, err
	}
	return objects, setRules(hubRole(objects), append(rules, others...))
}
