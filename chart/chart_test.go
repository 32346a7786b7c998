package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// files of a chart, by their paths in its folder.
type files map[string]string

const chartYAML = "apiVersion: v2\nname: app\nversion: 1.2.3\nappVersion: v9\n"

// with returns the files of a small chart and others.
func with(others files) files {
	out := files{"Chart.yaml": chartYAML}
	maps.Copy(out, others)
	return out
}

// packed returns a chart as an archive.
func packed(chart files) []byte {
	var headers []tar.Header
	var contents []string
	for _, name := range slices.Sorted(maps.Keys(chart)) {
		headers = append(headers, tar.Header{Name: "app/" + name, Typeflag: tar.TypeReg, Mode: 0o644})
		contents = append(contents, chart[name])
	}
	return archived(headers, contents)
}

func archived(headers []tar.Header, contents []string) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	entries := tar.NewWriter(zipped)
	for i, header := range headers {
		header.Size = int64(len(contents[i]))
		err := entries.WriteHeader(&header)
		if err == nil {
			_, err = entries.Write([]byte(contents[i]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := errors.Join(entries.Close(), zipped.Close()); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func input(chart files) Input {
	return Input{Archive: packed(chart), Release: "web", Namespace: "shop"}
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

// names are the objects as kind namespace/name=value.
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
				"charts/db-1.4.0.tgz": string(packed(files{"Chart.yaml": subchart("1.4.0"), "templates/a.yaml": configMap("db", "x")})),
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
				in.Archive = archived([]tar.Header{
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

func TestRenderKeepsTheInput(t *testing.T) {
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

func TestRenderRefuses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(secret, []byte(`{"type": "object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	header := func(h tar.Header) func(*Input) {
		return func(in *Input) {
			in.Archive = archived([]tar.Header{{Name: "app/Chart.yaml", Typeflag: tar.TypeReg}, h}, []string{chartYAML, ""})
		}
	}
	file := func(name string) func(*Input) { return header(tar.Header{Name: name, Typeflag: tar.TypeReg}) }
	nested := string(packed(with(nil)))
	for range MostSubchartDepth {
		nested = string(packed(with(files{"charts/app.tgz": nested})))
	}
	many := files{}
	for i := range MostFiles {
		many[fmt.Sprintf("files/%d", i)] = ""
	}
	for name, c := range map[string]struct {
		chart  files
		change func(*Input)
		wants  string
	}{
		"an archive of another digest":        {change: func(in *Input) { in.Digest = "sha256:00" }, wants: "the archive has the digest sha256:"},
		"an archive that is too large":        {change: func(in *Input) { in.Archive = make([]byte, MostArchiveBytes+1) }, wants: "at most 4194304 are allowed"},
		"a file that is no archive":           {change: func(in *Input) { in.Archive = []byte(chartYAML) }, wants: "reading the archive: it is not a gzipped archive"},
		"an archive that is cut":              {change: func(in *Input) { in.Archive = in.Archive[:len(in.Archive)/2] }, wants: "reading the archive: "},
		"an archive that unpacks to too much": {chart: with(files{"a": strings.Repeat("a", MostUnpackedBytes)}), wants: "it has more than 33554432 bytes unpacked"},
		"subcharts that unpack to too much": {
			chart: with(files{
				"charts/a.tgz": string(packed(with(files{"a": strings.Repeat("a", MostUnpackedBytes/2)}))),
				"charts/b.tgz": string(packed(with(files{"a": strings.Repeat("a", MostUnpackedBytes/2)}))),
			}),
			wants: "it has more than 33554432 bytes unpacked",
		},
		"too many files":                   {chart: with(many), wants: "it has more than 2000 files"},
		"too many archives in each other":  {chart: with(files{"charts/app.tgz": nested}), wants: "more than 5 archives are in each other"},
		"a path that is too deep":          {chart: with(files{strings.Repeat("a/", MostPathDepth) + "b": ""}), wants: "has more than 24 names"},
		"a symbolic link":                  {change: header(tar.Header{Name: "app/values.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), wants: `"app/values.yaml" is no file and no folder`},
		"a hard link":                      {change: header(tar.Header{Name: "app/values.yaml", Typeflag: tar.TypeLink, Linkname: "app/Chart.yaml"}), wants: "is no file and no folder"},
		"an absolute path":                 {change: file("/app/values.yaml"), wants: `the path "/app/values.yaml" is absolute`},
		"a path to a folder above":         {change: file("app/../../values.yaml"), wants: "has . or .. or an empty name in it"},
		"a path that begins above":         {change: file("../values.yaml"), wants: "has . or .. or an empty name in it"},
		"a path with backslashes":          {change: file(`app\values.yaml`), wants: "has a backslash or a drive"},
		"a file outside of a folder":       {change: file("values.yaml"), wants: `"values.yaml" is in no folder`},
		"a file that is twice there":       {change: file("app/Chart.yaml"), wants: `"Chart.yaml" is twice in the archive`},
		"a template that is too large":     {chart: with(files{"templates/a.yaml": strings.Repeat("#", MostTemplateBytes+1)}), wants: "template app/templates/a.yaml has 2097153 bytes"},
		"a chart without Chart.yaml":       {chart: files{"values.yaml": "a: b"}, wants: "loading the chart: Chart.yaml file is missing"},
		"a chart of an unknown apiVersion": {chart: files{"Chart.yaml": strings.Replace(chartYAML, "v2", "v3", 1)}, wants: `apiVersion of Chart.yaml is "v3"`},
		"a library chart":                  {chart: files{"Chart.yaml": chartYAML + "type: library\n"}, wants: "app is a library chart"},
		"a chart with a null for a dependency": {
			chart: files{"Chart.yaml": chartYAML + "dependencies: [null]\n"}, wants: "loading the chart: ",
		},
		"a subchart that is not in the archive": {
			chart: files{"Chart.yaml": chartYAML + "dependencies: [{name: db, version: 1.x, repository: https://example.com}]\n"},
			wants: "chart app: the subchart db 1.x of app is not in the archive",
		},
		"a subchart of a subchart that is not in the archive": {
			chart: with(files{"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\ndependencies: [{name: log, version: 1.x, repository: https://example.com}]\n"}),
			wants: "the subchart log 1.x of app/charts/db is not in the archive",
		},
		"a Kubernetes version that the chart excludes": {
			chart:  files{"Chart.yaml": chartYAML + "kubeVersion: '>= 1.30.0'\n"},
			change: func(in *Input) { in.Kubernetes = "v1.29.3" },
			wants:  `chart app is for Kubernetes ">= 1.30.0", not for v1.29.3`,
		},
		"a Kubernetes version that is none":  {change: func(in *Input) { in.Kubernetes = "new" }, wants: `the Kubernetes version is "new"`},
		"a name that no release can have":    {change: func(in *Input) { in.Release = "Web_1" }, wants: `the name of the release is "Web_1"`},
		"a release without a namespace":      {change: func(in *Input) { in.Namespace = "" }, wants: `the namespace of the release is ""`},
		"a template that cannot be read":     {chart: with(files{"templates/a.yaml": "\n{{ if }}"}), wants: "rendering chart app: parse error at (app/templates/a.yaml:2)"},
		"a template that fails":              {chart: with(files{"templates/a.yaml": "\n{{ fail \"no image\" }}"}), wants: "rendering chart app: execution error at (app/templates/a.yaml:2:3): no image"},
		"a template without a needed value":  {chart: with(files{"templates/a.yaml": `{{ required "set image" .Values.image }}`}), wants: "(app/templates/a.yaml:1:3): set image"},
		"a template that calls itself":       {chart: with(files{"templates/a.yaml": `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`}), wants: "rendering chart app: "},
		"a template that reads a variable":   {chart: with(files{"templates/a.yaml": `{{ env "HOME" }}`}), wants: `function "env" not defined`},
		"a template that expands a variable": {chart: with(files{"templates/a.yaml": `{{ expandenv "$HOME" }}`}), wants: `function "expandenv" not defined`},
		"a template that renders no YAML":    {chart: with(files{"templates/a.yaml": "a: b: c"}), wants: "reading the objects of chart app: app/templates/a.yaml, document 1: "},
		"a template that renders no object":  {chart: with(files{"templates/a.yaml": "a: b"}), wants: "it has no apiVersion"},
		"a template with a field twice":      {chart: with(files{"templates/a.yaml": configMap("a", "x") + "data: {}\n"}), wants: `key "data" already set`},
		"a document, by its number": {
			chart: with(files{"templates/a.yaml": configMap("a", "x") + "---\na: b"}), wants: "app/templates/a.yaml, document 2 of 2",
		},
		"an object that is twice in the chart": {
			chart: with(files{"templates/a.yaml": configMap("a", "x"), "templates/b.yaml": configMap("a", "y")}),
			wants: "app/templates/b.yaml: ConfigMap a is also in app/templates/a.yaml",
		},
		"a kind of Hanse": {
			chart: with(files{"templates/a.yaml": "apiVersion: hanse.dev/v1alpha1\nkind: Placement\nmetadata: {name: a}\n"}),
			wants: "Placement is a kind of Hanse",
		},
		"a result that is too large": {
			chart: with(files{"templates/a.yaml": `{{ range until 17 }}{{ repeat 1000000 "#" }}{{ end }}`}),
			wants: "chart app renders to 17000000 bytes: at most 16777216 are allowed",
		},
		"values that do not fit the schema": {
			chart:  with(files{"values.schema.json": `{"properties": {"image": {"properties": {"tag": {"type": "string"}}}, "replicas": {"minimum": 1}}}`}),
			change: func(in *Input) { in.Values = []map[string]any{{"image": map[string]any{"tag": 7}, "replicas": 0}} },
			wants:  "the values do not fit values.schema.json of app: image.tag: got number, want string; replicas: minimum: got 0, want 1",
		},
		"values that do not fit the schema of a subchart": {
			chart: with(files{
				"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "values.yaml": "db: {size: big}",
				"charts/db/values.schema.json": `{"properties": {"size": {"type": "integer"}}}`,
			}),
			wants: "values.schema.json of app/charts/db: size: got string, want integer",
		},
		"values that are no map where a subchart is": {
			chart: with(files{"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "values.yaml": "db: big"}), wants: "chart app: ",
		},
		"a schema that is no JSON":        {chart: with(files{"values.schema.json": "{"}), wants: "reading values.schema.json of app: "},
		"a schema that reads a file":      {chart: with(files{"values.schema.json": `{"$ref": "file://` + filepath.ToSlash(secret) + `"}`}), wants: "put that schema into $defs"},
		"a schema that reads a URL":       {chart: with(files{"values.schema.json": `{"$ref": "http://127.0.0.1:1/a.json"}`}), wants: "it refers to http://127.0.0.1:1/a.json"},
		"values of aliases of aliases":    {chart: with(files{"values.yaml": bomb()}), wants: "loading the chart: cannot load values.yaml: "},
		"templates with nested ifs":       {chart: with(files{"templates/a.yaml": strings.Repeat("{{if 1}}", MostTemplateBytes/64)}), wants: "rendering chart app: parse error"},
		"documents of aliases of aliases": {chart: with(files{"templates/a.yaml": bomb()}), wants: "reading the objects of chart app: "},
	} {
		t.Run(name, func(t *testing.T) {
			if c.chart == nil {
				c.chart = with(nil)
			}
			in := input(c.chart)
			if c.change != nil {
				c.change(&in)
			}
			_, err := Render(t.Context(), in)
			if err == nil || !strings.Contains(err.Error(), c.wants) {
				t.Fatalf("got %v, want %s", err, c.wants)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %v", err)
			}
		})
	}
}

// bomb is a small YAML document of 10^9 values.
func bomb() string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	return text
}

func TestRenderRefusesChartsThatRenderDifferentlyEachTime(t *testing.T) {
	for name, c := range map[string]struct{ text, where string }{
		"a random text":      {configMap("a", `{{ randAlphaNum 20 | quote }}`), "app/templates/a.yaml, ConfigMap a, field .data.value"},
		"a random UUID":      {configMap("a", `{{ uuidv4 }}`), "field .data.value"},
		"the year":           {configMap("a", `{{ now | date "2006" | quote }}`), "field .data.value"},
		"the day of a value": {configMap("a", `{{ tpl "{{ now | date \"02\" }}" . | quote }}`), "field .data.value"},
		"a certificate":      {configMap("a", `{{ (genSelfSignedCert "a" (list) (list "a") 1).Cert | b64enc }}`), "field .data.value"},
		"a random name":      {configMap("a-{{ randNumeric 12 }}", "x"), "field .metadata.name"},
		"a random field": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: x, k{{ randNumeric 12 }}: x}\n", "field .data.k",
		},
		"an object more in some years": {configMap("a", "x") + `{{ if eq (now | date "2006") "2001" }}---` + "\n" + configMap("b", "x") + "{{ end }}", "has 2 objects, then 1"},
		"an item of a list":            {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a}, {name: '{{ uuidv4 }}'}]}\n", "field .spec.containers[1].name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(t.Context(), input(with(files{"templates/a.yaml": c.text})))
			if !errors.Is(err, ErrNonDeterministic) || !strings.Contains(err.Error(), c.where) {
				t.Errorf("got %v, want %s", err, c.where)
			}
		})
	}
}

func TestRenderEndsAtItsDeadline(t *testing.T) {
	// Some seconds of work, so that the goroutine ends soon after the test.
	in := input(with(files{"templates/a.yaml": "{{ range 20000000 }}{{ end }}"}))
	stopped := errors.New("stopped")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, stopped)
	defer cancel()
	if _, err := Render(ctx, in); !errors.Is(err, stopped) {
		t.Errorf("got %v, want %v", err, stopped)
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
		"charts/db/templates/pipe.yaml": `{{ "b" | lookup "v1" "Secret" "a" | len | printf "# %d" }}`,
	})))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"app/charts/db/templates/pipe.yaml", "app/templates/_helpers.tpl", "app/templates/chain.yaml", "app/templates/else.yaml",
		"app/templates/if.yaml", "app/templates/template.yaml",
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
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`k8s\.io/client-go v0\.(\d+)\.`).FindSubmatch(text)
	if found == nil || DefaultKubernetes != "v1."+string(found[1])+".0" {
		t.Errorf("DefaultKubernetes is %s, and go.mod has %s", DefaultKubernetes, found)
	}
}

func FuzzRender(f *testing.F) {
	for _, chart := range []files{
		with(nil), with(files{"crds/a.yaml": definition, "templates/a.yaml": configMap("a", "{{ .Values.a }}"), "values.yaml": "a: b"}),
		with(files{"values.schema.json": `{"type": "object"}`, "charts/app.tgz": string(packed(with(nil)))}),
		with(files{"templates/a.yaml": `{{ define "a" }}{{ lookup "v1" "Secret" "" "" }}{{ end }}---{{ include "a" . }}`}),
	} {
		f.Add(packed(chart))
	}
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		got, err := Render(t.Context(), Input{Archive: archive, Namespace: "shop"})
		if errors.Is(err, ErrTime) {
			t.Fatal(err)
		}
		if err == nil && got.Name == "" {
			t.Error("a chart without a name was rendered")
		}
	})
}

// FuzzRenderFiles changes the files themselves, which a change of the compressed archive seldom reaches.
func FuzzRenderFiles(f *testing.F) {
	f.Add(chartYAML, "a: b", `{"type": "object"}`, configMap("a", "{{ .Values.a }}"))
	f.Add(chartYAML+"dependencies: [{name: db, version: 1.x, alias: a, condition: a.b, tags: [t], import-values: [data]}]\n", "tags: {t: true}", "{}", definition)
	f.Add(chartYAML, "a: {b: [1, 2]}", `{"$ref": "#"}`, `{{ range $k, $v := .Values.a }}{{ tpl "{{ . }}" $v }}{{ end }}`)
	f.Fuzz(func(t *testing.T, chart, values, schema, text string) {
		if strings.Contains(text, "{{") && strings.ContainsAny(text, "0123456789") && regexp.MustCompile(`range|until|seq|repeat|indent|rand|gen|tpl|define|bcrypt|htpasswd|derive|printf`).MatchString(text) {
			t.Skip("a template may use any amount of time and memory")
		}
		in := input(files{
			"Chart.yaml": chart, "values.yaml": values, "values.schema.json": schema, "templates/a.yaml": text,
			"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/values.yaml": "exports: {data: {a: b}}",
		})
		if _, err := Render(t.Context(), in); errors.Is(err, ErrTime) {
			t.Fatal(err)
		}
	})
}
