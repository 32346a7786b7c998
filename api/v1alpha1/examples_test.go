package v1alpha1_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestExamplesApplyAsTheyAre creates every object of Hanse in docs/examples. It skips charts and files of values, which
// are for Helm.
func TestExamplesApplyAsTheyAre(t *testing.T) {
	c := connect(t)
	applied := 0
	err := filepath.WalkDir(filepath.Join("..", "..", "docs", "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "-values.yaml") {
			return err
		}
		if entry.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err == nil {
				return fs.SkipDir
			}
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if o.GroupVersionKind().Group != hubv1.GroupVersion.Group {
				continue
			}
			if o.GetNamespace() != "" {
				o.SetNamespace("default") // the API server of this test has no other namespaces
			}
			if err := c.Create(t.Context(), &o, client.DryRunAll); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			applied++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if applied == 0 {
		t.Error("docs/examples holds no object of Hanse")
	}
}
