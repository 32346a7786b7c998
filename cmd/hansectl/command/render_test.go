package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// rendered runs render on the files of the tests.
func rendered(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	args = append([]string{"render", "--offline", "-f", filepath.Join("testdata", "render", "fleet.yaml")}, args...)
	var out, errs bytes.Buffer
	root := New("hansectl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestAnObjectIsRendered(t *testing.T) {
	dir := filepath.Join("testdata", "render") + string(filepath.Separator)
	policy, guarded := dir+"policy.yaml", dir+"guarded.yaml"
	tests := map[string]struct {
		args   []string
		stderr string
		err    string
	}{
		"for the clusters of a placement":         {args: []string{"prometheus", "web", "-n", "monitoring"}},
		"for every cluster":                       {args: []string{"prometheus", "web", "--all"}},
		"for some clusters":                       {args: []string{"prometheuses.monitoring.coreos.com/web", "--cluster", "cn-sha-1", "--cluster", "eu-fra-1"}},
		"with another policy":                     {args: []string{"prometheus", "web", "--cluster", "ap-se-1", "-f", policy}},
		"without a rule whose test is not met":    {args: []string{"prometheus", "web", "--cluster", "cn-sha-1", "-f", guarded}},
		"with its share of the replicas":          {args: []string{"deployment", "web"}, stderr: "cn-sha-1: OverridePolicy shop/scale, rule \"shanghai-is-busy\": path /spec/replicas is divided between clusters by the placement", err: "cannot be rendered for 1 of 3 clusters"},
		"as JSON":                                 {args: []string{"prometheus", "web", "--all", "-o", "json"}},
		"as YAML, with what cannot be":            {args: []string{"deployment", "web", "-o", "yaml"}, stderr: "cn-sha-1: ", err: "cannot be rendered for 1 of 3 clusters"},
		"without labels that the hub denies":      {args: []string{"prometheus", "web", "--cluster", "ap-se-1", "--denied-metadata-prefixes", "app"}},
		"though no placement of the files has it": {args: []string{"configmap", "web", "-n", "shop", "--cluster", "ap-se-1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text, stderr, err := rendered(t, tc.args...)
			if tc.err == "" {
				must(t, err)
			} else {
				refused(t, err, tc.err)
			}
			if tc.stderr == "" != (stderr == "") {
				t.Errorf("standard error %q", stderr)
			}
			wants(t, stderr, tc.stderr)
			got := "$ hansectl render --offline -f fleet.yaml " + strings.ReplaceAll(strings.Join(tc.args, " "), dir, "") + "\n" + text
			isWhatIsPrinted(t, "render", name, got)
		})
	}
}

func TestTheDocumentedRenderingsAreWhatIsPrinted(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "hansectl.md"))
	must(t, err)
	for _, name := range []string{"for-the-clusters-of-a-placement.txt", "with-another-policy.txt"} {
		printed, err := os.ReadFile(filepath.Join("testdata", "render", name))
		must(t, err)
		wants(t, string(docs), string(printed))
	}
}

func TestRenderOfflineNeedsClusters(t *testing.T) {
	files := filepath.Join(t.TempDir(), "fleet.yaml")
	must(t, os.WriteFile(files, []byte(`
{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}
---
{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: web, namespace: shop}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {labelSelector: {}}}}
`), 0o600))
	for _, flags := range [][]string{nil, {"--all"}, {"--cluster", "eu-fra-1"}} {
		out, err := run(t, append([]string{"render", "--offline", "-f", files, "configmap", "web"}, flags...)...)
		refused(t, err, errNoClusterInFiles.Error())
		exits(t, err, 1)
		if out != "" {
			t.Errorf("with %v the output is %q", flags, out)
		}
	}
}

// The hub's webhook and hansectl render --offline refuse the same policies.
func TestRenderOfflineRefusesWhatTheHubRefuses(t *testing.T) {
	const around = `
{apiVersion: hanse.dev/v1alpha1, kind: MemberCluster, metadata: {name: eu-fra-1}, spec: {connection: {type: Direct, direct: {kubeconfigSecretRef: {name: eu}}}, allowedNamespaces: {from: All}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: web, namespace: shop}, spec: {size: 1}}
---
`
	policy := func(rule string) string {
		return `{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: a, namespace: shop}, spec: {resourceSelectors: [{apiGroup: apps, kind: Deployment}, {apiGroup: example.com, kind: Widget}], rules: [` + rule + `]}}`
	}
	tests := map[string]struct{ kind, policy, stderr, err string }{
		"a number of replicas that is a word": {"deployment", policy("{name: r, mergePatch: {spec: {replicas: five}}}"),
			`eu-fra-1: OverridePolicy shop/a, rule "r": the manifest does not fit the definition of its kind: spec.replicas must be of type int32, not string`, "cannot be rendered for 1 of 1 cluster"},
		"a value that the definition in the files refuses": {"widget", policy("{name: r, mergePatch: {spec: {size: large}}}"),
			`eu-fra-1: OverridePolicy shop/a, rule "r": the manifest does not fit the definition of its kind: spec.size: Invalid value: "string"`, "cannot be rendered for 1 of 1 cluster"},
		"an expression that does not compile": {"deployment", policy("{name: r, patches: [{op: add, path: /spec/replicas, expression: nothing}]}"), "", "spec.rules[0].patches[0].expression"},
		"a placement with a toleration without a key": {"deployment", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: shop}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {labelSelector: {}, tolerations: [{value: v}]}}}",
			"", "spec.clusters.tolerations[0].key: is required with operator Equal"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "fleet.yaml")
			must(t, os.WriteFile(file, []byte(around+tc.policy), 0o600))
			var out, errs bytes.Buffer
			root := New("hansectl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs})
			root.SetArgs([]string{"render", "--offline", "-f", file, tc.kind, "web", "--all"})
			refused(t, root.ExecuteContext(t.Context()), tc.err)
			wants(t, errs.String(), tc.stderr)
			if out.Len() > 0 {
				t.Errorf("output %q", out.String())
			}
		})
	}
}

func TestRenderNamesWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an object that is not there":     {[]string{"prometheus", "db"}, "the files have no prometheus db"},
		"an object that is there twice":   {[]string{"configmap", "web"}, "the files have ConfigMap shop/web and ConfigMap monitoring/web: name the group, as in KIND.GROUP, or the namespace"},
		"an object in another namespace":  {[]string{"prometheus", "web", "-n", "shop"}, "the files have no prometheus web"},
		"a cluster that is not there":     {[]string{"prometheus", "web", "--cluster", "mars-1"}, "no MemberCluster has the name mars-1: there are ap-se-1, cn-sha-1, eu-fra-1"},
		"all clusters and one":            {[]string{"prometheus", "web", "--cluster", "ap-se-1", "--all"}, "--all and --cluster exclude each other"},
		"an object that no placement has": {[]string{"configmap", "web", "-n", "shop"}, "the object is not placed: choose clusters with --cluster or --all"},
		"no name":                         {[]string{"prometheus"}, "NAME is missing"},
		"an output format there is not":   {[]string{"prometheus", "web", "-o", "xml"}, `--output "xml": want json, yaml or jsonpath=TEMPLATE`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, _, err := rendered(t, tc.args...)
			refused(t, err, tc.want)
			if out != "" {
				t.Errorf("output %q", out)
			}
		})
	}
}
