package crdupgrade_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/crdupgrade"
)

// FuzzCheck takes two definitions and an object. It looks for a panic and for a report beyond its bounds.
func FuzzCheck(f *testing.F) {
	lamp := `{apiVersion: example.com/v1, kind: Lamp, metadata: {name: a}, spec: {colour: red, mode: Half, hours: [{start: 1}], labels: {a.b: c}, open: {a: [null]}}}`
	for _, change := range []string{"maxLength: 6", "type: object", "type: string", "x-kubernetes-preserve-unknown-fields: true", "name: v1", "[colour]", "[Full, Half]", "self.colour"} {
		f.Add([]byte(lamps), []byte(strings.Replace(lamps, change, "", 1)), []byte(lamp))
		f.Add([]byte(strings.Replace(lamps, change, "nullable: true", 1)), []byte(lamps), []byte(lamp))
	}
	befores, err := filepath.Glob("testdata/*/before.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, before := range befores {
		was, err := os.ReadFile(before)
		if err != nil {
			f.Fatal(err)
		}
		is, err := os.ReadFile(filepath.Join(filepath.Dir(before), "after.yaml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(was, is, []byte(lamp))
	}
	f.Fuzz(func(t *testing.T, before, after, object []byte) {
		var was, is apiextensionsv1.CustomResourceDefinition
		if yaml.Unmarshal(before, &was) != nil || yaml.Unmarshal(after, &is) != nil {
			return
		}
		content := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON(object)
		if err != nil || content.UnmarshalJSON(raw) != nil {
			return
		}
		in := crdupgrade.Input{
			Before: &was, After: &is, Objects: []crdupgrade.Object{{Content: content, Clusters: []string{"eu-1"}}},
			StoredVersions: map[string][]string{"eu-1": {"v1"}}, Acknowledged: []crdupgrade.Acknowledgement{{CRD: is.Name, Rule: "type", Path: "/spec"}},
		}
		report, err := crdupgrade.Check(t.Context(), in)
		if err != nil {
			return
		}
		message := crdupgrade.Message(report)
		if len(report.Blocked) > crdupgrade.MostFindings || len(report.Warnings) > crdupgrade.MostFindings ||
			utf8.RuneCountInString(message) > 1024 || (message == "") != (report.BlockedTotal == 0) {
			t.Errorf("%d of %d findings, the message %q", len(report.Blocked), report.BlockedTotal, message)
		}
		if _, err := json.Marshal(report); err != nil {
			t.Error(err)
		}
	})
}
