package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const definition = `kind: CustomResourceDefinition
spec: {versions: [{schema: {description: an object, properties: {description: {description: its purpose, type: string}}}}]}
`

var manifests = map[string]string{
	"account.yaml": "kind: ServiceAccount\nmetadata: {name: op, namespace: default}\n",
	"role.yaml":    "kind: ClusterRole\nmetadata: {name: op}\n",
	"binding.yaml": "kind: ClusterRoleBinding\nmetadata: {name: op}\nsubjects: [{kind: ServiceAccount, name: op, namespace: default}]\n",
	"service.yaml": "kind: Service\nmetadata: {name: op, namespace: default}\n",
	"monitor.yaml": "kind: ServiceMonitor\nmetadata: {name: op, namespace: default}\n",
	"deployment.yaml": `kind: Deployment
metadata: {name: op, namespace: default, labels: {app.kubernetes.io/version: 1.2.3}}
spec:
  replicas: 2
  template: {spec: {containers: [{name: op, image: example.com/op:v1.2.3}]}}
`,
}

func TestTheChartHasTheManifestsAsTemplates(t *testing.T) {
	c := newChart(t, manifests)
	if got, want := c.FileName(), "op-1.2.3.tgz"; got != want {
		t.Errorf("the archive is called %s, want %s", got, want)
	}
	files := unpack(t, pack(t, c))
	want := []string{
		"op/Chart.yaml", "op/values.yaml", "op/values.schema.json", "op/crds/crd.yaml", "op/templates/serviceaccount.yaml",
		"op/templates/clusterrole.yaml", "op/templates/clusterrolebinding.yaml", "op/templates/deployment.yaml", "op/templates/service.yaml",
	}
	if diff := cmp.Diff(want, names(files)); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]string{
		"op/crds/crd.yaml":                     "      properties:\n        description:\n          type: string\n",
		"op/values.yaml":                       "image: hanse.dev/op:lab\n",
		"op/templates/serviceaccount.yaml":     "namespace: {{ .Release.Namespace | quote }}\n",
		"op/templates/clusterrolebinding.yaml": "namespace: {{ .Release.Namespace | quote }}\n",
		"op/templates/deployment.yaml":         "image: {{ .Values.image | quote }}\n",
	} {
		if text := content(files, path); !strings.Contains(text, want) {
			t.Errorf("%s is\n%s\nwant it with %s", path, text, want)
		}
	}
	if text := content(files, "op/templates/deployment.yaml"); !strings.Contains(text, "replicas: {{ .Values.replicas }}\n") {
		t.Errorf("the number of pods is not a value:\n%s", text)
	}
}

func TestEqualManifestsGiveEqualArchives(t *testing.T) {
	first, second := pack(t, newChart(t, manifests)), pack(t, newChart(t, manifests))
	if !bytes.Equal(first, second) {
		t.Error("the archives of equal manifests differ")
	}
}

func TestAManifestThatIsMissingIsNamed(t *testing.T) {
	for file, want := range map[string]string{
		"service.yaml": "no manifest of op is of kind Service", "deployment.yaml": "no Deployment of op has the label",
	} {
		left := map[string]string{}
		for name, text := range manifests {
			if name != file {
				left[name] = text
			}
		}
		crds, rest := write(t, left)
		if _, err := New("op", "hanse.dev/op:lab", crds, rest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s the error is %v, want %q", file, err, want)
		}
	}
}

// write writes a CRD and the manifests into files and returns their paths.
func write(t *testing.T, manifests map[string]string) (crds, files []string) {
	t.Helper()
	dir := t.TempDir()
	crd := filepath.Join(dir, "crd.yaml")
	check(t, os.WriteFile(crd, []byte(definition), 0o600))
	for name, text := range manifests {
		file := filepath.Join(dir, name)
		check(t, os.WriteFile(file, []byte(text), 0o600))
		files = append(files, file)
	}
	return []string{crd}, files
}

func newChart(t *testing.T, manifests map[string]string) Chart {
	t.Helper()
	crds, files := write(t, manifests)
	c, err := New("op", "hanse.dev/op:lab", crds, files)
	check(t, err)
	return c
}

func pack(t *testing.T, c Chart) []byte {
	t.Helper()
	data, err := c.Pack()
	check(t, err)
	return data
}

func unpack(t *testing.T, data []byte) []file {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	check(t, err)
	var files []file
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		check(t, err)
		text, err := io.ReadAll(archive)
		check(t, err)
		files = append(files, file{header.Name, text})
	}
}

func names(files []file) []string {
	var names []string
	for _, f := range files {
		names = append(names, f.path)
	}
	return names
}

func content(files []file, path string) string {
	for _, f := range files {
		if f.path == path {
			return string(f.text)
		}
	}
	return ""
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
