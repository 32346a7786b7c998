package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
	"github.com/hanse-dev/hanse/bundles/manifest"
)

var examples = filepath.Join("..", "..", "docs", "examples", "operators")

// exampleObjects returns the objects of the example's operator, as the hub reads them.
func exampleObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	folder := filepath.Join(examples, "rotors")
	chart := files{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		chart[filepath.ToSlash(name)] = readExample(t, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var o hubv1.FederatedOperator
	decodeExample(t, "operator.yaml", hubv1.FederatedOperatorKind, &o)
	archive := &corev1.ConfigMap{BinaryData: map[string][]byte{"rotors.tgz": charttest.Archive("app", chart)}}
	in, err := InputOf(o.Spec.Chart, hubWith(map[string]*corev1.ConfigMap{o.Spec.Chart.Archive.ConfigMap: archive}))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	ofChart, err := rendered.ForMembers(o.Spec.Chart.Hooks)
	if err != nil {
		t.Fatal(err)
	}
	none := func(schema.GroupKind) (namespaced, known bool, err error) { return false, false, nil }
	objects, err := manifest.Read(manifest.Input{Rendered: ofChart, Namespaced: none})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestTheChartOfTheDocsIsRead(t *testing.T) {
	t.Parallel()
	var got []string
	for _, o := range exampleObjects(t) {
		got = append(got, hubv1.IdentityOf(o).String())
		if replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); o.GetKind() == "Deployment" && replicas != 2 {
			t.Errorf("the Deployment has %d replicas, not those of the values of the FederatedOperator", replicas)
		}
	}
	want := []string{
		"CustomResourceDefinition.apiextensions.k8s.io rotors.example.com",
		"ServiceAccount turbines/rotor-operator",
		"Deployment.apps turbines/rotor-operator",
		"ClusterRole.rbac.authorization.k8s.io rotor-operator",
		"ClusterRoleBinding.rbac.authorization.k8s.io rotor-operator",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the objects are %q, want %q", got, want)
	}
}

// TestTheAccountOfTheDocsMayHaveTheObjectsOfTheChart compares the ClusterRole of the example with docs/bundles.md.
func TestTheAccountOfTheDocsMayHaveTheObjectsOfTheChart(t *testing.T) {
	t.Parallel()
	var role rbacv1.ClusterRole
	decodeExample(t, "operator.yaml", "ClusterRole", &role)
	demand := func(group, resource string, verbs ...string) {
		for _, verb := range verbs {
			if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
			}) {
				t.Errorf("the account may not %s %s of group %q", verb, resource, group)
			}
		}
	}
	for _, o := range exampleObjects(t) {
		gvk := o.GroupVersionKind()
		demand(gvk.Group, strings.ToLower(gvk.Kind)+"s", "get", "create", "update", "delete")
	}
	demand(rbacv1.GroupName, "clusterroles", "escalate", "bind")
}

// TestTheExamplesOfOperatorsAreFiles compares pages with the files that they name.
func TestTheExamplesOfOperatorsAreFiles(t *testing.T) {
	t.Parallel()
	for file, page := range map[string]string{
		"operator.yaml": "tasks/install-operator.md",
		"rotor.yaml":    "tasks/install-operator.md",
		"fetched.yaml":  "operators.md",
		"regions.yaml":  "operators.md",
	} {
		// The first line of the file is a comment, which the page leaves out.
		_, manifests, _ := strings.Cut(readExample(t, filepath.Join(examples, file)), "\n")
		if !strings.Contains(readExample(t, filepath.Join("..", "..", "docs", page)), "```yaml\n"+manifests+"```\n") {
			t.Errorf("docs/%s does not have the manifests of docs/examples/operators/%s", page, file)
		}
	}
}

// decodeExample decodes the object of a kind in a file of the examples.
func decodeExample(t *testing.T, file, kind string, into any) {
	t.Helper()
	for document := range strings.SplitSeq(readExample(t, filepath.Join(examples, file)), "\n---\n") {
		var is metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &is); err != nil {
			t.Fatal(err)
		}
		if is.Kind != kind {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("docs/examples/operators/%s has no %s", file, kind)
}

func readExample(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
