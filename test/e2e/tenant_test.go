package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAViewerOfOneNamespaceReadsItsObjectsAndLearnsNothingOfOthers runs the reading commands of hansectl as a
// ServiceAccount. The account has only the ClusterRole view in one namespace. The commands reach the hub through the
// hub's API server, as for real users.
func TestAViewerOfOneNamespaceReadsItsObjectsAndLearnsNothingOfOthers(t *testing.T) {
	ctx, ns, bank := t.Context(), namespace(t), namespace(t)
	configMaps := hubv1.ResourceSelector{Kind: "ConfigMap"}
	for _, in := range []string{ns, bank} {
		place(t, in, "place-"+in, configMaps, hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{shanghai, singapore}}})
		must(t, suite.Hub.Create(ctx, configMap(in, "settings-"+in)))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), configMap(in, "settings-"+in)) })
	}
	override(t, bank, "bank-rules", replicasRule("bank-rule", 5, inRegion("cn-shanghai")))
	everywhere := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "fleet-of-" + bank}, Spec: hubv1.ClusterPlacementSpec{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: bank}},
		PlacementSpec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{configMaps}, Clusters: hubv1.ClusterSelection{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"label-of-" + bank: "x"}},
		}},
	}}
	must(t, suite.Hub.Create(ctx, everywhere))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), everywhere) })
	labelled := func(value string) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"label-of-%s":%s}}}`, bank, value))
	}
	member := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: shanghai}}
	must(t, suite.Hub.Patch(ctx, member, labelled(`"x"`)))
	t.Cleanup(func() { _ = suite.Hub.Patch(context.WithoutCancel(ctx), member, labelled("null")) })
	for _, m := range []string{shanghai, singapore} {
		for _, in := range []string{ns, bank} {
			eventually(t, normal, func() error { return rowIs(ctx, configMap(in, "settings-"+in), m, metav1.ConditionTrue, "") })
		}
	}
	serveViews(t)
	tenant := newTenant(t, ns)

	reported := ""
	object := []string{"configmap", "settings-" + ns}
	for _, c := range []struct {
		code  int
		words []string
		args  []string
	}{
		{0, []string{"APPLIED 2/2", "cn-shanghai", "live"}, append([]string{"status"}, object...)},
		{0, []string{"ConfigMap " + ns + "/settings-" + ns}, []string{"status"}},
		{0, []string{shanghai, "cn-shanghai", "live"}, []string{"clusters"}},
		{0, []string{"OBJECTS 1   COPIES 2", "What needs you: nothing"}, []string{"problems"}},
		{0, []string{shanghai, "Selected", frankfurt, "Rejected", "hansectl computes the same decision as the hub"}, append([]string{"explain"}, object...)},
		{0, []string{shanghai + ": SELECTED", "Digest:    member = confirmed"}, append([]string{"explain", "--cluster", shanghai, "--fields"}, object...)},
		{0, []string{"└─ " + shanghai}, []string{"tree", "place-" + ns}},
		{0, nil, append([]string{"diff"}, object...)},
		{0, []string{shanghai + "   " + ns + "   settings-" + ns, singapore}, []string{"get", "configmaps"}},
		{0, []string{"# " + shanghai + ": as on the hub"}, append([]string{"render"}, object...)},
		{0, []string{"Plan: no copy changes; 1 copy stay on clusters that do not answer", shanghai}, []string{"plan", "--without-cluster", shanghai}},
	} {
		out, fault, code := tenant.run(append(c.args, "-n", ns)...)
		if code != c.code || strings.Contains(fault, "warning") {
			t.Errorf("hansectl %v ends with %d, want %d:\n%s%s", c.args, code, c.code, out, fault)
		}
		for _, want := range c.words {
			if !strings.Contains(out, want) {
				t.Errorf("hansectl %v does not say %q:\n%s%s", c.args, want, out, fault)
			}
		}
		reported += out + fault
	}
	for _, command := range []string{"status", "explain"} {
		out, fault, _ := tenant.run(append([]string{command, "-o", "yaml", "-n", ns}, object...)...)
		reported += out + fault
	}
	if strings.Contains(reported, bank) || strings.Contains(reported, "bank-") {
		t.Errorf("it tells of another tenant:\n%s", reported)
	}

	t.Run("in another namespace nothing is told, and the role to ask for is named", func(t *testing.T) {
		for _, args := range [][]string{
			{"status", "configmap", "settings-" + bank}, {"status"}, {"explain", "configmap", "settings-" + bank}, {"tree", "place-" + bank},
			{"diff", "configmap", "settings-" + bank}, {"render", "configmap", "settings-" + bank}, {"plan", "--without-cluster", shanghai},
			{"get", "configmaps"}, {"clusters"}, {"problems"},
		} {
			out, fault, code := tenant.run(append(args, "-n", bank)...)
			if code == 0 || out != "" || !strings.Contains(fault, "ask for the ClusterRole") || !strings.Contains(fault, "in namespace "+bank) {
				t.Errorf("hansectl %v ends with %d:\n%s%s", args, code, out, fault)
			}
		}
	})
}

// tenant is a ServiceAccount with the ClusterRole view in one namespace.
type tenant struct {
	*testing.T
	kubeconfig string
}

func newTenant(t *testing.T, ns string) tenant {
	t.Helper()
	ctx := t.Context()
	fillAggregated(t, "view")
	name := "tenant-" + ns
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hubv1.SystemNamespace, Name: name}},
	}
	for _, o := range []client.Object{account, binding} {
		must(t, suite.Hub.Create(ctx, o))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), o) })
	}
	user := "system:serviceaccount:" + hubv1.SystemNamespace + ":" + name
	for _, asked := range []authorizationv1.ResourceAttributes{
		{Namespace: ns, Group: "hanse.dev", Resource: "resourcebindings", Verb: "view"}, {Namespace: ns, Resource: "configmaps", Verb: "list"},
	} {
		eventually(t, normal, func() error { return mayDo(ctx, user, &asked) })
	}
	token, err := suite.Hub.Token(ctx, name)
	must(t, err)
	kubeconfig, err := suite.Hub.KubeconfigFor(token, false)
	must(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, kubeconfig, 0o600))
	return tenant{T: t, kubeconfig: path}
}

func (n tenant) run(args ...string) (stdout, stderr string, code int) {
	n.Helper()
	return runHansectl(n.T, append(args, "--kubeconfig", n.kubeconfig)...)
}

// fillAggregated computes the rules of an aggregated ClusterRole. On other hubs a controller does this, but the lab's
// hub has no controllers.
func fillAggregated(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context()
	var role rbacv1.ClusterRole
	var all rbacv1.ClusterRoleList
	must(t, suite.Hub.Get(ctx, types.NamespacedName{Name: name}, &role))
	must(t, suite.Hub.List(ctx, &all))
	role.Rules = nil
	for _, s := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		must(t, err)
		for _, other := range all.Items {
			if selector.Matches(labels.Set(other.Labels)) {
				role.Rules = append(role.Rules, other.Rules...)
			}
		}
	}
	must(t, suite.Hub.Update(ctx, &role))
}

// serveViews makes the hub's process reachable through the Service hanse-hub-view, which hansectl uses to read copies
// on members. The API server forwards requests only to addresses of pods, and never to loopback. The test therefore
// creates a pod that no kubelet runs. The pod has another address of this machine, and a listener at this address
// forwards to the process.
func serveViews(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	ip := ownAddress(t)
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	must(t, err)
	forward(t, listener, func() string { return strings.TrimPrefix(suite.hub.View, "https://") })
	_, text, err := net.SplitHostPort(listener.Addr().String())
	must(t, err)
	port, err := strconv.Atoi(text)
	must(t, err)
	key := metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "hanse-hub-view"}
	pod := &corev1.Pod{ObjectMeta: key, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "hub", Image: "example.com/hub"}}}}
	pod.Spec.ServiceAccountName = "hanse-hub"
	must(t, suite.Hub.Create(ctx, pod))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), pod, client.GracePeriodSeconds(0)) })
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	must(t, suite.Hub.Status().Update(ctx, pod))
	endpoints := &corev1.Endpoints{ObjectMeta: key, Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // the API server's proxy reads these
		Addresses: []corev1.EndpointAddress{{IP: ip, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: key.Namespace, Name: key.Name}}},
		Ports:     []corev1.EndpointPort{{Name: "view", Port: int32(port)}},
	}}}
	must(t, suite.Hub.Create(ctx, endpoints))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), endpoints) })
}

// forward forwards each connection to the current result of address, until the test ends.
func forward(t *testing.T, listener net.Listener, address func() string) {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go pipe(from, address())
		}
	}()
}

func pipe(from net.Conn, address string) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// ownAddress returns an address of this machine other than loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	i := slices.IndexFunc(addresses, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast()
	})
	if i < 0 {
		t.Skip("this machine has no address but loopback")
	}
	return addresses[i].(*net.IPNet).IP.String()
}
