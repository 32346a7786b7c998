package command

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/charts"
)

// dangers has the rights that are dangerous for a member. They are in a file of the chart hanse-member, whose templates
// read it, too.
type dangers struct {
	Refused refusals `json:"refused"`
	Risks   []risk   `json:"risks"`
}

// refusals are the rights that the rules of an operator may not have.
type refusals struct {
	Verbs []string `json:"verbs"`
	// AllVerbsOf are resources whose verb "*" contains one of the verbs, in the syntax of --grant.
	AllVerbsOf []string `json:"allVerbsOf"`
}

// risk is a right that makes its holder an administrator of the cluster if the right is granted in all namespaces.
type risk struct {
	// Of is the resource that the right is about, in the syntax of --grant, such as "secrets" or "apps/deployments".
	Of string `json:"of"`
	// Verbs are the dangerous verbs on the resource. A rule with one of these verbs on the resource contains the right.
	Verbs []string `json:"verbs"`
	Why   string   `json:"why"`
	// InNamespace is true if the right is also dangerous in one namespace, because its holder can act as any
	// ServiceAccount there.
	InNamespace bool `json:"inNamespace"`
}

// known are the dangers in the file of the chart.
var known = func() dangers {
	var out dangers
	text, err := fs.ReadFile(charts.Member(), "files/risks.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &out)
	}
	if err != nil { // cannot fail: the file is part of the binary
		panic(err)
	}
	return out
}()

// risks describes the risky rights in rules that apply to all namespaces. It skips rules that are limited to named
// objects.
func risks(rules []rbacv1.PolicyRule) []string {
	var out []string
	add := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, rule := range rules {
		if len(rule.ResourceNames) > 0 {
			continue
		}
		if wildcard(rule) {
			add(fmt.Sprintf("%s on %s of %s: it has a wildcard", strings.Join(rule.Verbs, ", "), strings.Join(rule.Resources, ", "), strings.Join(named(rule.APIGroups), ", ")))
			continue
		}
		for _, r := range known.Risks {
			if r.in(rule) {
				add(r.Of + ": " + r.Why)
			}
		}
	}
	return out
}

func wildcard(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), func(s string) bool { return strings.Contains(s, "*") })
}

func named(groups []string) []string {
	out := slices.Clone(groups)
	for i, g := range out {
		if g == "" {
			out[i] = "the core group"
		}
	}
	return out
}

// in reports whether a rule contains the right. The rule must have no wildcards in its groups and resources.
func (r risk) in(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb == rbacv1.VerbAll || slices.Contains(r.Verbs, verb) }) &&
		slices.Contains(kindsOf(rule), r.Of)
}

// in returns a verb of the rule that no operator may have. It returns an empty text if there is no such verb.
func (r refusals) in(rule rbacv1.PolicyRule) string {
	all := slices.ContainsFunc(kindsOf(rule), func(kind string) bool { return slices.Contains(r.AllVerbsOf, kind) })
	for _, verb := range rule.Verbs {
		if slices.Contains(r.Verbs, verb) || all && verb == rbacv1.VerbAll {
			return verb
		}
	}
	return ""
}
