package command

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/charts"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
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
		"what every member grants":             {rules: roleWith(t, memberValues{optional: map[string]bool{"createNamespaces": true, "listWorkloads": true}})},
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

// notesOf returns the notes of the chart hanse-member for these values. It renders them as an object, because package
// chart renders no notes.
func notesOf(t *testing.T, values map[string]any) (string, error) {
	t.Helper()
	files := fstest.MapFS{}
	must(t, fs.WalkDir(charts.Member(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(charts.Member(), path)
		files[path] = &fstest.MapFile{Data: text}
		return err
	}))
	notes := string(files["templates/NOTES.txt"].Data)
	files["templates/_notes.tpl"] = &fstest.MapFile{Data: []byte(`{{ define "notes" }}` + notes + `{{ end }}`)}
	files["templates/notes.yaml"] = &fstest.MapFile{Data: []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, data: {notes: {{ include "notes" . | quote }}}}`)}
	archive, err := charts.Archive("hanse-member", files)
	must(t, err)
	rendered, err := chart.Render(t.Context(), chart.Input{Archive: archive, Namespace: hubv1.SystemNamespace, Values: []map[string]any{values}})
	if err != nil {
		return "", err
	}
	for _, o := range rendered.Objects {
		if o.GetKind() == "ConfigMap" {
			text, _, err := unstructured.NestedString(o.Object, "data", "notes")
			return text, err
		}
	}
	t.Fatal("the chart has no notes")
	return "", nil
}

// warnings returns the warnings in notes, sorted.
func warnings(notes string) []string {
	_, after, _ := strings.Cut(notes, "is an administrator of this cluster by these grants:\n")
	block, _, _ := strings.Cut(strings.TrimLeft(after, "\n"), "\n\n")
	var out []string
	for line := range strings.Lines(block) {
		out = append(out, strings.TrimSpace(line))
	}
	return sorted(out)
}

// ruleOf returns a rule with one verb on one resource in the syntax of --grant.
func ruleOf(verb, of string) rbacv1.PolicyRule {
	group, resource, found := strings.Cut(of, "/")
	if !found || !strings.Contains(group, ".") && group != "apps" && group != "batch" {
		group, resource = "", of
	}
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
}

// refusedVerbs returns the verbs that the chart refuses in each rule of an operator.
func refusedVerbs(t *testing.T) []string {
	t.Helper()
	var file struct {
		Refused struct {
			Verbs []string `json:"verbs"`
		} `json:"refused"`
	}
	text, err := fs.ReadFile(charts.Member(), "files/risks.yaml")
	must(t, err)
	must(t, yaml.Unmarshal(text, &file))
	return file.Refused.Verbs
}

// everyRule returns a rule for each verb of the risks in the file of the chart, on each resource of these risks and on
// others.
func everyRule() []rbacv1.PolicyRule {
	verbs, of := []string{"get", "list", "delete"}, []string{"example.com/widgets", "configmaps"}
	for _, r := range knownRisks {
		verbs, of = append(verbs, r.Verbs...), append(of, r.Of)
	}
	slices.Sort(verbs)
	slices.Sort(of)
	verbs, of = slices.Compact(verbs), slices.Compact(of)
	var out []rbacv1.PolicyRule
	for _, verb := range verbs {
		for _, of := range of {
			out = append(out, ruleOf(verb, of))
		}
	}
	return out
}

// valuesOf returns values of the chart hanse-member, and the file for --grant-operator with the same content.
func valuesOf(t *testing.T, namespace string, rules ...rbacv1.PolicyRule) (map[string]any, []byte) {
	t.Helper()
	operator := operatorrights.OperatorRules{Name: "widgets", Rules: rules}
	if namespace != "" {
		operator.Rules, operator.NamespacedRules = nil, map[string][]rbacv1.PolicyRule{namespace: rules}
	}
	text, err := yaml.Marshal(operatorrights.MemberValues{GrantedKinds: []operatorrights.GrantedKinds{}, Operators: []operatorrights.OperatorRules{operator}})
	must(t, err)
	values, err := chart.ParseValues(text)
	must(t, err)
	return values, text
}

func TestRulesThatGiveTheHubEveryRightAreRefused(t *testing.T) {
	for _, namespace := range []string{"", "widgets"} {
		for _, rule := range []rbacv1.PolicyRule{
			ruleOf("escalate", "rbac.authorization.k8s.io/roles"), ruleOf("bind", "rbac.authorization.k8s.io/clusterroles"), ruleOf("*", "rbac.authorization.k8s.io/clusterroles"),
			ruleOf("impersonate", "users"), ruleOf("impersonate", "groups"), ruleOf("impersonate", "serviceaccounts"), ruleOf("*", "serviceaccounts"),
		} {
			_, file := valuesOf(t, namespace, rule)
			_, err := parseOperatorGrants(t.Context(), file)
			refused(t, err, "operator widgets: ", ".0 has the verb "+rule.Verbs[0]+" on ", "by which the hub gets every right")
		}
		_, file := valuesOf(t, namespace, ruleOf("get", "rbac.authorization.k8s.io/roles"), ruleOf("*", "example.com/widgets"), ruleOf("create", "serviceaccounts/token"))
		granted, err := parseOperatorGrants(t.Context(), file)
		must(t, err)
		if len(granted.operators) != 1 {
			t.Errorf("in namespace %q, the file grants %v", namespace, granted)
		}
	}
}

func TestJoinAndTheMemberChartWarnOfTheSameGrants(t *testing.T) {
	byVerb, never := map[string][]rbacv1.PolicyRule{}, refusedVerbs(t)
	for _, rule := range everyRule() {
		if verb := rule.Verbs[0]; !slices.Contains(never, verb) {
			byVerb[verb] = append(byVerb[verb], rule)
		}
	}
	for verb, rules := range byVerb {
		values, _ := valuesOf(t, "", rules...)
		notes, err := notesOf(t, values)
		must(t, err)
		if diff := cmp.Diff(sorted(risks(rules)), warnings(notes)); diff != "" {
			t.Errorf("the verb %s (-join +chart):\n%s", verb, diff)
		}
	}
	var kinds []any
	var rules []rbacv1.PolicyRule
	known, err := rulesOfChart()
	must(t, err)
	for _, r := range knownRisks {
		if rule := ruleOf("", r.Of); resource.MatchString(rule.Resources[0]) { // no grant is about a subresource
			kinds = append(kinds, map[string]any{"apiGroups": []any{rule.APIGroups[0]}, "resources": []any{rule.Resources[0]}})
			rule.Verbs = known.verbs
			rules = append(rules, rule)
		}
	}
	notes, err := notesOf(t, map[string]any{"grantedKinds": kinds})
	must(t, err)
	if diff := cmp.Diff(sorted(risks(rules)), warnings(notes)); diff != "" {
		t.Errorf("grantedKinds (-join +chart):\n%s", diff)
	}
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}
