package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
)

// viewer is a user of the hub's API server with a token. The user has only the rights that a test grants.
type viewer struct {
	*testing.T
	kubeconfig string
	endpoint   string
}

// newViewer creates a user who may view the members, get Widgets in a namespace, read the objects that hansectl needs
// there, and list the Leases of the hub's replicas.
func newViewer(t *testing.T, ns, name string, rules ...rbacv1.PolicyRule) viewer {
	t.Helper()
	ctx := t.Context()
	name = ns + "-" + name
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hubv1.SystemNamespace, Name: name}}
	role := func(of string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: of, Name: name}
	}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Rules: append(rules, rbacv1.PolicyRule{
			APIGroups: []string{"hanse.dev"}, Resources: []string{"placements", "overridepolicies", "resourcebindings"}, Verbs: []string{"get", "list"},
		})},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, RoleRef: role("Role"), Subjects: subject},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}, RoleRef: role("Role"), Subjects: subject},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters", "clusterplacements", "clusteroverridepolicies"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{ns}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: role("ClusterRole"), Subjects: subject},
		// The chart creates these roles for users of hansectl.
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name + "-members"}, Subjects: subject, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "Role", Name: "hanse-view",
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-members"}, Subjects: subject, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hanse-view",
		}},
	} {
		must(t, suite.Hub.Create(ctx, o))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), o) })
	}
	asked := []authorizationv1.ResourceAttributes{
		{Namespace: ns, Group: "hanse.dev", Resource: "placements", Verb: "list"},
		{Namespace: hubv1.SystemNamespace, Resource: "services", Subresource: "proxy", Name: "https:hanse-hub-view:8444", Verb: "create"},
		{Group: "hanse.dev", Resource: "memberclusters", Verb: "list"},
		{Group: "hanse.dev", Resource: "memberclusters", Name: shanghai, Verb: "view"},
	}
	for i := range asked {
		eventually(t, normal, func() error { return mayDo(ctx, "system:serviceaccount:"+hubv1.SystemNamespace+":"+name, &asked[i]) })
	}
	token, err := suite.Hub.Token(ctx, name)
	must(t, err)
	kubeconfig, err := suite.Hub.KubeconfigFor(token, false)
	must(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, kubeconfig, 0o600))
	return viewer{T: t, kubeconfig: path, endpoint: suite.hub.View}
}

// mayDo returns nil if the hub's API server grants the permission to the user. A new role takes effect after a moment.
func mayDo(ctx context.Context, user string, what *authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: what}}
	if err := suite.Hub.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%s may not yet do %+v: %s", user, *what, review.Status.Reason)
	}
	return nil
}

// hansectl runs a hansectl command as the user and returns its output and exit code.
func (v viewer) hansectl(args ...string) (stdout, stderr string, code int) {
	v.Helper()
	return runHansectl(v.T, append(args, "--kubeconfig", v.kubeconfig, "--hub-endpoint", v.endpoint)...)
}

// runHansectl runs a hansectl command and returns its output and exit code.
func runHansectl(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(suite.Bin, "hansectl"), args...)
	var out, fault strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &fault
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), fault.String(), cmd.ProcessState.ExitCode()
}

// says runs a command as the user. It fails the test unless the command ends with this exit code and its output
// contains these words.
func (v viewer) says(code int, words []string, args ...string) string {
	v.Helper()
	out, fault, got := v.hansectl(args...)
	if got != code {
		v.Errorf("hansectl %v ends with %d, want %d:\n%s%s\nend of the hub's log:\n%s", args, got, code, out, fault, suite.hub.LogTail())
	}
	for _, want := range words {
		if !strings.Contains(out+fault, want) {
			v.Errorf("hansectl %v does not say %q:\n%s%s", args, want, out, fault)
		}
	}
	return out
}

// getWidgets is a rule that grants the right to get Widgets.
var (
	getWidgets  = rbacv1.PolicyRule{APIGroups: []string{widgetKind.Group}, Resources: []string{"widgets"}, Verbs: []string{"get"}}
	listWidgets = rbacv1.PolicyRule{APIGroups: []string{widgetKind.Group}, Resources: []string{"widgets"}, Verbs: []string{"list"}}
)

// TestUsersSeeWhatTheHubWouldChangeOnMembers runs `hansectl diff` and `plan --live` as a user without credentials for
// any member.
func TestUsersSeeWhatTheHubWouldChangeOnMembers(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "compared")
	placeWidgets(t, ns, shanghai, singapore)
	override(t, ns, "sizes", replicasRule("shanghai", 5, inRegion("cn-shanghai")))
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 5) })
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, w, 3) })
	reader := newViewer(t, ns, "reader", getWidgets, listWidgets)
	diff := []string{"diff", "widget", "compared", "-n", ns}

	if out := reader.says(0, nil, diff...); out != "" {
		t.Errorf("nothing differs, and it prints %s", out)
	}
	changed := fmt.Sprintf(`
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {namespace: %s, name: sizes}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}]
  rules:
  - name: shanghai
    clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: cn-shanghai}}}
    patches: [{op: replace, path: /spec/replicas, value: %%d}]
`, ns)
	policy := func(replicas int) string {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		must(t, os.WriteFile(path, fmt.Appendf(nil, changed, replicas), 0o600))
		return path
	}
	plan := []string{"plan", "-n", ns, "--live", "--diff", "-f"}
	reader.says(0, []string{shanghai, "may not create the object in namespace " + ns}, append(plan, policy(7), "-o", "json")...)
	author := newViewer(t, ns, "author", getWidgets, listWidgets, rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"overridepolicies"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"placements"}, Verbs: []string{"override"}},
		rbacv1.PolicyRule{APIGroups: []string{widgetKind.Group}, Resources: []string{"widgets"}, Verbs: []string{"update"}})
	out := author.says(0, []string{"--- " + shanghai + "/Widget/" + ns + "/compared", "-  replicas: 5", "+  replicas: 7", "ON THE MEMBERS, by a dry run: 1 copy of 1 would change"}, append(plan, policy(7))...)
	if strings.Contains(out, singapore) || strings.Contains(out, "managedFields") {
		t.Errorf("it tells more than what differs:\n%s", out)
	}
	must(t, replicasOn(ctx, shanghai, w, 5))

	t.Run("what was changed on a member is put back, and until then it differs", func(t *testing.T) {
		var p hubv1.Placement
		must(t, suite.Hub.Get(ctx, types.NamespacedName{Namespace: ns, Name: "widgets"}, &p))
		must(t, suite.Hub.Patch(ctx, &p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":{"dispatching":true}}}`))))
		// The test waits until the hub has observed the suspension. Otherwise the hub would restore the changed copy, and the
		// diff would be empty.
		eventually(t, normal, func() error { return observedPlacement(ctx, &p) })
		copied, err := on(ctx, shanghai, w)
		must(t, err)
		eventually(t, normal, func() error {
			return suite.Members[shanghai].Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`)), client.FieldOwner("kubectl-edit"))
		})
		eventually(t, normal, func() error {
			out, fault, code := reader.hansectl(diff...)
			if code != 1 || !strings.Contains(out, "-  replicas: 9") || !strings.Contains(out, "+  replicas: 5") || !strings.Contains(fault, "Suspended") {
				return fmt.Errorf("it ends with %d:\n%s%s", code, out, fault)
			}
			return nil
		})
		must(t, suite.Hub.Patch(ctx, &p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":{"dispatching":false}}}`))))
		eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 5) })
	})
	t.Run("it is told who set a field, and who has it on the member", func(t *testing.T) {
		args := []string{"explain", "widget", "compared", "-n", ns, "--cluster", shanghai, "--fields"}
		eventually(t, normal, func() error { // wait until the row shows the restored copy
			if out, fault, code := reader.hansectl(args...); code != 0 || !strings.Contains(out, "Digest:    member = confirmed") {
				return fmt.Errorf("it ends with %d:\n%s%s", code, out, fault)
			}
			return nil
		})
		out := reader.says(0, []string{shanghai + ": SELECTED", "MEMBER MANAGER"}, args...)
		want := "/spec/replicas 5 OverridePolicy/sizes (shanghai) Namespaced/0/region/1 template: 3 hanse"
		for line := range strings.Lines(out) {
			if strings.Join(strings.Fields(line), " ") == want {
				return
			}
		}
		t.Errorf("want %q in\n%s", want, out)
	})
	t.Run("who may not get the object sees nothing of its copies", func(t *testing.T) {
		one := getWidgets
		one.ResourceNames = []string{"another"}
		narrow := newViewer(t, ns, "narrow", one)
		narrow.says(2, []string{shanghai + ": ", "may not get"}, diff...)
		narrow.says(0, []string{"Widget compared", "may not get"}, "tree", "widgets", "-n", ns)
	})
	t.Run("a user with a client certificate is known by a request, which does not stay", func(t *testing.T) {
		if out, err := suite.Hansectl(ctx, append(diff, "--hub-endpoint", suite.hub.View)...); err != nil || out != "" {
			t.Errorf("got %v: %s", err, out)
		}
		var requests certificatesv1.CertificateSigningRequestList
		must(t, suite.Hub.List(ctx, &requests))
		for _, r := range requests.Items {
			if r.Spec.SignerName == views.ProofSigner {
				t.Errorf("the request %s is left", r.Name)
			}
		}
	})
	t.Run("a user who is impersonated is known if they may make a request", func(t *testing.T) {
		out, err := suite.Hansectl(ctx, append(diff, "--hub-endpoint", suite.hub.View, "--as", "jane", "--as-group", "system:masters")...)
		if err != nil || out != "" {
			t.Errorf("got %v: %s", err, out)
		}
		_, err = suite.Hansectl(ctx, append(diff, "--hub-endpoint", suite.hub.View, "--as", "jane")...)
		if err == nil || !strings.Contains(err.Error(), "ask for") {
			t.Errorf("a user without rights: %v", err)
		}
	})
}

// TestATreeGoesDownToPods runs `hansectl tree` for a Deployment, down to the pods that the controllers of its members
// create.
func TestATreeGoesDownToPods(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	place(t, ns, "workloads", hubv1.ResourceSelector{APIGroup: "apps", Kind: "Deployment"}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai, singapore}}, HubExecution: hubv1.HubExecutionAllowed,
	})
	placeWidgets(t, ns, shanghai)
	d := &unstructured.Unstructured{}
	must(t, json.Unmarshal(fmt.Appendf(nil, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": %q, "name": "web"}, "spec": {
	  "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
	  "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "example.com/web:1"}]}}}}`, ns), d))
	must(t, suite.Hub.Create(ctx, d))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), d) })
	must(t, suite.Hub.Create(ctx, widget(ns, "alone")))
	eventually(t, normal, func() error { return rowIs(ctx, widget(ns, "alone"), shanghai, metav1.ConditionTrue, "") })
	v := newViewer(t, ns, "reader", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}, getWidgets)
	eventually(t, normal, func() error {
		out, fault, code := v.hansectl("tree", "workloads", "-n", ns)
		if code != 0 || strings.Count(out, "Pod web-") != 4 || strings.Count(out, "ReplicaSet web-") != 2 || strings.Count(out, "Running 1/1") != 4 {
			return fmt.Errorf("it ends with %d:\n%s%s", code, out, fault)
		}
		return nil
	})
	v.says(0, []string{"Placement " + ns + "/workloads", "└─ Deployment web", "├─ " + singapore, "└─ " + shanghai}, "tree", "workloads", "-n", ns)
	// A plural name makes hansectl list all kinds.
	v.says(0, []string{"└─ Widget alone", "   └─ " + shanghai}, "tree", "widgets", "-n", ns)
	var reported struct {
		Total   int
		Objects []struct {
			Clusters []struct{ Children []struct{ Kind string } }
		}
	}
	must(t, json.Unmarshal([]byte(v.says(0, nil, "tree", "placement/workloads", "-n", ns, "-o", "json")), &reported))
	if reported.Total != 1 || len(reported.Objects) != 1 || len(reported.Objects[0].Clusters) != 2 || reported.Objects[0].Clusters[0].Children[0].Kind != "ReplicaSet" {
		t.Errorf("as JSON it says %+v", reported)
	}
}

// TestAnyReplicaShowsAnyMember runs three replicas of the hub, each of which works on one member. It asks each replica
// for all members, also while one of the members hangs.
func TestAnyReplicaShowsAnyMember(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "shared")
	c := newCrew(t)
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
	}
	v := newViewer(t, ns, "reader", getWidgets)
	ask := func(replica, member string) (string, int) {
		v.endpoint = c.processes[replica].View
		out, fault, code := v.hansectl("diff", "widget", "shared", "-n", ns, "--cluster", member)
		return out + fault, code
	}
	for _, identity := range c.identities {
		for _, m := range members {
			eventually(t, normal, func() error { // a replica learns by a watch which replica works on which member
				if reported, code := ask(identity, m); code != 0 {
					return fmt.Errorf("replica %s, asked for %s, ends with %d: %s", identity, m, code, reported)
				}
				return nil
			})
		}
	}
	breakMember(t, frankfurt, "blackhole")
	begin := time.Now()
	if reported, code := ask(c.identities[0], frankfurt); code != 2 {
		t.Errorf("a member that hangs ends with %d: %s", code, reported)
	}
	if took := time.Since(begin); took > normal {
		t.Errorf("a member that hangs holds its user up for %s", took)
	}
	for _, m := range []string{shanghai, singapore} {
		if reported, code := ask(c.identities[0], m); code != 0 {
			t.Errorf("%s ends with %d: %s", m, code, reported)
		}
	}
	mendMember(t, frankfurt)
	eventually(t, time.Minute, func() error { return memberReady(ctx, frankfurt) })
	eventually(t, normal, func() error {
		if reported, code := ask(c.identities[0], frankfurt); code != 0 {
			return fmt.Errorf("mended, it ends with %d: %s", code, reported)
		}
		return nil
	})
}
