package overrides

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// examples are policies that users can apply. The folder outcomes has a file of the same name for each example:
// clusters, an object, and the object in each cluster. The part about a cluster begins with the comment "# in NAME",
// and the flag -update writes it.
const (
	examples = "../docs/examples/overrides/"
	outcomes = "testdata/examples/"
)

type example struct {
	policies []hubv1.OverridePolicyObject
	clusters []hubv1.MemberCluster
	object   unstructured.Unstructured
	given    string // the file of outcomes up to the first cluster
	want     string
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob(examples + "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			e := readExample(t, file)
			got := e.render(t)
			if *update {
				if err := os.WriteFile(outcomes+filepath.Base(file), []byte(e.given+got), 0o644); err != nil {
					t.Fatal(err)
				}
				e.want = got
			}
			if diff := cmp.Diff(e.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func readExample(t *testing.T, file string) example {
	t.Helper()
	policies, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := os.ReadFile(outcomes + filepath.Base(file))
	if err != nil {
		t.Fatal(err)
	}
	var e example
	for _, doc := range strings.Split(string(policies), "---\n") {
		e.policies = append(e.policies, parsePolicy(t, doc))
	}
	var want bool
	e.given, e.want, want = strings.Cut(string(outcome), "---\n# in ")
	if want {
		e.want = "---\n# in " + e.want
	}
	for _, doc := range strings.Split(e.given, "---\n") {
		switch {
		case strings.Contains(doc, "kind: MemberCluster\n"):
			var c hubv1.MemberCluster
			if err := yaml.UnmarshalStrict([]byte(doc), &c); err != nil {
				t.Fatal(err)
			}
			e.clusters = append(e.clusters, c)
		default:
			if err := yaml.Unmarshal([]byte(doc), &e.object); err != nil {
				t.Fatal(err)
			}
		}
	}
	return e
}

func (e *example) render(t *testing.T) string {
	t.Helper()
	for _, p := range e.policies {
		if errs := Validate(p.OverrideSpec(), field.NewPath("spec")); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	}
	gvk := e.object.GroupVersionKind()
	matching, err := Matching(e.policies, hubv1.SelectableObject{
		ObjectIdentity: hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: e.object.GetNamespace(), Name: e.object.GetName()},
	})
	if err != nil || len(matching) != len(e.policies) {
		t.Fatalf("%d of %d policies match: %v", len(matching), len(e.policies), err)
	}
	prepared, err := Prepare(&e.object, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range e.clusters {
		result, err := prepared.Render(ClusterOf(&e.clusters[i]), matching, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n# in " + e.clusters[i].Name + "\n")
		for _, s := range result.Skipped {
			b.WriteString("# skipped: " + s.Rule.String() + ": " + strings.TrimSpace(s.Path+" "+s.Reason) + "\n")
		}
		out, err := yaml.Marshal(result.Manifest.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(out)
	}
	return b.String()
}

// Each example in docs/overrides.md and docs/overrides-recipes.md is part of an example file, line by line.
func TestTheManualShowsExamples(t *testing.T) {
	files, err := filepath.Glob(examples + "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	of, err := filepath.Glob(outcomes + "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, file := range append(files, of...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(string(data), "\n"))
	}
	for _, name := range []string{"overrides.md", "overrides-recipes.md"} {
		page, err := os.ReadFile("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(page), "\n```yaml\n")[1:]
		if len(blocks) == 0 {
			t.Fatalf("no examples in docs/%s", name)
		}
		for _, rest := range blocks {
			block, _, _ := strings.Cut(rest, "\n```")
			if !slices.ContainsFunc(all, func(file []string) bool { return holds(file, strings.Split(block, "\n")) }) {
				t.Errorf("in no example of docs/%s:\n%s", name, block)
			}
		}
	}
}

// holds reports whether the file contains the lines one after the other, all with the same additional indentation.
func holds(file, lines []string) bool {
	for i := range file {
		if i+len(lines) > len(file) || !strings.HasSuffix(file[i], lines[0]) {
			continue
		}
		indent := strings.TrimSuffix(file[i], lines[0])
		same := strings.TrimSpace(indent) == ""
		for j, line := range lines {
			same = same && file[i+j] == indent+line
		}
		if same {
			return true
		}
	}
	return false
}
