// Package charts renders the charts, for tests that need their objects but not helm.
package charts

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// Install returns the objects that helm installs of a chart with these values, without CustomResourceDefinitions and
// hooks.
func Install(t *testing.T, name string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	archive, err := chart.Pack(filepath.Join(apiserver.Root(), "charts", name))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := chart.Render(t.Context(), chart.Input{Archive: archive, Release: "hanse", Namespace: "hanse-system", Values: []map[string]any{values}})
	if err != nil {
		t.Fatal(err)
	}
	return rendered.Objects
}

// Render renders a template as helm does, for a cluster without objects of the chart. It supports only what the
// templates of RBAC, of admission policies and of the webhooks use. path is the template's path below charts/.
func Render(t *testing.T, path string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(apiserver.Root(), "charts", path))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := template.New(path).Funcs(template.FuncMap{
		"include": func(name string, _ any) string {
			if strings.HasSuffix(name, ".namespace") {
				return "hanse-system"
			}
			return "test: test"
		},
		"nindent": func(n int, s string) string {
			return "\n" + strings.Repeat(" ", n) + strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", n))
		},
		"toJson": func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"toYaml": func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"quote":  func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"list":   func(v ...any) []any { return v },
		"dict": func(pairs ...any) map[string]any {
			out := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				out[pairs[i].(string)] = pairs[i+1]
			}
			return out
		},
		"set": func(of map[string]any, key string, value any) map[string]any { of[key] = value; return of },
		"ternary": func(yes, no any, condition bool) any {
			if condition {
				return yes
			}
			return no
		},
		"lookup":     func(_, _, _, _ string) map[string]any { return nil },
		"hasPrefix":  func(prefix, s string) bool { return strings.HasPrefix(s, prefix) },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"join":       func(separator string, v []string) string { return strings.Join(v, separator) },
		"default": func(standard, v any) any {
			if v == nil || v == "" {
				return standard
			}
			return v
		},
	}).Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, map[string]any{"Values": values, "Release": map[string]any{"Name": "hanse"}, "Chart": map[string]any{"AppVersion": "v1"}}); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(&out, 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if o.Object != nil {
			objects = append(objects, o)
		}
	}
}
