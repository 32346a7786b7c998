package command

import (
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestRenderAsksTheHubAndTakesFilesAsApplied(t *testing.T) {
	fresh(t)
	_, binding := settings(t)
	memberOf(t, "ap-se-1", nil)
	memberOf(t, "cn-sha-1", nil)
	memberOf(t, "cn-sha-2", nil)
	patch := func(text string) hubv1.OverridePolicySpec {
		return hubv1.OverridePolicySpec{
			ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}},
			Rules:             []hubv1.OverrideRule{{Name: "r", Clusters: &hubv1.RuleClusters{Names: []string{"cn-sha-1"}}, MergePatch: &apiextensionsv1.JSON{Raw: []byte(text)}}},
		}
	}
	apply(t, onHub, &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}, Spec: patch(`{"data":{"from":"the hub"}}`)})

	// The user has exactly the rights that docs/rights.md requires, none of which writes.
	kubeconfig := reader(t, "renderer",
		allowed(hubv1.GroupVersion.Group, "list", "memberclusters", "overridepolicies", "clusteroverridepolicies"),
		allowed(hubv1.GroupVersion.Group, "get", "resourcebindings"), allowed("", "get", "namespaces", "configmaps"),
	)
	rendered := func(t *testing.T, args ...string) (string, error) {
		t.Helper()
		return run(t, append([]string{"render", "cm", "settings", "-n", "shop", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
	}
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "file.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}

	t.Run("an object without a decision", func(t *testing.T) {
		_, err := rendered(t)
		refused(t, err, "the object is not placed: choose clusters with --cluster or --all")
	})
	apply(t, onHub, binding)
	t.Run("for the clusters of its binding", func(t *testing.T) {
		const manifest = "  name: settings\n  namespace: shop\n"
		out, err := rendered(t)
		must(t, err)
		want := "---\n# ap-se-1: as on the hub\napiVersion: v1\nkind: ConfigMap\nmetadata:\n" + manifest +
			"---\n# cn-sha-1: OverridePolicy shop/x, rule \"r\"\napiVersion: v1\ndata:\n  from: the hub\nkind: ConfigMap\nmetadata:\n" + manifest
		if out != want {
			t.Errorf("got\n%s\nwant\n%s", out, want)
		}
	})
	t.Run("a policy of a file takes the place of that of the same name", func(t *testing.T) {
		out, err := rendered(t, "--cluster", "cn-sha-1", "-f", file(
			`{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x}, spec: {resourceSelectors: [{kind: ConfigMap}], rules: [{name: other, mergePatch: {data: {from: a file}}}]}}`))
		must(t, err)
		wants(t, out, `# cn-sha-1: OverridePolicy shop/x, rule "other"`+"\n", "from: a file\n")
	})
	t.Run("another policy of a file comes to those of the hub", func(t *testing.T) {
		out, err := rendered(t, "-f", file(
			`{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: z}, spec: {resourceSelectors: [{kind: ConfigMap}], rules: [{name: out, exclude: true, clusters: {names: [ap-se-1]}}]}}`))
		must(t, err)
		wants(t, out, `# ap-se-1: excluded by OverridePolicy shop/z, rule "out"`+"\n---\n# cn-sha-1: OverridePolicy shop/x", "from: the hub\n")
	})
	t.Run("an object of a file takes the place of that of the hub", func(t *testing.T) {
		out, err := rendered(t, "--all", "-f", file(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {new: "yes"}}`))
		must(t, err)
		wants(t, out, "# cn-sha-1: OverridePolicy shop/x, rule \"r\"\napiVersion: v1\ndata:\n  from: the hub\n  new: \"yes\"\n", "# cn-sha-2: as on the hub\napiVersion: v1\ndata:\n  new: \"yes\"\n")
	})
	t.Run("what decides on clusters is not considered", func(t *testing.T) {
		out, err := rendered(t, "--cluster", "ap-se-1", "-f", filepath.Join("testdata", "plan", "joins.yaml"))
		must(t, err)
		wants(t, out, "warning: MemberClusters, placements and bindings of the files are not considered")
	})
	t.Run("an object that is not there", func(t *testing.T) {
		_, err := run(t, "render", "cm", "other", "-n", "shop", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir())
		refused(t, err, "the hub has no ConfigMap shop/other")
	})
}
