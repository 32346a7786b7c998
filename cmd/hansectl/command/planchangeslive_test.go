package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/view/preview"
)

// reader creates a user of the hub with only these rules, and returns the user's kubeconfig.
func reader(t *testing.T, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	apply(t, onHub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	apply(t, onHub, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	})
	apiserver.AwaitRights(t, onHub.env.Config, name, "", rules...)
	user, err := onHub.env.AddUser(envtest.User{Name: name}, onHub.env.Config)
	must(t, err)
	text, err := user.KubeConfig()
	must(t, err)
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, text, 0o600))
	return path
}

func allowed(group string, verb string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{verb}}
}

func memberOf(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	m.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name, Key: "kubeconfig"}}}
	m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	apply(t, onHub, m)
	must(t, report(t.Context(), name, metav1.ConditionTrue, hubv1.ReasonConnected, "id-"+name))
}

func TestPlanOfAssumedClustersReadsTheHubAndWritesNothing(t *testing.T) {
	fresh(t)
	_, binding := settings(t)
	memberOf(t, "ap-se-1", map[string]string{"tier": "gold"})
	memberOf(t, "cn-sha-1", map[string]string{"tier": "gold"})
	memberOf(t, "cn-sha-2", nil)
	apply(t, onHub, &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: "settings"}},
		Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}},
	}})
	apply(t, onHub, &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "apps"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "apps", Kind: "*"}},
		Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
		Replicas:          hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide},
	}})
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
	apply(t, onHub, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](6), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod,
	}})
	apply(t, onHub, binding)

	// The user has exactly the rights that docs/rights.md requires, none of which writes.
	kubeconfig := reader(t, "planner-of-clusters",
		allowed(hubv1.GroupVersion.Group, "list", "memberclusters", "placements", "clusterplacements", "overridepolicies", "clusteroverridepolicies", "bundles", "clusterbundles", "federatedoperators", "resourcebindings", "clusterresourcebindings"),
		allowed("", "list", "namespaces", "configmaps", "nodes"), allowed("", "get", "namespaces"), allowed("apps", "list", "*"),
		allowed("coordination.k8s.io", "get", "leases"), allowed(rbacv1.GroupName, "get", "clusterroles"), allowed(rbacv1.GroupName, "list", "roles"),
	)
	made := func(t *testing.T, args ...string) (preview.Plan, int) {
		t.Helper()
		out, err := runQuietly(t, append([]string{"plan", "-o", "json", "--detailed-exitcode", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
		code := ExitCode(err)
		if code != 2 {
			must(t, err)
		}
		return planOf(t, out), code
	}
	// is fails the test if the changed object loses or gains other clusters than want, such as "-ap-se-1 +cn-sha-2".
	is := func(t *testing.T, p preview.Plan, name, want string) {
		t.Helper()
		var got []string
		for _, r := range p.Removals {
			for _, c := range r.Clusters {
				got = append(got, r.Object.Name+" -"+c)
			}
		}
		for _, m := range p.Moves {
			for _, c := range m.To {
				got = append(got, m.Object.Name+" +"+c)
			}
		}
		for _, created := range p.Creations {
			for _, c := range created.Clusters {
				got = append(got, created.Object.Name+" +"+c)
			}
		}
		var all []string
		for _, c := range strings.Fields(want) {
			all = append(all, name+" "+c)
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}

	t.Run("what the hub has yet to do", func(t *testing.T) {
		p, code := made(t)
		if code != 2 || len(p.Notes) > 0 {
			t.Errorf("exit code %d: %q", code, p.Notes)
		}
		is(t, p, "web", "+ap-se-1 +cn-sha-1 +cn-sha-2")
	})
	t.Run("a label moves what follows it", func(t *testing.T) {
		p, code := made(t, "--set-label", "cn-sha-2:tier=gold", "--set-label", "ap-se-1:tier-")
		if code != 2 || p.Summary.Moved != 1 {
			t.Errorf("exit code %d: %+v", code, p.Summary)
		}
		is(t, p, "settings", "-ap-se-1 +cn-sha-2")
	})
	t.Run("a cluster joins, and replicas move there", func(t *testing.T) {
		p, _ := made(t, "--add-cluster", "eu-fra-1")
		is(t, p, "web", "+eu-fra-1")
		if p.Summary.ReplicasMoved == 0 || len(p.Moves) != 1 || len(p.Moves[0].Shares) == 0 {
			t.Errorf("replicas do not move: %+v", p)
		}
	})
	t.Run("a changed placement", func(t *testing.T) {
		file := writtenTo(t, filepath.Join(t.TempDir(), "placement.yaml"), `{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: all}, spec: {resourceSelectors: [{kind: ConfigMap, name: settings}], clusters: {names: [cn-sha-2]}}}`)
		p, code := made(t, "-f", file, "-n", "shop")
		if code != 2 {
			t.Errorf("exit code %d: %+v", code, p.Summary)
		}
		is(t, p, "settings", "-ap-se-1 -cn-sha-1 +cn-sha-2")
	})
	t.Run("a rule that excludes a cluster", func(t *testing.T) {
		file := writtenTo(t, filepath.Join(t.TempDir(), "policy.yaml"), `{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x}, spec: {resourceSelectors: [{kind: ConfigMap}], rules: [{name: r, exclude: true, clusters: {names: [ap-se-1]}}]}}`)
		p, code := made(t, "-f", file, "-n", "shop")
		if code != 2 {
			t.Errorf("exit code %d: %+v", code, p.Summary)
		}
		is(t, p, "settings", "-ap-se-1")
	})
	t.Run("a new object", func(t *testing.T) {
		file := writtenTo(t, filepath.Join(t.TempDir(), "object.yaml"), `{apiVersion: apps/v1, kind: Deployment, metadata: {name: db}, spec: {replicas: 2}}`)
		p, _ := made(t, "-f", file, "-n", "shop")
		is(t, p, "db", "+ap-se-1 +cn-sha-1")
	})
	t.Run("nothing changes", func(t *testing.T) {
		if p, code := made(t, "--set-label", "cn-sha-1:colour=blue"); code != 0 {
			t.Errorf("exit code %d: %+v", code, p.Summary)
		}
	})
	t.Run("a hub that is none", func(t *testing.T) {
		_, err := run(t, "plan", "--kubeconfig", onMember.kubeconfig, "--cache-dir", t.TempDir())
		refused(t, err, errNoHub.Error())
	})
}
