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

// knownRisks are the risks in a file of the chart hanse-member, whose notes name them, too.
var knownRisks = func() []risk {
	var out struct {
		Risks []risk `json:"risks"`
	}
	text, err := fs.ReadFile(charts.Member(), "files/risks.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &out)
	}
	if err != nil { // cannot fail: the file is part of the binary
		panic(err)
	}
	return out.Risks
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
		for _, r := range knownRisks {
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
