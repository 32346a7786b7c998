package command

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/hanse-dev/hanse/view"
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

func TestSimulateAsksTheHubAndWritesNothing(t *testing.T) {
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
	kubeconfig := reader(t, "simulator",
		allowed(hubv1.GroupVersion.Group, "list", "memberclusters", "placements", "clusterplacements", "overridepolicies", "clusteroverridepolicies", "bundles", "clusterbundles", "federatedoperators", "resourcebindings", "clusterresourcebindings"),
		allowed("", "list", "namespaces", "configmaps", "nodes"), allowed("", "get", "namespaces"), allowed("apps", "list", "*"),
		allowed("coordination.k8s.io", "get", "leases"),
	)
	simulated := func(t *testing.T, args ...string) (view.Simulation, int) {
		t.Helper()
		out, err := runQuietly(t, append([]string{"simulate", "-o", "json", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
		code := 0
		var exit *ExitError
		if errors.As(err, &exit) {
			code = exit.Code
		}
		if code != 1 {
			must(t, err)
		}
		var s view.Simulation
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return s, code
	}
	is := func(t *testing.T, s view.Simulation, name string, want ...string) {
		t.Helper()
		for _, o := range s.Objects {
			if o.Object.Name != name {
				continue
			}
			var got []string
			for _, c := range o.After {
				got = append(got, c.Cluster)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("clusters of %s (-want +got):\n%s", name, diff)
			}
			return
		}
		t.Errorf("%s is not among what changes: %+v", name, s.Objects)
	}

	t.Run("what the hub has yet to do", func(t *testing.T) {
		s, code := simulated(t)
		if code != 1 || s.Summary.Objects != 2 || s.Summary.Changed != 1 {
			t.Errorf("exit code %d: %+v", code, s.Summary)
		}
		is(t, s, "web", "ap-se-1", "cn-sha-1", "cn-sha-2")
	})
	t.Run("a label moves what follows it", func(t *testing.T) {
		s, code := simulated(t, "--set-label", "cn-sha-2:tier=gold", "--set-label", "ap-se-1:tier-")
		if code != 1 || s.Summary.Changed != 1 {
			t.Errorf("exit code %d: %+v", code, s.Summary)
		}
		is(t, s, "settings", "cn-sha-1", "cn-sha-2")
	})
	t.Run("a cluster joins, and replicas move there", func(t *testing.T) {
		s, _ := simulated(t, "--add-cluster", "eu-fra-1")
		is(t, s, "web", "ap-se-1", "cn-sha-1", "cn-sha-2", "eu-fra-1")
	})
	t.Run("a changed placement", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "placement.yaml")
		must(t, os.WriteFile(file, []byte(`{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: all}, spec: {resourceSelectors: [{kind: ConfigMap, name: settings}], clusters: {names: [cn-sha-2]}}}`), 0o600))
		s, code := simulated(t, "-f", file, "-n", "shop")
		if code != 1 || s.Summary.Changed != 1 {
			t.Errorf("exit code %d: %+v", code, s.Summary)
		}
		is(t, s, "settings", "cn-sha-2")
	})
	t.Run("a rule that excludes a cluster", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		must(t, os.WriteFile(file, []byte(`{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x}, spec: {resourceSelectors: [{kind: ConfigMap}], rules: [{name: r, exclude: true, clusters: {names: [ap-se-1]}}]}}`), 0o600))
		s, code := simulated(t, "-f", file, "-n", "shop")
		if code != 1 || s.Summary.Changed != 1 {
			t.Errorf("exit code %d: %+v", code, s.Summary)
		}
		is(t, s, "settings", "cn-sha-1")
		if want := "content of copies not compared: hansectl diff compares it"; !slices.Contains(s.Notes, want) {
			t.Errorf("notes %q, want %q among them", s.Notes, want)
		}
	})
	t.Run("a new object", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "object.yaml")
		must(t, os.WriteFile(file, []byte(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: db}, spec: {replicas: 2}}`), 0o600))
		s, _ := simulated(t, "-f", file, "-n", "shop")
		is(t, s, "db", "ap-se-1", "cn-sha-1")
	})
	t.Run("nothing changes", func(t *testing.T) {
		if s, code := simulated(t, "--set-label", "cn-sha-1:colour=blue"); code != 0 || s.Summary.Changed != 0 {
			t.Errorf("exit code %d: %+v", code, s.Summary)
		}
	})
	t.Run("a hub that is none", func(t *testing.T) {
		_, err := run(t, "simulate", "--kubeconfig", onMember.kubeconfig, "--cache-dir", t.TempDir())
		refused(t, err, errNoHub.Error())
	})
}
