package manifest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
)

var examples = filepath.Join("..", "..", "docs", "examples", "bundles")

// TestTheExamplesOfTheDocsAreRead reads the bundles in docs/examples/bundles, with the ConfigMaps in the same files.
// The hub of the test serves none of their kinds.
func TestTheExamplesOfTheDocsAreRead(t *testing.T) {
	for file, want := range map[string][]string{
		"web.yaml":       {"Service shop/web", "Deployment.apps shop/web"},
		"rotors.yaml":    {"CustomResourceDefinition.apiextensions.k8s.io rotors.example.com", "Rotor.example.com shop/main"},
		"configmap.yaml": {"ConfigMap shop/limits", "ConfigMap shop/settings"},
	} {
		t.Run(file, func(t *testing.T) {
			objects, err := manifest.Read(inputOf(t, file))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, hubv1.IdentityOf(o).String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("the objects are %q, want %q", got, want)
			}
		})
	}
}

// TestTheFirstExampleOfTheDocsIsAFile compares docs/bundles.md with the file that the page names.
func TestTheFirstExampleOfTheDocsIsAFile(t *testing.T) {
	page := readExample(t, filepath.Join("..", "..", "docs", "bundles.md"))
	// The first line of the file is a comment, which the page leaves out.
	_, manifests, _ := strings.Cut(readExample(t, filepath.Join(examples, "web.yaml")), "\n")
	if !strings.Contains(page, "```yaml\n"+manifests+"```\n") {
		t.Error("docs/bundles.md does not have the manifests of docs/examples/bundles/web.yaml")
	}
}

// inputOf returns the input for the bundle of an example.
func inputOf(t *testing.T, file string) manifest.Input {
	t.Helper()
	in := manifest.Input{Namespaced: func(schema.GroupKind) (namespaced, known bool, err error) { return false, false, nil }}
	for document := range strings.SplitSeq(readExample(t, filepath.Join(examples, file)), "\n---\n") {
		var kind metav1.TypeMeta
		decode(t, document, &kind)
		switch kind.Kind {
		case "ConfigMap":
			var m corev1.ConfigMap
			decode(t, document, &m)
			in.ConfigMaps = append(in.ConfigMaps, m)
		case hubv1.BundleKind, hubv1.ClusterBundleKind:
			var b hubv1.Bundle // a ClusterBundle has the same fields
			decode(t, document, &b)
			in.Namespace, in.Manifests = b.Namespace, b.Spec.Manifests
		}
	}
	return in
}

func decode(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}

func readExample(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
