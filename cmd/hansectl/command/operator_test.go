package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/test/charts"
)

const operatorTemplates = `apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec: {replicas: {{ .Values.replicas }}}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: first}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator}
rules:
- {apiGroups: [""], resources: [services, configmaps], verbs: [list, get]}
- {apiGroups: [""], resources: [configmaps], verbs: [watch, get, list]}
- {apiGroups: [""], resources: [services], verbs: [watch]}
- {apiGroups: [example.com], resources: [widgets, widgets/finalizers], verbs: ["*"]}
- {apiGroups: [""], resources: [secrets], resourceNames: [b, a], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, update, get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
---
apiVersion: v1
kind: Pod
metadata: {name: check, annotations: {helm.sh/hook: test}}
`

const operatorDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}}
`

const adminTemplates = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sum}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: root}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: all}
{{ lookup "v1" "Secret" "a" "b" | len | printf "# %d" }}
`

const leaderTemplates = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "issuer:leaderelection", namespace: kube-system}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [issuer], verbs: [get, update, patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "issuer:leaderelection", namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "issuer:leaderelection"}
subjects: [{kind: ServiceAccount, name: issuer, namespace: issuer}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "issuer:auth-reader", namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: issuer, namespace: issuer}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "issuer:config", namespace: kube-system}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, update]}]
`

// chartFolder writes a chart and returns its folder.
func chartFolder(t *testing.T, templates string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: widgets\nversion: 1.0.0\n", "values.yaml": "replicas: 1\n",
		"crds/widgets.yaml": operatorDefinition, "templates/all.yaml": templates,
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	return folder
}

func TestOperatorsPrints(t *testing.T) {
	folder := chartFolder(t, operatorTemplates)
	text, err := chart.Pack(folder)
	must(t, err)
	archive := filepath.Join(t.TempDir(), "widgets-1.0.0.tgz")
	must(t, os.WriteFile(archive, text, 0o644))
	for name, args := range map[string][]string{
		"the definitions of a folder":                   {"operators", "crds", folder},
		"the definitions of an archive":                 {"operators", "crds", archive},
		"the rights for a chart":                        {"operators", "rbac", archive, "-n", "widgets"},
		"the rights for a chart as JSON":                {"operators", "rbac", archive, "-n", "widgets", "-o", "json"},
		"the rights to elect a leader in kube-system":   {"operators", "rbac", chartFolder(t, leaderTemplates), "-n", "issuer"},
		"warnings of rights of an admin":                {"operators", "rbac", chartFolder(t, adminTemplates)},
		"the manifests alone for the admin of a member": {"operators", "rbac", archive, "-o", "jsonpath={.manifests}"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, args...)
			must(t, err)
			isWhatIsPrinted(t, "operators", name, out)
		})
	}
}

func TestOperatorsTakesValuesAndFlags(t *testing.T) {
	folder := chartFolder(t, `apiVersion: v1
kind: {{ .Values.kind }}
metadata: {name: a}
{{ if ne (printf "%s %s %s %v" .Release.Name .Release.Namespace .Capabilities.KubeVersion.Version (.Capabilities.APIVersions.Has "example.com/v1")) "web shop v1.31 true" }}{{ fail "flags" }}{{ end }}
`)
	first, second := filepath.Join(t.TempDir(), "a.yaml"), filepath.Join(t.TempDir(), "b.yaml")
	must(t, os.WriteFile(first, []byte("kind: ConfigMap"), 0o644))
	must(t, os.WriteFile(second, []byte("kind: Service"), 0o644))
	out, err := run(t, "operators", "rbac", folder, "-f", first, "--values", second, "--release-name", "web", "-n", "shop",
		"--kube-version", "1.31", "--api-versions", "example.com/v1")
	if err != nil || !strings.Contains(out, "- services\n") || strings.Contains(out, "configmaps") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOperatorsRefuses(t *testing.T) {
	folder := chartFolder(t, "a: {{ fail \"no image\" }}")
	list := filepath.Join(t.TempDir(), "list.yaml")
	must(t, os.WriteFile(list, []byte("- a"), 0o644))
	for name, c := range map[string]struct {
		args  []string
		wants string
	}{
		"a call without a chart":        {[]string{"rbac"}, "CHART is missing"},
		"a chart that does not exist":   {[]string{"crds", filepath.Join(folder, "none.tgz")}, "reading the chart: "},
		"a folder without a chart":      {[]string{"crds", filepath.Join(folder, "templates")}, "Chart.yaml file is missing"},
		"a file that is no archive":     {[]string{"crds", list}, "the chart is not a gzipped archive"},
		"a chart that does not render":  {[]string{"crds", folder}, "execution error at (widgets/templates/all.yaml:1:6): no image"},
		"values that do not exist":      {[]string{"rbac", folder, "-f", filepath.Join(folder, "none.yaml")}, "reading values: "},
		"values that are no map":        {[]string{"rbac", folder, "-f", list}, "list.yaml: reading values: "},
		"an output format that is none": {[]string{"rbac", folder, "-o", "table"}, `--output "table"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, append([]string{"operators"}, c.args...)...)
			if err == nil || !strings.Contains(err.Error(), c.wants) {
				t.Errorf("got %v, want %s", err, c.wants)
			}
		})
	}
}

func TestTheChartOfAMemberGrantsWhatOperatorsRBACPrints(t *testing.T) {
	text, err := run(t, "operators", "rbac", chartFolder(t, operatorTemplates), "-n", "widgets", "-o", "json")
	must(t, err)
	var printed struct {
		Values    map[string]any                `json:"values"`
		Manifests unstructured.UnstructuredList `json:"manifests"`
	}
	must(t, json.Unmarshal([]byte(text), &printed))
	content := func(objects []unstructured.Unstructured) map[string]any {
		out := map[string]any{}
		for _, o := range objects {
			rest := map[string]any{}
			for _, field := range []string{"rules", "roleRef", "subjects"} {
				if value, ok := o.Object[field]; ok {
					rest[field] = value
				}
			}
			out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = rest
		}
		return out
	}
	var rendered []unstructured.Unstructured
	for _, o := range charts.Render(t, "hanse-member/templates/operators.yaml", printed.Values) {
		rendered = append(rendered, *o)
	}
	if diff := cmp.Diff(content(printed.Manifests.Items), content(rendered)); diff != "" {
		t.Errorf("roles (-manifests +chart):\n%s", diff)
	}
}
