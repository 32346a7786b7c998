package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module has the files of a cert-manager module that CertManager reads.
var module = map[string]string{
	"Chart.template.yaml":       "apiVersion: v1\nname: cert-manager\n# comment\nversion: v0.1.0\nappVersion: v0.1.0\n",
	"values.yaml":               "# a comment\ninstallCRDs: false\nimage: {repository: example.com/controller}\n",
	"templates/_helpers.tpl":    "{{- define \"labels\" -}}{{- end -}}\n",
	"templates/deployment.yaml": "kind: Deployment\n",
	"crds/crd-issuers.yaml":     "kind: CustomResourceDefinition\n",
}

func TestTheChartOfCertManagerIsThatOfItsReleases(t *testing.T) {
	folder := moduleFolder(t, module)
	c, err := CertManager("v1.2.3", folder)
	check(t, err)
	if got, want := c.FileName(), "cert-manager-v1.2.3.tgz"; got != want {
		t.Errorf("the archive is called %s, want %s", got, want)
	}
	archive := pack(t, c)
	want := map[string]string{
		"cert-manager/Chart.yaml":                 "apiVersion: v1\nname: cert-manager\n# comment\nversion: v1.2.3\nappVersion: v1.2.3\n",
		"cert-manager/values.yaml":                module["values.yaml"],
		"cert-manager/templates/_helpers.tpl":     module["templates/_helpers.tpl"],
		"cert-manager/templates/deployment.yaml":  module["templates/deployment.yaml"],
		"cert-manager/templates/crd-issuers.yaml": "{{- if .Values.installCRDs }}\nkind: CustomResourceDefinition\n\n{{- end }}\n",
	}
	if diff := cmp.Diff(want, byPath(unpack(t, archive))); diff != "" {
		t.Error(diff)
	}
	again, err := CertManager("v1.2.3", folder)
	check(t, err)
	if !bytes.Equal(archive, pack(t, again)) {
		t.Error("two charts of one module differ")
	}
}

func TestAChartOfAModuleIsUnchanged(t *testing.T) {
	files := map[string]string{
		"Chart.yaml": "name: op\nversion: 0.7.3\n", "values.yaml": "a: 1\n", "crds/op.yaml": "kind: CustomResourceDefinition\n",
		"templates/controller/deployment.yaml": "kind: Deployment\n",
	}
	c, err := OfModule(moduleFolder(t, files))
	check(t, err)
	if got, want := c.FileName(), "op-0.7.3.tgz"; got != want {
		t.Errorf("the archive is called %s, want %s", got, want)
	}
	want := map[string]string{}
	for path, text := range files {
		want["op/"+path] = text
	}
	if diff := cmp.Diff(want, byPath(unpack(t, pack(t, c)))); diff != "" {
		t.Error(diff)
	}
}

func TestAModuleWithoutTheChartIsRefused(t *testing.T) {
	for file, want := range map[string]string{"Chart.template.yaml": "has no Chart.yaml", "crds/crd-issuers.yaml": "has no crds"} {
		folder := moduleFolder(t, module)
		check(t, os.Remove(filepath.Join(folder, file)))
		if _, err := CertManager("v1.2.3", folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s the error is %v, want %q", file, err, want)
		}
	}
	if _, err := OfModule(moduleFolder(t, map[string]string{"Chart.yaml": "name: op\n"})); err == nil || !strings.Contains(err.Error(), "no version") {
		t.Errorf("a chart without a version gives %v", err)
	}
}

func moduleFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(file), 0o755))
		check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

func byPath(files []file) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		out[f.path] = string(f.text)
	}
	return out
}
