package chart

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/bundles/chart/charttest"
)

// files maps the path of each file in the folder of a chart to the content of the file.
type files map[string]string

const chartYAML = "apiVersion: v2\nname: app\nversion: 1.2.3\nappVersion: v9\n"

// with returns the files of a small chart, and further files.
func with(others files) files {
	out := files{"Chart.yaml": chartYAML}
	maps.Copy(out, others)
	return out
}

func input(chart files) Input {
	return Input{Archive: charttest.Archive("app", chart), Release: "web", Namespace: "shop"}
}

func configMap(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  value: " + data + "\n"
}

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, creationTimestamp: null}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
status: {conditions: []}
`

// names returns the objects in the form kind namespace/name=value.
func names(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objects {
		text := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		if value, found, _ := unstructured.NestedString(o.Object, "data", "value"); found {
			text += "=" + value
		}
		out = append(out, text)
	}
	return out
}

func TestRender(t *testing.T) {
	subchart := func(version string) string { return "apiVersion: v2\nname: db\nversion: " + version + "\n" }
	withDependency := func(more string) string {
		return chartYAML + "dependencies:\n- name: db\n  version: 1.x\n  repository: https://example.com\n" + more
	}
	value := configMap("app", `{{ .Values.a | quote }}`)
	for name, c := range map[string]struct {
		chart              files
		change             func(*Input)
		definitions, wants []string
	}{
		"a namespaced object without a namespace gets that of the release": {
			chart: with(files{"templates/a.yaml": configMap("{{ .Release.Name }}", "x")}),
			wants: []string{"ConfigMap shop/web=x"},
		},
		"an object keeps the namespace that it has": {
			chart: with(files{"templates/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: other}\n"}),
			wants: []string{"Secret other/a"},
		},
		"a cluster-scoped object loses a namespace": {
			chart: with(files{"templates/a.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, namespace: other}\n"}),
			wants: []string{"ClusterRole /a"},
		},
		"an object of an unknown kind stays as it is": {
			chart: with(files{"templates/a.yaml": "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: a}\n"}),
			wants: []string{"Gadget /a"},
		},
		"an object of a kind that the chart defines gets the namespace of the release": {
			chart: with(files{
				"crds/widgets.yaml": definition,
				"templates/a.yaml":  "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n",
			}),
			definitions: []string{"CustomResourceDefinition /widgets.example.com"},
			wants:       []string{"Widget shop/a"},
		},
		"definitions of templates are definitions, too": {
			chart:       with(files{"templates/crds.yaml": definition}),
			definitions: []string{"CustomResourceDefinition /widgets.example.com"},
		},
		"a file of crds is no template": {
			chart: with(files{"crds/a.yaml": configMap("a", "'{{ now }}'")}),
			wants: []string{"ConfigMap shop/a={{ now }}"},
		},
		"notes, partial templates and empty templates are no objects": {
			chart: with(files{
				"templates/NOTES.txt": "It is {{ now }}.", "templates/_helpers.tpl": `{{ define "name" }}helped{{ end }}`,
				"templates/empty.yaml": "{{ if false }}x{{ end }}", "templates/comment.yaml": "# nothing\n---\n# here",
				"templates/a.yaml": configMap(`{{ include "name" . }}`, "x"),
			}),
			wants: []string{"ConfigMap shop/helped=x"},
		},
		"a document may begin directly behind its separator, as helm allows": {
			chart: with(files{"templates/a.yaml": "---" + configMap("a", "x") + "---" + configMap("b", "x")}),
			wants: []string{"ConfigMap shop/a=x", "ConfigMap shop/b=x"},
		},
		"the items of a list are objects": {
			chart: with(files{"templates/a.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n"}),
			wants: []string{"Secret shop/a", "Secret shop/b"},
		},
		"the chart's own values hold without others": {
			chart: with(files{"values.yaml": "a: chart", "templates/a.yaml": value}),
			wants: []string{"ConfigMap shop/app=chart"},
		},
		"later values win over earlier ones and over the chart's": {
			chart:  with(files{"values.yaml": "a: chart", "templates/a.yaml": value}),
			change: func(in *Input) { in.Values = []map[string]any{{"a": "first"}, {"a": "second"}} },
			wants:  []string{"ConfigMap shop/app=second"},
		},
		"a null takes a value of the chart away": {
			chart:  with(files{"values.yaml": "a: chart", "templates/a.yaml": value}),
			change: func(in *Input) { in.Values = []map[string]any{{"a": nil}} },
			wants:  []string{"ConfigMap shop/app"},
		},
		"the name of the chart is the name of the release if none is given": {
			chart:  with(files{"templates/a.yaml": configMap("{{ .Release.Name }}", "x")}),
			change: func(in *Input) { in.Release = "" },
			wants:  []string{"ConfigMap shop/app=x"},
		},
		"a subchart is rendered with its values": {
			chart: with(files{
				"Chart.yaml": withDependency(""), "values.yaml": "db: {a: parent}", "charts/db/Chart.yaml": subchart("1.4.0"),
				"charts/db/values.yaml": "a: own", "charts/db/templates/a.yaml": value,
			}),
			wants: []string{"ConfigMap shop/app=parent"},
		},
		"a subchart in an archive is rendered": {
			chart: with(files{
				"Chart.yaml":          withDependency(""),
				"charts/db-1.4.0.tgz": string(charttest.Archive("app", files{"Chart.yaml": subchart("1.4.0"), "templates/a.yaml": configMap("db", "x")})),
			}),
			wants: []string{"ConfigMap shop/db=x"},
		},
		"a subchart whose condition is false is left out, with its definitions": {
			chart: with(files{
				"Chart.yaml": withDependency("  condition: db.enabled\n"), "values.yaml": "db: {enabled: false}",
				"charts/db/Chart.yaml": subchart("1.4.0"), "charts/db/crds/a.yaml": definition, "charts/db/templates/a.yaml": value,
				"templates/a.yaml": configMap("a", "x"),
			}),
			wants: []string{"ConfigMap shop/a=x"},
		},
		"a subchart that is off by a tag need not be in the archive": {
			chart:  with(files{"Chart.yaml": withDependency("  tags: [storage]\n"), "templates/a.yaml": configMap("a", "x")}),
			change: func(in *Input) { in.Values = []map[string]any{{"tags": map[string]any{"storage": false}}} },
			wants:  []string{"ConfigMap shop/a=x"},
		},
		"a subchart has definitions in its folder crds, and the chart objects of their kind": {
			chart: with(files{
				"Chart.yaml": withDependency(""), "charts/db/Chart.yaml": subchart("1.4.0"), "charts/db/crds/a.yaml": definition,
				"templates/a.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n",
			}),
			definitions: []string{"CustomResourceDefinition /widgets.example.com"},
			wants:       []string{"Widget shop/a"},
		},
		"a subchart of definitions that are templates is rendered by a value": {
			chart: with(files{
				"Chart.yaml": withDependency("  condition: crds.install\n"), "values.yaml": "crds: {install: true}",
				"charts/db/Chart.yaml": subchart("1.4.0"), "charts/db/templates/a.yaml": definition,
			}),
			definitions: []string{"CustomResourceDefinition /widgets.example.com"},
		},
		"a library chart that the chart depends on has templates to include, and no objects": {
			chart: with(files{
				"Chart.yaml": withDependency(""), "charts/db/Chart.yaml": subchart("1.4.0") + "type: library\n",
				"charts/db/templates/_names.tpl": `{{ define "db.name" }}{{ .Release.Name }}-db{{ end }}`,
				"charts/db/templates/own.yaml":   configMap("of-the-library", "x"),
				"templates/a.yaml":               configMap(`{{ include "db.name" . }}`, "x"),
			}),
			wants: []string{"ConfigMap shop/web-db=x"},
		},
		"a value that is a template is rendered by tpl, also if it includes another one": {
			chart: with(files{
				"values.yaml":            `a: '{{ include "greet" . }} of {{ .Chart.Name }} {{ tpl .Values.b . }}'` + "\nb: '{{ .Release.Namespace }}'\n",
				"templates/_helpers.tpl": `{{ define "greet" }}{{ .Release.Name }}{{ end }}`, "templates/a.yaml": configMap("a", `{{ tpl .Values.a . | quote }}`),
			}),
			wants: []string{"ConfigMap shop/a=web of app shop"},
		},
		"a subchart with an alias is rendered under that name": {
			chart: with(files{
				"Chart.yaml": withDependency("  alias: cache\n"), "values.yaml": "cache: {a: aliased}",
				"charts/db/Chart.yaml": subchart("1.4.0"), "charts/db/templates/a.yaml": value,
			}),
			wants: []string{"ConfigMap shop/app=aliased"},
		},
		"a chart of apiVersion v1 has its dependencies in requirements.yaml": {
			chart: files{
				"Chart.yaml":           "apiVersion: v1\nname: app\nversion: 1.2.3\n",
				"requirements.yaml":    "dependencies:\n- {name: db, version: 1.x, repository: https://example.com}\n",
				"charts/db/Chart.yaml": subchart("1.4.0"), "charts/db/templates/a.yaml": configMap("db", "x"),
			},
			wants: []string{"ConfigMap shop/db=x"},
		},
		"templates see the Kubernetes version and the API versions of the input": {
			chart: with(files{"templates/a.yaml": configMap("a", `"{{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has "example.com/v1" }} {{ .Capabilities.APIVersions.Has "apps/v1" }}"`)}),
			change: func(in *Input) {
				in.Kubernetes, in.APIVersions = "v1.31.4-gke.1", []string{"example.com/v1"}
			},
			wants: []string{"ConfigMap shop/a=31 true false"},
		},
		"templates see the API versions of Kubernetes if the input has none": {
			chart: with(files{"templates/a.yaml": configMap("a", `"{{ .Capabilities.KubeVersion }} {{ .Capabilities.APIVersions.Has "apps/v1" }}"`)}),
			wants: []string{"ConfigMap shop/a=" + DefaultKubernetes + " true"},
		},
		"a template reads files of the archive and no others": {
			chart: with(files{
				"config/a.txt":     "inside",
				"templates/a.yaml": configMap("a", `"{{ .Files.Get "config/a.txt" }} {{ .Files.Get "/etc/passwd" }}{{ .Files.Get "../../../etc/passwd" }}"`),
			}),
			wants: []string{"ConfigMap shop/a=inside "},
		},
		"a template looks up no address and no object": {
			chart: with(files{"templates/a.yaml": configMap("a", `"{{ getHostByName "localhost" }}{{ len (lookup "v1" "Secret" "shop" "a") }}"`)}),
			wants: []string{"ConfigMap shop/a=0"},
		},
		"a comment with the time changes no object": {
			chart: with(files{"templates/a.yaml": "# made at {{ now }}\n" + configMap("a", "x")}),
			wants: []string{"ConfigMap shop/a=x"},
		},
		"entries of git archive are left out": {
			change: func(in *Input) {
				in.Archive = charttest.Entries([]tar.Header{
					{Name: "pax_global_header", Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
					{Name: "./app/", Typeflag: tar.TypeDir}, {Name: "./app/Chart.yaml", Typeflag: tar.TypeReg},
					{Name: "./app/templates/a.yaml", Typeflag: tar.TypeReg},
				}, []string{"", "", chartYAML, configMap("a", "x")})
			},
			wants: []string{"ConfigMap shop/a=x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.chart)
			if c.change != nil {
				c.change(&in)
			}
			got, err := Render(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.definitions, names(got.Definitions)); diff != "" {
				t.Errorf("definitions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wants, names(got.Objects)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if again, err := Render(t.Context(), in); err != nil || !cmp.Equal(got, again) {
				t.Errorf("rendered again: %v\n%s", err, cmp.Diff(got, again))
			}
		})
	}
}

func TestRenderNamesTheChart(t *testing.T) {
	in := input(with(files{"crds/a.yaml": definition}))
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(in.Archive))
	in.Digest = digest
	got, err := Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "app" || got.Version != "1.2.3" || got.AppVersion != "v9" || got.Digest != digest {
		t.Errorf("got %s %s %s %s", got.Name, got.Version, got.AppVersion, got.Digest)
	}
	if _, found := got.Definitions[0].Object["status"]; found {
		t.Error("the definition has a status")
	}
}

func TestRenderDoesNotChangeTheInput(t *testing.T) {
	in := input(with(files{"values.yaml": "a: {b: 1, c: 2}", "templates/a.yaml": configMap("a", `{{ set .Values.a "b" 7 | toJson | quote }}`)}))
	in.Values = []map[string]any{{"a": map[string]any{"b": "mine"}}, {"a": map[string]any{"c": nil}}}
	if _, err := Render(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"a": map[string]any{"b": "mine"}}, {"a": map[string]any{"c": nil}}}
	if diff := cmp.Diff(want, in.Values); diff != "" {
		t.Errorf("values (-before +after):\n%s", diff)
	}
}

func TestRenderReadsHooks(t *testing.T) {
	hook := func(name, hook, weight string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, annotations: {helm.sh/hook: %q, helm.sh/hook-weight: %q}}\n", name, hook, weight)
	}
	got, err := Render(t.Context(), input(with(files{
		"templates/a.yaml":     hook("install", "pre-install, Pre-Upgrade", "5"),
		"templates/b.yaml":     hook("early", "post-delete", "-3"),
		"templates/c.yaml":     hook("test", "test-success", "none"),
		"templates/d.yaml":     hook("old", "crd-install", "9"),
		"templates/crds.yaml":  strings.Replace(definition, "creationTimestamp: null", "annotations: {helm.sh/hook: pre-install}", 1),
		"templates/plain.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: install}\n",
	})))
	if err != nil {
		t.Fatal(err)
	}
	type hookOf struct {
		Name                      string
		Events                    []string
		Weight                    int
		Test, Definition, Ignored bool
	}
	var hooks []hookOf
	for _, h := range got.Hooks {
		hooks = append(hooks, hookOf{h.Object.GetNamespace() + "/" + h.Object.GetName(), h.Events, h.Weight, h.Test, h.Definition, h.Ignored})
	}
	want := []hookOf{
		{Name: "shop/early", Events: []string{"post-delete"}, Weight: -3},
		{Name: "shop/test", Events: []string{"test"}, Test: true},
		{Name: "/widgets.example.com", Events: []string{"pre-install"}, Definition: true},
		{Name: "shop/install", Events: []string{"pre-install", "pre-upgrade"}, Weight: 5},
		{Name: "shop/old", Events: []string{"crd-install"}, Weight: 9, Ignored: true},
	}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ServiceAccount shop/install"}, names(got.Objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestRenderNamesTemplatesThatCallLookup(t *testing.T) {
	got, err := Render(t.Context(), input(with(files{
		"templates/if.yaml":             `{{ if not (lookup "v1" "Secret" "a" "b") }}{{ end }}`,
		"templates/chain.yaml":          `{{ $a := (lookup "v1" "Secret" "a" "b").data }}`,
		"templates/else.yaml":           `{{ with .Values.a }}{{ else }}{{ range $i, $n := lookup "v1" "Secret" "a" "" }}{{ end }}{{ end }}`,
		"templates/template.yaml":       `{{ define "a" }}{{ end }}{{ template "a" (lookup "v1" "Secret" "a" "b") }}`,
		"templates/_helpers.tpl":        `{{ define "look" }}{{ lookup "v1" "Secret" "a" "b" | toJson }}{{ end }}`,
		"templates/text.yaml":           `# {{ "lookup" }} lookup {{/* lookup */}}{{ include "look" . }}`,
		"charts/db/Chart.yaml":          "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"templates/NOTES.txt":           `{{ lookup "v1" "Secret" "a" "b" }}`,
		"charts/db/templates/NOTES.txt": `{{ define "look too" }}{{ lookup "v1" "Secret" "a" "b" }}{{ end }}`,
		"charts/db/templates/pipe.yaml": `{{ "b" | lookup "v1" "Secret" "a" | len | printf "# %d" }}`,
	})))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"app/charts/db/templates/NOTES.txt", "app/charts/db/templates/pipe.yaml", "app/templates/_helpers.tpl", "app/templates/chain.yaml",
		"app/templates/else.yaml", "app/templates/if.yaml", "app/templates/template.yaml",
	}
	if diff := cmp.Diff(want, got.Lookups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPackLeavesOutWhatHelmIgnores(t *testing.T) {
	folder := t.TempDir()
	for name, text := range with(files{
		"templates/a.yaml": configMap("a", "x"), "templates/secret.yaml": configMap("b", "x"), ".helmignore": "secret.yaml\n",
	}) {
		if err := errors.Join(os.MkdirAll(filepath.Join(folder, path.Dir(name)), 0o755), os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := Pack(folder)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Render(t.Context(), Input{Archive: archive, Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap shop/a=x"}, names(got.Objects)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, err := Pack(folder); err != nil || !bytes.Equal(archive, again) {
		t.Errorf("packed again, the archive differs: %v", err)
	}
	if _, err := Pack(filepath.Join(folder, "templates")); err == nil || !strings.Contains(err.Error(), "Chart.yaml file is missing") {
		t.Errorf("a folder without a chart: %v", err)
	}
}

func TestParseValues(t *testing.T) {
	got, err := ParseValues([]byte("a: {b: 1, c: 2}\n---\na: {b: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": "x", "c": 2.0}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ParseValues([]byte("- a")); err == nil || !strings.HasPrefix(err.Error(), "reading values: ") {
		t.Errorf("a list: %v", err)
	}
}

func TestTheDefaultVersionIsThatOfTheClientLibraries(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`k8s\.io/client-go v0\.(\d+)\.`).FindSubmatch(text)
	if found == nil || DefaultKubernetes != "v1."+string(found[1])+".0" {
		t.Errorf("DefaultKubernetes is %s, and go.mod has %s", DefaultKubernetes, found)
	}
}
