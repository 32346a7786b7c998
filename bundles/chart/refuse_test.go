package chart

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hanse-dev/hanse/bundles/chart/charttest"
)

func TestRenderRefuses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(secret, []byte(`{"type": "object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	header := func(h tar.Header) func(*Input) {
		return func(in *Input) {
			in.Archive = charttest.Entries([]tar.Header{{Name: "app/Chart.yaml", Typeflag: tar.TypeReg}, h}, []string{chartYAML, ""})
		}
	}
	file := func(name string) func(*Input) { return header(tar.Header{Name: name, Typeflag: tar.TypeReg}) }
	nested := string(charttest.Archive("app", with(nil)))
	for range MaxSubchartDepth {
		nested = string(charttest.Archive("app", with(files{"charts/app.tgz": nested})))
	}
	many := files{}
	for i := range MaxFiles {
		many[fmt.Sprintf("files/%d", i)] = ""
	}
	for name, c := range map[string]struct {
		chart  files
		change func(*Input)
		wants  string
	}{
		"an archive of another digest":        {change: func(in *Input) { in.Digest = "sha256:00" }, wants: "the archive has the digest sha256:"},
		"an archive that is too large":        {change: func(in *Input) { in.Archive = make([]byte, MaxArchiveBytes+1) }, wants: "at most 8388608 are allowed"},
		"a file that is no archive":           {change: func(in *Input) { in.Archive = []byte(chartYAML) }, wants: "reading the archive: the chart is not a gzipped archive"},
		"an archive that is cut":              {change: func(in *Input) { in.Archive = in.Archive[:len(in.Archive)/2] }, wants: "reading the archive: "},
		"an archive that unpacks to too much": {chart: with(files{"a": strings.Repeat("a", MaxUnpackedBytes)}), wants: "the chart has more than 33554432 bytes unpacked"},
		"subcharts that unpack to too much": {
			chart: with(files{
				"charts/a.tgz": string(charttest.Archive("app", with(files{"a": strings.Repeat("a", MaxUnpackedBytes/2)}))),
				"charts/b.tgz": string(charttest.Archive("app", with(files{"a": strings.Repeat("a", MaxUnpackedBytes/2)}))),
			}),
			wants: "the chart has more than 33554432 bytes unpacked",
		},
		"too many files":                   {chart: with(many), wants: "the chart has more than 2000 files"},
		"too many archives in each other":  {chart: with(files{"charts/app.tgz": nested}), wants: "archives are nested deeper than 5 levels"},
		"a path that is too deep":          {chart: with(files{strings.Repeat("a/", MaxPathDepth) + "b": ""}), wants: "has more than 24 names"},
		"a symbolic link":                  {change: header(tar.Header{Name: "app/values.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), wants: `"app/values.yaml" is neither a file nor a directory`},
		"a hard link":                      {change: header(tar.Header{Name: "app/values.yaml", Typeflag: tar.TypeLink, Linkname: "app/Chart.yaml"}), wants: "is neither a file nor a directory"},
		"an absolute path":                 {change: file("/app/values.yaml"), wants: `the path "/app/values.yaml" is absolute`},
		"a path to a folder above":         {change: file("app/../../values.yaml"), wants: "has . or .. or an empty name in it"},
		"a path that begins above":         {change: file("../values.yaml"), wants: "has . or .. or an empty name in it"},
		"a path with backslashes":          {change: file(`app\values.yaml`), wants: "has a backslash or a drive"},
		"a file outside of a folder":       {change: file("values.yaml"), wants: `"values.yaml" is in no folder`},
		"a file that is twice there":       {change: file("app/Chart.yaml"), wants: `"Chart.yaml" is twice in the archive`},
		"a template that is too large":     {chart: with(files{"templates/a.yaml": strings.Repeat("#", MaxTemplateBytes+1)}), wants: "template app/templates/a.yaml has 2097153 bytes"},
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
		"a template with a key that is not a string": {
			chart: with(files{"templates/a.yaml": configMap("a", "x") + "  8080: x\n"}), wants: `line 7 has the key "8080", which is not a string`,
		},
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
			wants: "chart app renders to 17000000 bytes, and at most 16777216 are allowed: let the values render fewer objects, or split the chart",
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
		"a schema that is no JSON":   {chart: with(files{"values.schema.json": "{"}), wants: "reading values.schema.json of app: "},
		"a schema that reads a file": {chart: with(files{"values.schema.json": `{"$ref": "file://` + filepath.ToSlash(secret) + `"}`}), wants: "put that schema into $defs"},
		"a schema that reads a URL":  {chart: with(files{"values.schema.json": `{"$ref": "http://127.0.0.1:1/a.json"}`}), wants: "the schema refers to http://127.0.0.1:1/a.json"},
		"a schema of a reference to another file of the chart": {
			chart: with(files{"values.schema.json": `{"$ref": "files/a.json"}`, "files/a.json": "{}"}), wants: "the schema refers to files/a.json: put that schema into $defs",
		},
		"values of aliases of aliases":    {chart: with(files{"values.yaml": bomb()}), wants: "loading the chart: cannot load values.yaml: "},
		"templates with nested ifs":       {chart: with(files{"templates/a.yaml": strings.Repeat("{{if 1}}", MaxTemplateBytes/64)}), wants: "rendering chart app: parse error"},
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

// bomb returns a small YAML document with aliases that stand for 10^9 values.
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
		"an object more in some years": {configMap("a", "x") + `{{ if gt (now | date "2006" | int) 2036 }}---` + "\n" + configMap("b", "x") + "{{ end }}", "has 1 objects in one rendering and 2 in another"},
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
	// The template takes some seconds, so that the goroutine ends soon after the test.
	in := input(with(files{"templates/a.yaml": "{{ range 20000000 }}{{ end }}"}))
	stopped := errors.New("stopped")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, stopped)
	defer cancel()
	if _, err := Render(ctx, in); !errors.Is(err, stopped) {
		t.Errorf("got %v, want %v", err, stopped)
	}
}
