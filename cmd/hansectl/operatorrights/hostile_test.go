package operatorrights_test

import (
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
)

// A chart may try to get more into kube-system than what elects a leader. The hub sends nothing of that to members, and
// hansectl operators rbac prints no right for it.
func TestAChartGetsNothingElseIntoKubeSystem(t *testing.T) {
	const (
		rbac    = "apiVersion: rbac.authorization.k8s.io/v1\n"
		secrets = "rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n"
		leases  = "rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}]\n"
		there   = "metadata: {namespace: kube-system, name: issuer}\n"
		subject = "subjects: [{kind: ServiceAccount, namespace: issuer, name: issuer}]\n"
	)
	for name, c := range map[string]struct {
		template string
		want     string // part of the verdict
	}{
		"a Role for Leases":                     {rbac + "kind: Role\n" + there + leases, "accepted"},
		"a Role for Secrets":                    {rbac + "kind: Role\n" + there + secrets, "rules[0] is about secrets"},
		"a Role for Secrets in a List":          {"apiVersion: v1\nkind: List\nitems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: kube-system, name: a}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}]", "rules[0] is about secrets"},
		"a Role for Secrets in a RoleList":      {rbac + "kind: RoleList\nitems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: kube-system, name: a}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}]", "rules[0] is about secrets"},
		"a Role in a List in a List":            {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: kube-system, name: a}, rules: []}]}]", "a List in another List"},
		"a Role of an earlier version":          {strings.Replace(rbac, "/v1", "/v1beta1", 1) + "kind: Role\n" + there + leases, "use rbac.authorization.k8s.io/v1"},
		"a Role with a generated name":          {rbac + "kind: Role\nmetadata: {namespace: kube-system, generateName: issuer-}\n" + leases, "metadata.generateName"},
		"a namespace by a value":                {rbac + "kind: Role\nmetadata: {namespace: '{{ .Values.place }}', name: issuer}\n" + secrets, "rules[0] is about secrets"},
		"a namespace with a blank":              {rbac + "kind: Role\nmetadata: {namespace: 'kube-system ', name: issuer}\n" + leases, "the namespace is kube-system "},
		"a namespace in upper case":             {rbac + "kind: Role\nmetadata: {namespace: Kube-System, name: issuer}\n" + leases, "use lower case letters"},
		"a kind in lower case":                  {rbac + "kind: role\n" + there + leases, "except Roles and RoleBindings"},
		"a field in upper case":                 {rbac + "kind: Role\n" + there + leases + "Rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]", "unknown or invalid fields"},
		"rules that are set twice":              {rbac + "kind: Role\n" + there + leases + secrets, "rules[0] is about secrets"},
		"a ConfigMap":                           {"apiVersion: v1\nkind: ConfigMap\n" + there, "Hanse writes nothing in kube-*"},
		"a hook":                                {rbac + "kind: Role\nmetadata: {namespace: kube-system, name: issuer, annotations: {helm.sh/hook: pre-install}}\n" + secrets, "accepted with `hooks: Skip`"},
		"a binding to a ClusterRole":            {rbac + "kind: RoleBinding\n" + there + subject + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}", "roleRef names the ClusterRole view"},
		"a binding to a Role of others":         {rbac + "kind: RoleBinding\n" + there + subject + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: other}", "the operator does not have in kube-system"},
		"a binding to no Role":                  {rbac + "kind: RoleBinding\n" + there + subject + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ''}", "roleRef has no name"},
		"an account of the release's namespace": {rbac + "kind: RoleBinding\n" + there + "subjects: [{kind: ServiceAccount, name: issuer}]\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}", "subjects[0] has no namespace"},
		"a definition that makes Roles its own": {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: roles.rbac.authorization.k8s.io}\nspec: {group: rbac.authorization.k8s.io, scope: Cluster, names: {kind: Role, plural: roles}, versions: []}\n---\n" + rbac + "kind: Role\n" + there + secrets, "rules[0] is about secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := chart.Render(t.Context(), chart.Input{
				Archive: charttest.Archive("issuer", map[string]string{
					"Chart.yaml": "apiVersion: v2\nname: issuer\nversion: 1.0.0\n", "values.yaml": "place: kube-system\n", "templates/a.yaml": c.template,
					"templates/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
				}),
				Release: "issuer", Namespace: "issuer",
			})
			got := ""
			if err != nil {
				got = "refused: " + err.Error()
			} else {
				got = verdict(rendered)
			}
			if !strings.Contains(got, c.want) || strings.HasPrefix(c.want, "accepted") != strings.HasPrefix(got, "accepted") {
				t.Errorf("it is %s, want %q", got, c.want)
			}
			if err != nil {
				return
			}
			rights, err := operatorrights.Of(rendered)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range rights.Values.Operators {
				for _, rule := range o.NamespacedRules["kube-system"] {
					if rule.Resources[0] != "leases" && rule.Verbs[0] != "use" {
						t.Errorf("the hub gets %+v", rule)
					}
				}
			}
		})
	}
}
