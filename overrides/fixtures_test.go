package overrides

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

// Each archive of testdata is a test case: base.yaml is the object on the hub, cluster.yaml has the name and labels of
// the cluster, and policies.yaml has the policies in scope. want.yaml has the manifest, with the applied and skipped
// rules in comments. want-error.txt has the error instead.
func TestFixtures(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, path := range archives {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, name)
			got := f.render(t)
			if *update {
				if err := os.WriteFile(path, txtar.Format(&txtar.Archive{Files: append(f.given, got)}), 0o644); err != nil {
					t.Fatal(err)
				}
				f.want = got
			}
			if diff := cmp.Diff(f.want.Name+"\n"+string(f.want.Data), got.Name+"\n"+string(got.Data)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", path, diff)
			}
		})
	}
}

// fixture is a test case.
type fixture struct {
	object   *unstructured.Unstructured
	cluster  Cluster
	policies []hubv1.OverridePolicyObject
	given    []txtar.File // the files of the three fields above
	want     txtar.File
}

// render returns the result of a fixture.
func (f fixture) render(t *testing.T) txtar.File {
	t.Helper()
	text, err := f.manifest(t)
	if err != nil {
		return txtar.File{Name: "want-error.txt", Data: []byte(err.Error() + "\n")}
	}
	return txtar.File{Name: "want.yaml", Data: []byte(text)}
}

func (f fixture) manifest(t *testing.T) (string, error) {
	t.Helper()
	id := hubv1.ObjectIdentity{
		Group: f.object.GroupVersionKind().Group, Kind: f.object.GetKind(), Namespace: f.object.GetNamespace(), Name: f.object.GetName(),
	}
	matching, err := Matching(f.policies, hubv1.SelectableObject{ObjectIdentity: id, Labels: f.object.GetLabels()})
	if err != nil {
		return "", err
	}
	prepared, err := Prepare(f.object, []string{"internal.example.com/"})
	if err != nil {
		return "", err
	}
	result, err := prepared.Render(f.cluster, matching, nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range result.Applied {
		b.WriteString("# " + r.String() + "\n")
	}
	for _, s := range result.Skipped {
		b.WriteString("# skipped: " + s.Rule.String() + ": " + strings.TrimSpace(s.Path+" "+s.Reason) + "\n")
	}
	out, err := yaml.Marshal(result.Manifest.Object)
	b.Write(out)
	return b.String(), err
}

func readFixture(t *testing.T, name string) fixture {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{object: &unstructured.Unstructured{}}
	for _, file := range archive.Files {
		if strings.HasPrefix(file.Name, "want") {
			f.want = file
			continue
		}
		f.given = append(f.given, file)
		switch file.Name {
		case "base.yaml":
			err = yaml.Unmarshal(file.Data, f.object)
		case "cluster.yaml":
			err = yaml.Unmarshal(file.Data, &f.cluster)
		case "policies.yaml":
			for _, doc := range strings.Split(string(file.Data), "\n---\n") {
				f.policies = append(f.policies, parsePolicy(t, doc))
			}
		default:
			t.Fatalf("%s has a file %q, which no test reads", name, file.Name)
		}
		if err != nil {
			t.Fatalf("reading %s of %s: %v", file.Name, name, err)
		}
	}
	return f
}

func parsePolicy(t *testing.T, doc string) hubv1.OverridePolicyObject {
	t.Helper()
	var p hubv1.OverridePolicyObject = &hubv1.OverridePolicy{}
	if strings.Contains(doc, "kind: ClusterOverridePolicy\n") {
		p = &hubv1.ClusterOverridePolicy{}
	}
	if err := yaml.UnmarshalStrict([]byte(doc), p); err != nil {
		t.Fatalf("reading policy: %v\n%s", err, doc)
	}
	return p
}
