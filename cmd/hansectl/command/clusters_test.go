package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/view/wire"
)

// TestATenantSeesTheClustersOfTheNamespace runs the command as a user who may list the bindings of one namespace, and
// no MemberClusters.
func TestATenantSeesTheClustersOfTheNamespace(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	member(t, "eu-fra-1")
	h := newPlayedHub(t, func(_, what string, _ []byte) (any, error) {
		if what != wire.Facts {
			return nil, errors.New("that was not asked for")
		}
		shown := hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "ap-se-1", Labels: map[string]string{hubv1.RegionLabel: "ap-southeast-1"}}}
		shown.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable}}
		return wire.FactsAnswer{MemberClusters: []hubv1.MemberCluster{shown}, Notes: []string{"clusters that are not shown: 1"}}, nil
	})
	kubeconfig := reader(t, "tenant", allowed("coordination.k8s.io", "list", "leases"), allowed("coordination.k8s.io", "get", "leases"))
	rules := []rbacv1.PolicyRule{allowed(hubv1.GroupVersion.Group, "list", "resourcebindings", "placements", "overridepolicies")}
	key := metav1.ObjectMeta{Namespace: "shop", Name: "tenant"}
	apply(t, onHub, &rbacv1.Role{ObjectMeta: key, Rules: rules})
	apply(t, onHub, &rbacv1.RoleBinding{
		ObjectMeta: key, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "tenant"}},
	})
	apiserver.AwaitRights(t, onHub.env.Config, "tenant", "shop", rules...)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte("a-token"), 0o600))
	asTenant := func(args ...string) (string, error) {
		return run(t, append(args, "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir(), "--token-file", token, "--hub-endpoint", h.url)...)
	}

	out, err := asTenant("clusters", "-n", "shop")
	must(t, err)
	wants(t, out, "warning: clusters that are not shown: 1", "ap-se-1   False", "ap-southeast-1", hubv1.ReasonUnreachable)
	if strings.Contains(out, "eu-fra-1") || strings.Contains(out, "counted") {
		t.Errorf("another cluster is shown, or the objects are not counted:\n%s", out)
	}
	out, err = asTenant("clusters", "-n", "shop", "-o", "jsonpath={.clusters[*].name} {.clusters[*].objects}")
	must(t, err)
	wants(t, out, "ap-se-1 1")

	t.Run("by name, with more about one cluster", func(t *testing.T) {
		out, err := asTenant("clusters", "ap-se-1", "-n", "shop")
		must(t, err)
		wants(t, out, "ap-se-1   False", "\nRegion:            ap-southeast-1\n")
		_, err = asTenant("clusters", "ap-se-2", "-n", "shop")
		refused(t, err, `the hub has no MemberCluster "ap-se-2" that you may see: there are ap-se-1`)
	})
	t.Run("without a namespace, that of the context is used, with a note", func(t *testing.T) {
		config, err := clientcmd.LoadFromFile(kubeconfig)
		must(t, err)
		config.Contexts[config.CurrentContext].Namespace = "shop"
		inShop := filepath.Join(t.TempDir(), "in-shop")
		must(t, clientcmd.WriteToFile(*config, inShop))
		for _, args := range [][]string{{"problems"}, {"kinds"}, {"plan", "--set-label", "ap-se-1:tier=gold"}} {
			out, err := run(t, append(args, "--kubeconfig", inShop, "--cache-dir", t.TempDir(), "--token-file", token, "--hub-endpoint", h.url)...)
			must(t, err)
			if strings.Count(out, "note: you may not read all namespaces, so that namespace shop of your context is used\n") != 1 {
				t.Errorf("%v:\n%s", args, out)
			}
		}
	})

	file := planFile(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}`)
	_, err = asTenant("plan", "-f", file)
	refused(t, err, "pass -n shop to read this one alone: ")

	out, err = asTenant("problems", "-n", "shop")
	must(t, err)
	wants(t, out, "OBJECTS 1   COPIES 2", "MemberCluster ap-se-1", "cn-sha-1")
	if strings.Contains(out, "missing") || strings.Contains(out, "not all policies") {
		t.Errorf("something is left out:\n%s", out)
	}
	_, err = asTenant("problems")
	refused(t, err, "resourcebindings.hanse.dev is forbidden")
}
