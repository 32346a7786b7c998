package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

const hubPolicyName = "hanse-member-hub"

func TestJoinLimitsTheHubByAnAdmissionPolicyAndUnjoinRemovesIt(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	join := func(args ...string) (string, error) {
		return hansectl(t, append([]string{"join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--wait=false", "--grant", "configmaps"}, args...)...)
	}
	adoption := func() (installed, adopts bool) {
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		err := onMember.Get(ctx, client.ObjectKey{Name: hubPolicyName}, &policy)
		must(t, client.IgnoreNotFound(err))
		return err == nil, err == nil && strings.Contains(policy.Spec.Validations[0].Expression, "!('hanse.dev/hub' in variables.before) && variables.marks")
	}
	is := func(installed, adopts bool) {
		t.Helper()
		if i, a := adoption(); i != installed || a != adopts {
			t.Errorf("the policy is installed: %t, and lets the hub adopt: %t", i, a)
		}
	}
	out, err := join("--dry-run=client")
	must(t, err)
	wants(t, out, "validatingadmissionpolicy/hanse-member-hub created")
	is(false, false)

	out, err = join()
	must(t, err)
	wants(t, out, "validatingadmissionpolicy/hanse-member-hub created", "validatingadmissionpolicybinding/hanse-member-hub created")
	is(true, false)
	hub := asHub(t, "cn-sha-1")
	write := func(namespace string, labels map[string]string) (err error) {
		t.Helper()
		// Rights and policies take effect late.
		if wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err = hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "by-the-hub", Labels: labels}}, client.DryRunAll)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), hubPolicyName), nil
		}) != nil {
			t.Fatalf("the policy does not refuse a ConfigMap in %s: %v", namespace, err)
		}
		return err
	}
	refused(t, write("default", nil), "only objects with its label hanse.dev/hub", "hansectl join --admission-policy=adopt")
	refused(t, write("kube-public", map[string]string{hubv1.HubLabel: "hub-1"}), "nothing in the namespaces kube-*")
	must(t, hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "by-the-hub", Labels: map[string]string{hubv1.HubLabel: "hub-1"},
	}}, client.DryRunAll))

	for _, step := range []struct {
		args              []string
		installed, adopts bool
		says              string
	}{
		{[]string{"--admission-policy=adopt"}, true, true, "validatingadmissionpolicy/hanse-member-hub updated"},
		{nil, true, true, "serviceaccount/hanse               unchanged"},
		{[]string{"--admission-policy=true"}, true, false, "validatingadmissionpolicy/hanse-member-hub updated"},
		{[]string{"--admission-policy=false"}, false, false, "validatingadmissionpolicy/hanse-member-hub deleted"},
		{nil, false, false, "missing: no policy limits what the hub may write; hansectl join --admission-policy=true adds it"},
		{[]string{"--admission-policy=true"}, true, false, "validatingadmissionpolicy/hanse-member-hub created"},
	} {
		out, err := join(step.args...)
		must(t, err)
		wants(t, out, step.says)
		is(step.installed, step.adopts)
	}
	out, err = hansectl(t, "unjoin", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig)
	must(t, err)
	wants(t, out, "validatingadmissionpolicybinding/hanse-member-hub deleted", "validatingadmissionpolicy/hanse-member-hub deleted")
	is(false, false)
}

func TestJoinWithoutTheRightToInstallThePolicyChangesNothing(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "admin-without-policies"}}
	for _, group := range []string{"", rbacv1.GroupName} {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"*"}})
	}
	apply(t, onMember, role)
	apply(t, onMember, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "half-an-admin"}},
	})
	user, err := onMember.env.AddUser(envtest.User{Name: "half-an-admin"}, nil)
	must(t, err)
	text, err := user.KubeConfig()
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "member.kubeconfig")
	must(t, os.WriteFile(kubeconfig, text, 0o600))
	apiserver.AwaitRights(t, onMember.env.Config, "half-an-admin", "", role.Rules[0])

	join := []string{"join", "cn-sha-1", "--member-kubeconfig", kubeconfig, "--wait=false"}
	_, err = hansectl(t, join...)
	refused(t, err, "installing the admission policy that limits what the hub may write", "forbidden", "pass --admission-policy=false to join without it")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}}
	if err := onMember.Get(ctx, client.ObjectKeyFromObject(account), account); !apierrors.IsNotFound(err) {
		t.Errorf("the hub has an account: %v", err)
	}
	out, err := hansectl(t, append(join, "--admission-policy=false")...)
	must(t, err)
	wants(t, out, "serviceaccount/hanse               created", "validatingadmissionpolicy/hanse-member-hub not removed")
}
