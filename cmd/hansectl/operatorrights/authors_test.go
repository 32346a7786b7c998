package operatorrights_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
)

var update = flag.Bool("update", false, "rewrite the table of charts in docs/operators.md")

// authors are charts that lie in the Go modules of their authors. Go checks the modules by their sums.
var authors = []struct{ module, version, sum, folder string }{
	{"github.com/cert-manager/cert-manager", "v1.17.2", "h1:QQYTEOsHf/Z3BFzKH2sIILHJwZA5Ut0LYZlHyNViupg=", "deploy/charts/cert-manager"},
	{"github.com/crossplane/crossplane", "v1.20.0", "h1:Wr3+/CilaMbRQ7u4e+m4XBmoARahBpENIYClGzIXpS8=", "cluster/charts/crossplane"},
	{"github.com/elastic/cloud-on-k8s/v2", "v2.16.0", "h1:HdXrUx6sy1/2SS7xcRt8Ij6wzyjUV9oirxDMP9m8g88=", "deploy/eck-operator"},
	{"github.com/grafana/grafana-operator/v5", "v5.18.0", "h1:ei7N2VfjsRjY8iprenH1IDV783WeV7CP5VNp//sB4hI=", "deploy/helm/grafana-operator"},
	{"github.com/kserve/kserve", "v0.15.0", "h1:TK6lN8XVIzc/5KQ76GULEKYiJ2obkTRRI3Z2Iwuld5Y=", "charts/kserve-crd"},
	{"github.com/kserve/kserve", "v0.15.0", "h1:TK6lN8XVIzc/5KQ76GULEKYiJ2obkTRRI3Z2Iwuld5Y=", "charts/kserve-resources"},
	{"github.com/kubeflow/spark-operator/v2", "v2.5.2", "h1:6nX2UhwSfnYi1mtwczgFfJTMeLSL/1ajTvkFe8R7Vdc=", "charts/spark-operator-chart"},
	{"github.com/kyverno/kyverno", "v1.13.4", "h1:2zUi+eszlisLdCir+WIf2NtuUfFPvJtjUNpewdtLjVw=", "charts/kyverno"},
	{"github.com/NVIDIA/gpu-operator", "v0.0.0-20250917190837-d73a0086a6ba", "h1:LoeqwWjR0h2WRyHXmyYCPVwM/dAdKKxjE8LzyyeuqHI=", "deployments/gpu-operator"},
	{"sigs.k8s.io/jobset", "v0.8.1", "h1:FwosQQyjmYgOKy8sD3ERpfil1BDLNpYUOJdIqmZSz3s=", "charts/jobset"},
	{"sigs.k8s.io/kueue", "v0.17.0", "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=", "charts/kueue"},
	{"sigs.k8s.io/lws", "v0.6.1", "h1:cWiRmMSflo8hQPBrmIIZtoaX3XuVkmAgFKkmjxlPULI=", "charts/lws"},
}

// namespace is the namespace of the releases.
const namespace = "operators"

// TestChartsOfAuthors renders charts with their default values, compares the objects with those of helm template, and
// writes into docs/operators.md whether a FederatedOperator takes them.
func TestChartsOfAuthors(t *testing.T) {
	helm := os.Getenv("HANSE_HELM")
	if os.Getenv("HANSE_LONG") == "" || helm == "" {
		t.Skip("HANSE_LONG or HANSE_HELM is not set: make test-long sets both")
	}
	table := "\n| chart | objects | with default values | rights on a member |\n|---|---|---|---|\n"
	for _, a := range authors {
		folder := download(t, a.module, a.version, a.sum, a.folder)
		archive, err := chart.Pack(folder)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := chart.Render(t.Context(), chart.Input{Archive: archive, Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		var hooks []*unstructured.Unstructured
		for _, h := range rendered.Hooks {
			hooks = append(hooks, h.Object)
		}
		got, want := byIdentity(slices.Concat(rendered.Definitions, rendered.Objects, hooks)), template(t, helm, rendered.Name, folder)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%s: objects, -helm template +rendered:\n%s", rendered.Name, diff)
		}
		for id := range want {
			if diff := cmp.Diff(want[id], got[id]); diff != "" {
				t.Errorf("%s: %s, -helm template +rendered:\n%s", rendered.Name, id, diff)
			}
		}
		rights, err := operatorrights.Of(rendered)
		if err != nil {
			t.Fatal(err)
		}
		table += fmt.Sprintf("| %s %s | %d | %s | %s |\n", rendered.Name, a.version, len(rendered.Definitions)+len(rendered.Objects), verdict(rendered), summary(rights))
	}
	documented(t, table+"\n")
}

// download returns the folder of a chart in a Go module. It fails if the module has another sum.
func download(t *testing.T, module, version, sum, folder string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module+"@"+version)
	command.Dir = t.TempDir() // outside of a module, so that its go.sum does not change
	text, err := command.Output()
	var found struct{ Dir, Sum string }
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil || found.Sum != sum {
		t.Fatalf("downloading %s %s: %v, sum %q, want %q", module, version, err, found.Sum, sum)
	}
	source, out := filepath.Join(found.Dir, folder), filepath.Join(t.TempDir(), filepath.Base(folder))
	if err := os.CopyFS(out, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	// The release of cert-manager makes Chart.yaml from this template.
	if text, err := os.ReadFile(filepath.Join(source, "Chart.template.yaml")); err == nil {
		text = bytes.ReplaceAll(text, []byte("v0.0.0"), []byte(version))
		if err := os.WriteFile(filepath.Join(out, "Chart.yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// template returns the objects that the command helm template prints, by identity.
func template(t *testing.T, helm, release, folder string) map[string]map[string]any {
	t.Helper()
	command := exec.CommandContext(t.Context(), helm, "template", release, folder, "--namespace", namespace, "--include-crds", "--kube-version", chart.DefaultKubernetes)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	text, err := command.Output()
	if err != nil {
		t.Fatalf("helm template %s: %v: %s", release, err, stderr.Bytes())
	}
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var document runtime.RawExtension
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return byIdentity(objects)
		}
		o := &unstructured.Unstructured{}
		if err == nil && len(document.Raw) > 0 {
			err = utiljson.Unmarshal(document.Raw, &o.Object)
		}
		if err != nil {
			t.Fatalf("helm template %s: %v", release, err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// byIdentity returns objects by kind, namespace and name, without the differences that are intended: chart.Render sets
// the namespace of the release, and leaves out a namespace of a cluster-scoped kind, metadata without a value, keys of
// Secrets without a value, and fields of custom resources that are null.
func byIdentity(objects []*unstructured.Unstructured) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, o := range objects {
		o = o.DeepCopy()
		gk := o.GroupVersionKind().GroupKind()
		namespaced, known := chart.Namespaced(gk)
		if known && !namespaced || o.GetNamespace() == namespace {
			o.SetNamespace("")
		}
		if !known {
			dropNulls(o.Object)
		}
		empty := func(_ string, v any) bool { return v == nil || v == "" }
		maps.DeleteFunc(o.Object["metadata"].(map[string]any), empty)
		if data, ok := o.Object["data"].(map[string]any); ok && o.GetKind() == "Secret" {
			if maps.DeleteFunc(data, empty); len(data) == 0 {
				delete(o.Object, "data")
			}
		}
		out[hubv1.IdentityOf(o).String()] = o.Object
	}
	return out
}

// dropNulls removes the null values of maps.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, child any) bool { return child == nil })
		for _, child := range v {
			dropNulls(child)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}

// verdict returns whether a FederatedOperator takes a chart, or why not.
func verdict(rendered chart.Rendered) string {
	accepted := "accepted"
	objects, err := rendered.ForMembers("")
	if err != nil {
		accepted = "accepted with `hooks: Skip`"
		objects, err = rendered.ForMembers(hubv1.ChartHooksSkip)
	}
	if err == nil {
		_, err = manifest.Read(manifest.Input{Operator: true, Rendered: objects, Namespaced: func(gk schema.GroupKind) (namespaced, known bool, _ error) {
			namespaced, known = chart.Namespaced(gk)
			return namespaced, known, nil
		}})
	}
	if err != nil {
		first, _, more := strings.Cut(err.Error(), "; the chart, ")
		if more {
			first += "; and others"
		}
		return "refused: " + first
	}
	return accepted
}

// summary returns the number of granted kinds and of rules, and the kinds and namespaces that need a second look.
func summary(r operatorrights.Rights) string {
	kinds, rules, warnings := 0, 0, len(r.Warnings)
	secrets := ""
	for _, k := range r.Values.GrantedKinds {
		kinds += len(k.Resources)
		if slices.Contains(k.Resources, "secrets") {
			secrets = ", among them Secrets"
		}
	}
	for _, o := range r.Values.Operators {
		rules += len(o.Rules)
		for _, of := range o.NamespacedRules {
			rules += len(of)
		}
	}
	return fmt.Sprintf("kinds: %d%s; rules: %d; warnings: %d", kinds, secrets, rules, warnings)
}

// documented compares the table with that of docs/operators.md, or writes it there.
func documented(t *testing.T, table string) {
	t.Helper()
	const begin, end = "<!-- begin charts of authors -->\n", "<!-- end charts of authors -->"
	page := filepath.Join("..", "..", "..", "docs", "operators.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	has, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no %q and %q", page, begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(has, table); diff != "" {
		t.Errorf("the table in %s, -page +now:\n%s", page, diff)
	}
}
