package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/test/apiserver"
)

func TestGrantsThatMakeAnAdministratorAreNamed(t *testing.T) {
	rule := func(verbs, groups, resources string) rbacv1.PolicyRule {
		split := func(s string) []string { return strings.Split(s, ",") }
		return rbacv1.PolicyRule{Verbs: split(verbs), APIGroups: split(groups), Resources: split(resources)}
	}
	const all = "get,list,watch,create,patch,delete"
	tests := map[string]struct {
		rules []rbacv1.PolicyRule
		want  []string // how the expected warnings begin
	}{
		"what every member grants":             {rules: grants{createNamespaces: true, listWorkloads: true}.rules()},
		"custom resources":                     {rules: []rbacv1.PolicyRule{rule(all, "monitoring.coreos.com", "prometheuses")}},
		"configmaps and definitions":           {rules: []rbacv1.PolicyRule{rule(all, "", "configmaps"), rule(all, "apiextensions.k8s.io", "customresourcedefinitions")}},
		"RBAC, within its own rights":          {rules: []rbacv1.PolicyRule{rule(all, "rbac.authorization.k8s.io", "roles,clusterrolebindings")}},
		"Secrets":                              {rules: []rbacv1.PolicyRule{rule(all, "", "configmaps,secrets")}, want: []string{"secrets: it reads every Secret"}},
		"Secrets to read alone":                {rules: []rbacv1.PolicyRule{rule("list", "", "secrets")}, want: []string{"secrets: "}},
		"one named Secret":                     {rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a"}}}},
		"workloads":                            {rules: []rbacv1.PolicyRule{rule(all, "apps", "deployments"), rule(all, "batch", "jobs")}, want: []string{"apps/deployments: it runs pods", "batch/jobs: "}},
		"workloads of another group":           {rules: []rbacv1.PolicyRule{rule(all, "example.com", "deployments")}},
		"workloads to read":                    {rules: []rbacv1.PolicyRule{rule("get,list,watch,delete", "apps", "deployments")}},
		"webhook configurations":               {rules: []rbacv1.PolicyRule{rule(all, "admissionregistration.k8s.io", "mutatingwebhookconfigurations")}, want: []string{"admissionregistration.k8s.io/mutatingwebhookconfigurations: "}},
		"the deletion of policies":             {rules: []rbacv1.PolicyRule{rule("delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings")}, want: []string{"admissionregistration.k8s.io/validatingadmissionpolicybindings: it lifts"}},
		"nodes":                                {rules: []rbacv1.PolicyRule{rule("patch", "", "nodes")}, want: []string{"nodes: "}},
		"escalate":                             {rules: []rbacv1.PolicyRule{rule("escalate", "rbac.authorization.k8s.io", "clusterroles")}, want: []string{"rbac.authorization.k8s.io/clusterroles: it can give itself"}},
		"bind":                                 {rules: []rbacv1.PolicyRule{rule("bind", "rbac.authorization.k8s.io", "roles")}, want: []string{"rbac.authorization.k8s.io/roles: "}},
		"impersonate":                          {rules: []rbacv1.PolicyRule{rule("impersonate", "", "users")}, want: []string{"users: it acts as anybody"}},
		"exec":                                 {rules: []rbacv1.PolicyRule{rule("create", "", "pods/exec")}, want: []string{"pods/exec: "}},
		"tokens":                               {rules: []rbacv1.PolicyRule{rule("create", "", "serviceaccounts/token")}, want: []string{"serviceaccounts/token: "}},
		"a wildcard of groups":                 {rules: []rbacv1.PolicyRule{rule("get", "*", "widgets")}, want: []string{"get on widgets of *: it has a wildcard"}},
		"a wildcard of verbs, in a core kind":  {rules: []rbacv1.PolicyRule{rule("*", "", "configmaps")}, want: []string{"* on configmaps of the core group: it has a wildcard"}},
		"a wildcard of subresources":           {rules: []rbacv1.PolicyRule{rule("get", "", "pods/*")}, want: []string{"get on pods/* of the core group: "}},
		"the same twice is one warning":        {rules: []rbacv1.PolicyRule{rule(all, "", "pods"), rule(all, "", "pods")}, want: []string{"pods: "}},
		"what is asked for certificates":       {rules: []rbacv1.PolicyRule{rule(all, "certificates.k8s.io", "certificatesigningrequests")}, want: []string{"certificates.k8s.io/certificatesigningrequests: "}},
		"an aggregated API server of the hubs": {rules: []rbacv1.PolicyRule{rule(all, "apiregistration.k8s.io", "apiservices")}, want: []string{"apiregistration.k8s.io/apiservices: "}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := risks(tt.rules)
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Errorf("got %q, want %q", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestJoinAndTheMemberChartWarnOfTheSameGrants(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(apiserver.Root(), "charts", "hanse-member", "files", "risks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	chart := map[string]string{}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	join := map[string]string{}
	for _, r := range kindRisks {
		join[r.what] = r.why
	}
	if diff := cmp.Diff(chart, join); diff != "" {
		t.Errorf("risks (-chart +join):\n%s", diff)
	}
}
