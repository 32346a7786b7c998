package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

// helmReads returns the objects of a rendered template, as helm and kubectl read them before they send them to an API
// server. Helm writes a line end after each document.
func helmReads(t *testing.T, text string) []map[string]any {
	t.Helper()
	infos, err := resource.NewLocalBuilder().Unstructured().Flatten().Stream(strings.NewReader(text+"\n"), "").Do().Infos()
	if err != nil {
		t.Fatalf("helm does not read the template: %v", err)
	}
	var out []map[string]any
	for _, info := range infos {
		out = append(out, info.Object.(*unstructured.Unstructured).Object)
	}
	return out
}

func TestATemplateIsReadAsHelmReadsIt(t *testing.T) {
	t.Parallel()
	const base = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: &base {a: base, b: base}}\n"
	for name, c := range map[string]struct {
		text string
		want map[string]any // the field data of the object
	}{
		"a merge sets the keys that the map lacks":             {base + "data: {<<: *base, c: own}\n", map[string]any{"a": "base", "b": "base", "c": "own"}},
		"a key after a merge wins":                             {base + "data: {<<: *base, a: own}\n", map[string]any{"a": "own", "b": "base"}},
		"a key before a merge loses":                           {base + "data: {a: own, <<: *base}\n", map[string]any{"a": "base", "b": "base"}},
		"of several merged maps, the first one wins":           {base + "data: {<<: [{a: first}, *base], c: own}\n", map[string]any{"a": "first", "b": "base", "c": "own"}},
		"of two merges, the second one wins":                   {base + "data: {<<: {a: first}, <<: *base}\n", map[string]any{"a": "base", "b": "base"}},
		"a merge of a merge has the keys of both":              {base + "data: {<<: {<<: *base, b: inner}, c: own}\n", map[string]any{"a": "base", "b": "inner", "c": "own"}},
		"a merge with its tag is a merge":                      {base + "data: {!!merge <<: *base, c: own}\n", map[string]any{"a": "base", "b": "base", "c": "own"}},
		"a text with |+ keeps all line ends":                   {base + "data:\n  a: |+\n    text\n\n", map[string]any{"a": "text\n\n\n"}},
		"a quoted << is a key":                                 {base + "data: {\"<<\": x}\n", map[string]any{"<<": "x"}},
		"the last value of a key wins":                         {base + "data: {a: first, b: x, a: last}\n", map[string]any{"a": "last", "b": "x"}},
		"a map that is there twice is replaced as a whole":     {base + "data: {a: first, b: x}\ndata: {a: last}\n", map[string]any{"a": "last"}},
		"in JSON, the last value of a key wins":                {`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "first", "a": "last"}}`, map[string]any{"a": "last"}},
		"an alias is replaced by its value":                    {base + "data: *base\n", map[string]any{"a": "base", "b": "base"}},
		"numbers and words of YAML 1.1 have the types of helm": {base + "data: {a: yes, b: 0777, c: 1e3, d: 12345678901234567, e: ~, f: 0x1f, g: 2001-01-01}\n", nil},
		"a key with the value null takes that of a merge away": {base + "data: {<<: *base, a: null}\n", map[string]any{"a": nil, "b": "base"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := Render(t.Context(), input(with(files{"templates/a.yaml": c.text})))
			if err != nil {
				t.Fatal(err)
			}
			var got []map[string]any
			for _, o := range rendered.Objects {
				unstructured.RemoveNestedField(o.Object, "metadata", "namespace") // of the release
				got = append(got, o.Object)
			}
			if diff := cmp.Diff(helmReads(t, c.text), got); diff != "" {
				t.Errorf("(-helm +rendered):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, got[0]["data"]); c.want != nil && diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAKubernetesVersionIsComparedAsHelmDoes compares with helm's own functions, which the command helm template calls.
func TestAKubernetesVersionIsComparedAsHelmDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		constraint, version string
		fits                bool
	}{
		{">=1.25.0", "v1.30.5-gke.1443001", true},
		{">=1.25.0-0", "v1.30.5-gke.1443001", true},
		{">=1.25.0", "v1.29.3-eks-adc7111", true},
		{">=1.25.0-0", "v1.29.3-eks-adc7111", true},
		{">= 1.25.0-0 < 1.30.0-0", "v1.29.3-eks-adc7111", true},
		{">=1.25.0", "v1.31.4+k3s1", true},
		{"^1.31.4", "v1.31.4+k3s1", true},
		{"1.30.x", "v1.30.5-gke.1443001", true},
		{">=1.25", "v1.25", true},
		{">=1.31.0", "v1.30.5-gke.1443001", false},
		{">=1.31.0-0", "v1.30.5-gke.1443001", false},
		{">1.30.5", "v1.30.5-gke.1443001", false}, // the suffix makes it neither a later nor an earlier version
		{"<1.30.5", "v1.30.5-gke.1443001", false},
		{"=1.30.5", "v1.30.5-gke.1443001", true},
		{">=1.30.5-gke.2", "v1.30.5-gke.1", true},
		{"~1.29.0", "v1.30.0-alpha.1", false},
		{">=1.30.0", "v1.30.0-alpha.1", true},
		{"not a constraint", "v1.30.0", false},
	} {
		t.Run(c.constraint+" and "+c.version, func(t *testing.T) {
			t.Parallel()
			parsed, err := common.ParseKubeVersion(c.version)
			if err != nil {
				t.Fatal(err)
			}
			if helm := helmutil.IsCompatibleRange(c.constraint, parsed.String()); helm != c.fits {
				t.Fatalf("for helm, the version fits: %t", helm)
			}
			in := input(files{
				"Chart.yaml":       chartYAML + fmt.Sprintf("kubeVersion: %q\n", c.constraint),
				"templates/a.yaml": configMap("a", `"{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Version }}"`),
			})
			in.Kubernetes = c.version
			got, err := Render(t.Context(), in)
			if !c.fits {
				want := fmt.Sprintf("chart app is for Kubernetes %q, not for %s", c.constraint, c.version)
				if err == nil || err.Error() != want {
					t.Errorf("the error is %v, want %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"ConfigMap shop/a=" + parsed.String() + " " + c.version}; !cmp.Equal(want, names(got.Objects)) {
				t.Errorf("templates see %q, want %q", names(got.Objects), want)
			}
		})
	}
}
