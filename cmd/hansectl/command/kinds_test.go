package command

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// serves acts as the hub: it writes the kinds that a member serves.
func serves(t *testing.T, m *hubv1.MemberCluster, kinds ...hubv1.ServedKind) {
	t.Helper()
	m.Status.APIResources = kinds
	m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: hubv1.ReasonConnected, LastTransitionTime: metav1.Now()}}
	must(t, onHub.Status().Update(t.Context(), m))
}

func TestKindsReadsTheHub(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	serves(t, member(t, "ap-se-1"), hubv1.ServedKind{Kind: "ConfigMap", Versions: []string{"v1"}}, hubv1.ServedKind{Group: "apps", Kind: "Deployment", Versions: []string{"v1"}})
	serves(t, member(t, "cn-sha-1"), hubv1.ServedKind{Kind: "ConfigMap", Versions: []string{"v1"}}, hubv1.ServedKind{Group: "apps", Kind: "Deployment", Versions: []string{"v1beta2"}})

	t.Run("without a problem the exit code is 0", func(t *testing.T) {
		out, err := hansectl(t, "kinds", "--problems")
		must(t, err)
		wants(t, out, "No kind")
	})
	placement := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	placement.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	placement.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}}
	placement.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "apps", Kind: "Deployment"}, {APIGroup: "example.com", Kind: "Lamp"}}
	apply(t, onHub, placement)

	t.Run("as text", func(t *testing.T) {
		out, err := hansectl(t, "kinds")
		must(t, err)
		wants(t, out, "KIND               OBJECTS   COPIES   SERVED            VERSIONS              HUB              PROBLEMS",
			"ConfigMap          1         2        2/2               v1 ",
			"Deployment.apps    0         0        2/2               v1 (1), v1beta2 (1)   v1               1 cluster does not serve v1, which the objects need; it serves only v1beta2: cn-sha-1: update the CustomResourceDefinition or the cluster",
			"Lamp.example.com   0         0        0/2 (2 unknown)   -                     not on the hub   not on the hub, and a placement selects it")
	})
	t.Run("only kinds with a problem, with the exit code 1", func(t *testing.T) {
		out, err := hansectl(t, "kinds", "--problems")
		refused(t, err, "2 kinds have a problem")
		exits(t, err, 1)
		if strings.Contains(out, "ConfigMap") {
			t.Errorf("a kind without a problem is shown:\n%s", out)
		}
	})
	t.Run("as JSON, of one namespace", func(t *testing.T) {
		out, err := hansectl(t, "kinds", "-n", "shop", "-o", "json")
		must(t, err)
		var kinds view.Kinds
		must(t, json.Unmarshal([]byte(out), &kinds))
		if len(kinds.Kinds) != 3 || kinds.Kinds[0].Copies != 2 || kinds.Kinds[1].Problems[0].Reason != hubv1.ReasonVersionNotServed {
			t.Errorf("got %+v", kinds)
		}
	})
	t.Run("a namespace that no placement selects has no kinds", func(t *testing.T) {
		out, err := hansectl(t, "kinds", "-n", "default", "-o", "json")
		must(t, err)
		wants(t, out, `"kinds": []`)
	})
	for name, typed := range map[string]string{"the plural": "configmaps", "a short name": "cm"} {
		t.Run("one kind by cluster, by "+name, func(t *testing.T) {
			out, err := hansectl(t, "kinds", typed)
			must(t, err)
			wants(t, out, "ConfigMap   hub: v1   objects 1   copies 2   served 2/2", "cn-sha-1   v1         yes      1         0         0         0")
		})
	}
	t.Run("a kind that is not in use is shown by cluster, too", func(t *testing.T) {
		out, err := hansectl(t, "kinds", "secrets")
		must(t, err)
		wants(t, out, "Secret   hub: v1   objects 0", "cn-sha-1   unknown    no")
	})
	t.Run("a mistyped kind is answered with similar ones", func(t *testing.T) {
		_, err := hansectl(t, "kinds", "configmpas")
		refused(t, err, `finding the kind "configmpas": no binding or placement has this kind, and the hub does not serve it; did you mean configmap or configmaps?`)
		exits(t, err, 1)
	})
	t.Run("--problems is for all kinds", func(t *testing.T) {
		_, err := hansectl(t, "kinds", "configmaps", "--problems")
		refused(t, err, "--problems and KIND exclude each other")
		exits(t, err, 2)
	})
}

// TestATenantSeesTheKindsOfTheNamespace runs the command as a user who may list the bindings of one namespace, and no
// MemberClusters.
func TestATenantSeesTheKindsOfTheNamespace(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	h := newPlayedHub(t, func(_, what string, _ []byte) (any, error) {
		if what != wire.Facts {
			return nil, errors.New("that was not asked for")
		}
		shown := hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "ap-se-1"}}
		shown.Status.APIResources = []hubv1.ServedKind{{Kind: "ConfigMap", Versions: []string{"v1"}}}
		return wire.FactsAnswer{MemberClusters: []hubv1.MemberCluster{shown}}, nil
	})
	kubeconfig := reader(t, "kinds-tenant", allowed("coordination.k8s.io", "get", "leases"), allowed("coordination.k8s.io", "list", "leases"))
	rules := []rbacv1.PolicyRule{allowed(hubv1.GroupVersion.Group, "list", "resourcebindings", "placements"), allowed("", "get", "namespaces")}
	key := metav1.ObjectMeta{Namespace: "shop", Name: "kinds-tenant"}
	apply(t, onHub, &rbacv1.Role{ObjectMeta: key, Rules: rules})
	apply(t, onHub, &rbacv1.RoleBinding{
		ObjectMeta: key, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: key.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: key.Name}},
	})
	apiserver.AwaitRights(t, onHub.env.Config, key.Name, "shop", rules...)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte("a-token"), 0o600))
	asTenant := func(args ...string) (string, error) {
		return run(t, append(args, "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir(), "--token-file", token, "--hub-endpoint", h.url)...)
	}

	out, err := asTenant("kinds", "-n", "shop")
	must(t, err)
	wants(t, out, "ConfigMap   1         2        1/2 (1 unknown)   v1 ")
	if strings.Contains(out, "warning") {
		t.Errorf("something is left out:\n%s", out)
	}
	_, err = asTenant("kinds")
	refused(t, err, "resourcebindings.hanse.dev is forbidden")
}
