package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hanse-dev/hanse/view/preview"
)

var plansDir = filepath.Join("testdata", "plan") + string(filepath.Separator)

// plannedFrom runs plan on the files of the tests, in place of a hub. It returns the output and the exit code.
func plannedFrom(t *testing.T, args ...string) (stdout string, code int, err error) {
	t.Helper()
	return planned(t, append([]string{"--from", plansDir + "hub.yaml"}, args...)...)
}

func planned(t *testing.T, args ...string) (stdout string, code int, err error) {
	t.Helper()
	args = append([]string{"plan"}, args...)
	var out, errs bytes.Buffer
	root := New("hansectl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), ExitCode(err), err
}

func TestAPlanIsPrintedAsInTestdata(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
	}{
		"a folder":                              {[]string{"-f", plansDir + "changes"}, 0},
		"a folder as markdown":                  {[]string{"-f", plansDir + "changes", "-o", "markdown"}, 0},
		"a folder as JSON":                      {[]string{"-f", plansDir + "changes", "-o", "json"}, 0},
		"a folder in one line":                  {[]string{"-f", plansDir + "changes", "--summary"}, 0},
		"a policy as diffs":                     {[]string{"-f", plansDir + "changes/policy.yaml", "--diff"}, 0},
		"a folder as diffs":                     {[]string{"-f", plansDir + "changes", "--diff"}, 0},
		"a policy as diffs in markdown":         {[]string{"-f", plansDir + "changes/policy.yaml", "--diff", "-o", "markdown"}, 0},
		"a policy":                              {[]string{"-f", plansDir + "changes/policy.yaml", "--detailed-exitcode"}, 2},
		"a kustomization":                       {[]string{"-k", plansDir + "kustomization"}, 0},
		"replicas that move":                    {[]string{"-f", plansDir + "shares.yaml"}, 0},
		"a label of a cluster":                  {[]string{"-f", plansDir + "cluster.yaml"}, 0},
		"a change that goes in waves":           {[]string{"-f", plansDir + "waves.yaml"}, 0},
		"a change that restarts pods":           {[]string{"-f", plansDir + "restarts.yaml"}, 0},
		"nothing":                               {[]string{"-f", plansDir + "hub.yaml", "--detailed-exitcode"}, 0},
		"what admission refuses":                {[]string{"-f", plansDir + "refused.yaml"}, 1},
		"what admission refuses, exit code too": {[]string{"-f", plansDir + "refused.yaml", "--summary", "--detailed-exitcode"}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text, code, err := plannedFrom(t, tc.args...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d: %v", code, tc.code, err)
			}
			for line := range strings.Lines(text) {
				if width := len([]rune(strings.TrimSuffix(line, "\n"))); width > 100 && !slices.Contains(tc.args, "-o") && !slices.Contains(tc.args, "--diff") && !strings.HasPrefix(line, "Plan: ") {
					t.Errorf("%d columns: %s", width, line)
				}
			}
			for _, secret := range []string{"aHVudGVyMg", "hunter2", "correct horse", "Y29ycmVjdCBob3JzZQ"} {
				if strings.Contains(text, secret) {
					t.Errorf("the value %q of a Secret is shown", secret)
				}
			}
			got := "$ hansectl plan --from hub.yaml " + strings.Join(tc.args, " ") + "\n" + text
			isWhatIsPrinted(t, "plan", name, strings.ReplaceAll(got, plansDir, ""))
		})
	}
}

func TestThePlanOfStandardInputIsThatOfTheFile(t *testing.T) {
	file, err := os.Open(plansDir + "changes/policy.yaml")
	must(t, err)
	before := os.Stdin
	t.Cleanup(func() { os.Stdin = before; _ = file.Close() })
	os.Stdin = file
	got, _, err := plannedFrom(t, "-f", "-")
	must(t, err)
	want, _, err := plannedFrom(t, "-f", plansDir+"changes/policy.yaml")
	must(t, err)
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestTheDocumentedPlansAreWhatIsPrinted(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	for page, names := range map[string][]string{
		"plan.md":          {"a-folder.txt", "what-admission-refuses.txt", "replicas-that-move.txt", "a-change-that-goes-in-waves.txt", "a-change-that-restarts-pods.txt", "a-region-is-lost.txt", "a-policy-as-diffs.txt"},
		"tasks/preview.md": {"a-policy.txt"},
		"tasks/gitops.md":  {"a-folder-in-one-line.txt"},
	} {
		text, err := os.ReadFile(filepath.Join(docs, page))
		must(t, err)
		for _, name := range names {
			printed, err := os.ReadFile(plansDir + name)
			must(t, err)
			wants(t, string(text), string(printed))
		}
	}
}

func TestPlanNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	one, other := file("one.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}"), file("other.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}")
	tests := map[string]struct {
		args []string
		want string
	}{
		"files and a kustomization":             {[]string{"-f", one, "-k", plansDir + "kustomization"}, "only one of -f or -k can be specified"},
		"a file that is not there":              {[]string{"-f", "mars.yaml"}, `the path "mars.yaml" does not exist`},
		"a file that is no YAML":                {[]string{"-f", file("broken.yaml", "a: [")}, "broken.yaml"},
		"a file that is no object":              {[]string{"-f", file("text.yaml", "a: b")}, "text.yaml"},
		"an object without a name":              {[]string{"-f", file("nameless.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop}}")}, "nameless.yaml: a ConfigMap has no name"},
		"a kind that the hub does not have":     {[]string{"-f", file("kind.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placment, metadata: {name: a, namespace: b}}")}, "kind.yaml: Placment.hanse.dev b/a: the hub has no kind Placment: it has Bundle, ClusterBundle, ClusterOverridePolicy, ClusterPlacement"},
		"an object that its definition refuses": {[]string{"-f", file("rule.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {}}}")}, "rule.yaml: Placement.hanse.dev b/a: spec.clusters: Invalid value: set names, labelSelector or expression"},
		"a text instead of a list":              {[]string{"-f", file("names.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {names: eu-fra-1}}}")}, `names.yaml: Placement.hanse.dev b/a: spec.clusters.names: Invalid value: "string": spec.clusters.names in body must be of type array: "string"`},
		"a field that there is not":             {[]string{"-f", file("field.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], cluster: {names: [eu-fra-1]}}}")}, `field.yaml: Placement.hanse.dev b/a: strict decoding error: unknown field "spec.cluster"`},
		"two files with the same object":        {[]string{"-f", one, "-f", other}, other + ": ConfigMap shop/a is there twice, first in " + one},
		"a binding":                             {[]string{"-f", file("binding.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: ResourceBinding, metadata: {name: a, namespace: b}, spec: {objectRef: {apiVersion: v1, kind: ConfigMap, name: a, uid: x}}}")}, errBindings.Error()},
		"an object of another namespace":        {[]string{"-f", one, "-n", "monitoring"}, "one.yaml: ConfigMap shop/a is not in namespace monitoring"},
		"a kustomization that is none":          {[]string{"-k", dir}, dir},
		"an output format that there is not":    {[]string{"-f", one, "-o", "xml"}, `--output "xml": want markdown, json, yaml or jsonpath=TEMPLATE`},
		"members without a hub":                 {[]string{"-f", one, "--live"}, errFromLive.Error()},
		"an argument":                           {[]string{"-f", one, "shop"}, `"shop"`},
		"a flag that there is not":              {[]string{"--file", one}, "unknown flag: --file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, code, err := plannedFrom(t, tc.args...)
			refused(t, err, tc.want)
			if code != 1 || out != "" {
				t.Errorf("exit code %d, output %q", code, out)
			}
		})
	}
}

func TestAPlanIsStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.json")
	_, _, err := plannedFrom(t, "-f", plansDir+"changes", "--out", path, "--summary")
	must(t, err)
	stored, err := readPlan(path)
	must(t, err)
	kinds := map[string]int{}
	for _, v := range stored.Versions {
		kinds[v.Object.Kind]++
	}
	if kinds["MemberCluster"] != 12 || kinds["Placement"] != 5 || kinds["Prometheus"] != 1 || stored.Plan.Summary.Objects == 0 {
		t.Errorf("stored are the versions of %v and %+v", kinds, stored.Plan.Summary)
	}
	for name, text := range map[string]string{"text": "a", "another format": `{"format": "hanse.dev/plan/0"}`} {
		t.Run("a file with "+name+" is no plan", func(t *testing.T) {
			must(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := run(t, "plan", "show", path)
			refused(t, err, path)
			if ExitCode(err) != 1 {
				t.Errorf("exit code %d", ExitCode(err))
			}
		})
	}
}

// planOf returns the plan in an output of -o json.
func planOf(t *testing.T, text string) preview.Plan {
	t.Helper()
	var p preview.Plan
	if err := json.Unmarshal([]byte(jsonIn(text)), &p); err != nil {
		t.Fatal(errors.Join(err, errors.New(text)))
	}
	return p
}

// jsonIn returns an output of -o json without the lines about the progress of a slow run.
func jsonIn(text string) string { return text[max(0, strings.Index(text, "{")):] }
