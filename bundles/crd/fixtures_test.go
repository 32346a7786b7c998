package crd_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
)

var update = flag.Bool("update", false, "rewrite want.yaml of testdata")

// settings are the inputs of a test case other than the definitions and the objects.
type settings struct {
	StoredVersions map[string][]string        `json:"storedVersions"`
	Acknowledged   []hubv1.AcknowledgedChange `json:"acknowledged"`
}

// Each folder of testdata is a test case: before.yaml and after.yaml are the definitions, objects.yaml has the live
// objects with their clusters, settings.yaml has the other inputs, and want.yaml has the report and the message of the
// condition.
func TestFixtures(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/before.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, before := range dirs {
		dir := filepath.Dir(before)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			read := func(name string) string {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			var s settings
			if err := yaml.UnmarshalStrict([]byte(read("settings.yaml")), &s); err != nil {
				t.Fatal(err)
			}
			report, err := crd.Check(t.Context(), crd.Input{
				Before: definition(t, read("before.yaml")), After: definition(t, read("after.yaml")), Objects: objects(t, read("objects.yaml")),
				StoredVersions: s.StoredVersions, Acknowledged: s.Acknowledged,
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(struct {
				Message string     `json:"message"`
				Report  crd.Report `json:"report"`
			}{crd.Message(report), report})
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(filepath.Join(dir, "want.yaml"), got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read("want.yaml"), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
