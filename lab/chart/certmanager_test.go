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
	"Chart.template.yaml":       "apiVersion: v1\nname: cert-manager\nversion: v0.1.0\nannotations: {prerelease: \"{{IS_PRERELEASE}}\"}\n",
	"values.yaml":               "# a comment\ninstallCRDs: false\nimage: {repository: example.com/controller}\nwebhook: {config: , image: {}}\ncainjector: {image: {}}\n",
	"templates/_helpers.tpl":    "{{- define \"labels\" -}}{{- end -}}\n",
	"templates/deployment.yaml": "kind: Deployment\n",
	"crds/crd-issuers.yaml":     "kind: CustomResourceDefinition\n",
}

func TestTheChartOfCertManagerIsThatOfItsModule(t *testing.T) {
	c := certManagerChart(t, module)
	if got, want := c.FileName(), "cert-manager-v1.2.3.tgz"; got != want {
		t.Errorf("the archive is called %s, want %s", got, want)
	}
	archive := pack(t, c)
	files := unpack(t, archive)
	want := []string{
		"cert-manager/Chart.yaml", "cert-manager/values.yaml", "cert-manager/templates/_helpers.tpl", "cert-manager/templates/deployment.yaml",
		"cert-manager/templates/crd-issuers.yaml",
	}
	if diff := cmp.Diff(want, names(files)); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]string{
		"cert-manager/Chart.yaml":                 "apiVersion: v1\nappVersion: v1.2.3\nname: cert-manager\nversion: v1.2.3\n",
		"cert-manager/templates/deployment.yaml":  module["templates/deployment.yaml"],
		"cert-manager/templates/crd-issuers.yaml": "{{- if .Values.installCRDs }}\nkind: CustomResourceDefinition\n\n{{- end }}\n",
	} {
		if diff := cmp.Diff(want, content(files, path)); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
	values := content(files, "cert-manager/values.yaml")
	for _, program := range []string{"cert-manager-controller", "cert-manager-webhook", "cert-manager-cainjector"} {
		if !strings.Contains(values, "repository: hanse.dev/"+program+"\n") {
			t.Errorf("the values are\n%s\nwant the image of %s", values, program)
		}
	}
	if again := pack(t, certManagerChart(t, module)); !bytes.Equal(archive, again) {
		t.Error("two charts of one module differ")
	}
}

func TestAModuleWithoutTheChartIsRefused(t *testing.T) {
	for file, want := range map[string]string{"values.yaml": "no such file", "crds/crd-issuers.yaml": "has no crds/*.yaml"} {
		folder := moduleFolder(t, module)
		check(t, os.Remove(filepath.Join(folder, file)))
		if _, err := CertManager("v1.2.3", folder, labImage); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s the error is %v, want %q", file, err, want)
		}
	}
}

func certManagerChart(t *testing.T, files map[string]string) Chart {
	t.Helper()
	c, err := CertManager("v1.2.3", moduleFolder(t, files), labImage)
	check(t, err)
	return c
}

func labImage(program string) string { return "hanse.dev/" + program + ":lab" }

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
