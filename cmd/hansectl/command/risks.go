package command

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	runsPods    = "it runs pods in kube-system, as any ServiceAccount there"
	changesAll  = "it changes everything that is written"
	liftsPolicy = "it lifts the policies that bound it"
	isAdmin     = "it can give itself every right"
)

// risk is a right that makes its holder an administrator of the cluster if the right is granted in all namespaces.
type risk struct {
	// what is the resource that the right is about, in the syntax of --grant, such as "secrets" or "apps/deployments".
	what string
	// verbs are the dangerous verbs on the resource. A rule with one of these verbs on the resource contains the right.
	verbs []string
	why   string
}

var (
	readsAndWrites = []string{"get", "list", "watch", "create", "update", "patch"}
	writes         = []string{"create", "update", "patch"}
)

// kindRisks are the risky rights that the grant of a kind can contain. charts/hanse-member/files/risks.yaml has the
// same list.
var kindRisks = []risk{
	{"secrets", readsAndWrites, "it reads every Secret, those of kube-system too, and gets the token of any ServiceAccount by one"},
	{"pods", writes, runsPods},
	{"replicationcontrollers", writes, runsPods},
	{"nodes", writes, "it changes the labels and taints by which pods are kept off nodes"},
	{"apps/deployments", writes, runsPods},
	{"apps/statefulsets", writes, runsPods},
	{"apps/daemonsets", writes, runsPods},
	{"apps/replicasets", writes, runsPods},
	{"batch/jobs", writes, runsPods},
	{"batch/cronjobs", writes, runsPods},
	{"admissionregistration.k8s.io/validatingwebhookconfigurations", writes, "it has everything that is written sent to it, Secrets too"},
	{"admissionregistration.k8s.io/mutatingwebhookconfigurations", writes, changesAll},
	{"admissionregistration.k8s.io/mutatingadmissionpolicies", writes, changesAll},
	{"admissionregistration.k8s.io/mutatingadmissionpolicybindings", writes, changesAll},
	{"admissionregistration.k8s.io/validatingadmissionpolicies", append([]string{"delete"}, writes...), liftsPolicy},
	{"admissionregistration.k8s.io/validatingadmissionpolicybindings", append([]string{"delete"}, writes...), liftsPolicy},
	{"apiregistration.k8s.io/apiservices", writes, "it answers in the place of other API servers"},
	{"certificates.k8s.io/certificatesigningrequests", writes, "it asks for certificates, which some clusters approve by themselves"},
}

// otherRisks are risky rights that neither the chart nor --grant gives to the hub. The hub can have them only by a role
// that a user has written.
var otherRisks = []risk{
	{"rbac.authorization.k8s.io/roles", []string{"escalate", "bind"}, isAdmin},
	{"rbac.authorization.k8s.io/clusterroles", []string{"escalate", "bind"}, isAdmin},
	{"users", []string{"impersonate"}, "it acts as anybody"},
	{"groups", []string{"impersonate"}, "it acts as anybody"},
	{"serviceaccounts", []string{"impersonate"}, "it acts as any ServiceAccount"},
	{"serviceaccounts/token", []string{"create"}, "it gets the token of any ServiceAccount"},
	{"pods/exec", []string{"create", "get"}, "it runs commands in every pod"},
	{"pods/attach", []string{"create", "get"}, "it runs commands in every pod"},
	{"pods/ephemeralcontainers", []string{"patch", "update"}, "it runs commands in every pod"},
	{"nodes/proxy", []string{"create", "get"}, "it runs commands in every pod"},
	{"certificates.k8s.io/certificatesigningrequests/approval", []string{"update", "patch"}, "it approves its own certificates"},
}

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
		for _, r := range slices.Concat(kindRisks, otherRisks) {
			if r.of(rule) {
				add(r.what + ": " + r.why)
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

// namespaced reports whether the right is also dangerous in one namespace, because its holder can act as any
// ServiceAccount there.
func (r risk) namespaced() bool {
	return r.why == runsPods || strings.HasPrefix(r.what, "pods/") || strings.HasPrefix(r.what, "serviceaccounts") || r.what == "secrets"
}

// of reports whether a rule contains the right. The rule must have no wildcards in its groups and resources.
func (r risk) of(rule rbacv1.PolicyRule) bool {
	if !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb == rbacv1.VerbAll || slices.Contains(r.verbs, verb) }) {
		return false
	}
	return slices.ContainsFunc(rule.APIGroups, func(group string) bool {
		return slices.ContainsFunc(rule.Resources, func(resource string) bool { return strings.TrimPrefix(group+"/"+resource, "/") == r.what })
	})
}
