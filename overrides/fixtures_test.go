package overrides

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite want.yaml and want-error.txt of testdata")

// Each folder of testdata is a test case: base.yaml is the object on the hub, cluster.yaml has the name and labels of
// the cluster, and policies.yaml has the policies in scope. want.yaml has the manifest, with the applied and skipped
// rules in comments. want-error.txt has the error instead.
func TestFixtures(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/base.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, base := range dirs {
		dir := filepath.Dir(base)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			got, failed := renderFixture(t, dir)
			name, other := filepath.Join(dir, "want.yaml"), filepath.Join(dir, "want-error.txt")
			if failed {
				name, other = other, name
			}
			if *update {
				if err := os.Remove(other); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatalf("rendered %q, and there is no %s: %v", got, name, err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", name, diff)
			}
		})
	}
}

func renderFixture(t *testing.T, dir string) (text string, failed bool) {
	t.Helper()
	object, cluster, policies := readFixture(t, dir)
	id := hubv1.ObjectIdentity{
		Group: object.GroupVersionKind().Group, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
	matching, err := Matching(policies, hubv1.SelectableObject{ObjectIdentity: id, Labels: object.GetLabels()})
	if err != nil {
		return err.Error() + "\n", true
	}
	prepared, err := Prepare(object, []string{"internal.example.com/"})
	if err != nil {
		return err.Error() + "\n", true
	}
	result, err := prepared.Render(cluster, matching, nil)
	if err != nil {
		return err.Error() + "\n", true
	}
	var b strings.Builder
	for _, r := range result.Applied {
		b.WriteString("# " + r.String() + "\n")
	}
	for _, s := range result.Skipped {
		b.WriteString("# skipped: " + s.Rule.String() + ": " + strings.TrimSpace(s.Path+" "+s.Reason) + "\n")
	}
	out, err := yaml.Marshal(result.Manifest.Object)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(out)
	return b.String(), false
}

func readFixture(t *testing.T, dir string) (*unstructured.Unstructured, Cluster, []hubv1.OverridePolicyObject) {
	t.Helper()
	read := func(name string, into any) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = yaml.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
	}
	var object unstructured.Unstructured
	read("base.yaml", &object)
	var cluster Cluster
	read("cluster.yaml", &cluster)
	data, err := os.ReadFile(filepath.Join(dir, "policies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var policies []hubv1.OverridePolicyObject
	for _, doc := range strings.Split(string(data), "\n---\n") {
		policies = append(policies, parsePolicy(t, doc))
	}
	return &object, cluster, policies
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
