package chart

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/bundles/chart/charttest"
)

func FuzzRender(f *testing.F) {
	for _, chart := range []files{
		with(nil), with(files{"crds/a.yaml": definition, "templates/a.yaml": configMap("a", "{{ .Values.a }}"), "values.yaml": "a: b"}),
		with(files{"values.schema.json": `{"type": "object"}`, "charts/app.tgz": string(charttest.Archive("app", with(nil)))}),
		with(files{"templates/a.yaml": `{{ define "a" }}{{ lookup "v1" "Secret" "" "" }}{{ end }}---{{ include "a" . }}`}),
	} {
		f.Add(charttest.Archive("app", chart))
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

// FuzzRenderFiles changes the files themselves. A changed byte of a compressed archive would seldom result in a
// readable file.
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
