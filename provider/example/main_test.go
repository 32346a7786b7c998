package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/provider"
)

// TestTheOperatorWorksOnThreeMembersOfWhichOneHangs is the life of a fleet, on real API servers and with the rights of
// the chart. The first member is the hub's own cluster.
func TestTheOperatorWorksOnThreeMembersOfWhichOneHangs(t *testing.T) {
	servers := startServers(t, 3)
	hub, cn, us := servers[0], servers[1], servers[2]
	rights, err := os.ReadFile(filepath.Join(root, "docs/examples/controllers/hub.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	hub.apply(t, rights)
	mend := us.hanging(t)
	us.makeNamespace(t, "before", map[string]string{isolatedLabel: "true"})
	for name, s := range map[string]*server{"eu": hub, "cn": cn, "us": us} {
		s.installMember(t)
		s.join(t, hub, name)
	}
	fleet, _ := start(t, hub.operatorConfig(t))

	hub.isolates(t, "first")
	cn.isolates(t, "first")
	hub.isolates(t, "second") // the workers are free, although a member hangs
	if us.hasPolicy(t, "before") {
		t.Fatal("the member that hangs does not hang")
	}
	mend()
	us.awaitPolicy(t, "before")

	t.Run("the consumer makes tokens of its own account alone", func(t *testing.T) { ownTokens(t, fleet) })
	t.Run("a changed token keeps the cluster", func(t *testing.T) { changedToken(t, fleet, hub, cn) })
	t.Run("a tunnelled member says that it is not served", func(t *testing.T) { tunnelled(t, fleet, hub) })
	t.Run("a wrong cluster is not served", func(t *testing.T) { wrongCluster(t, fleet, hub, cn, us) })
	t.Run("a member that leaves is disengaged while the controller runs", func(t *testing.T) { leaving(t, fleet, hub, cn) })
	hub.isolates(t, "last")
	us.isolates(t, "last")
}

func ownTokens(t *testing.T, fleet *provider.Provider) {
	t.Helper()
	member, err := fleet.Get(t.Context(), "us")
	if err != nil {
		t.Fatal(err)
	}
	request := func(account string) error {
		of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: account}}
		return member.GetClient().SubResource("token").Create(t.Context(), of, &authenticationv1.TokenRequest{})
	}
	if err := request(provider.AccountOf("isolate")); err != nil {
		t.Errorf("its own account: %v", err)
	}
	if err := request("hanse"); !apierrors.IsForbidden(err) {
		t.Errorf("the account of the hub: %v", err)
	}
	if err := member.GetAPIReader().List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("the Secrets of the member: %v", err)
	}
}

func changedToken(t *testing.T, fleet *provider.Provider, hub, cn *server) {
	t.Helper()
	before, err := fleet.Get(t.Context(), "cn")
	if err != nil {
		t.Fatal(err)
	}
	token := cn.token(t, hubv1.SystemNamespace, provider.AccountOf("isolate"), "second")
	patch(t, hub, "cn", map[string]string{provider.TokenKey: token})
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "cn"}}
	await(t, "the end of the old token", func() bool { return client.IgnoreNotFound(cn.Delete(t.Context(), old)) == nil })
	cn.isolates(t, "renewed")
	after, err := fleet.Get(t.Context(), "cn")
	if err != nil || after != before {
		t.Errorf("another cluster came: %v", err)
	}
}

func tunnelled(t *testing.T, fleet *provider.Provider, hub *server) {
	t.Helper()
	err := hub.Create(t.Context(), &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: hubv1.MemberClusterSpec{
		Connection:        hubv1.Connection{Type: hubv1.ConnectionTunnel, Tunnel: &hubv1.TunnelConnection{}},
		AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
	}})
	if err != nil {
		t.Fatal(err)
	}
	awaitReason(t, fleet, "edge", provider.ReasonNotThroughTunnel)
	if _, err := fleet.Get(t.Context(), "edge"); !errors.Is(err, multicluster.ErrClusterNotFound) || !strings.Contains(err.Error(), "not served through the tunnel") {
		t.Errorf("the error is %v", err)
	}
}

func wrongCluster(t *testing.T, fleet *provider.Provider, hub, cn, us *server) {
	t.Helper()
	token := us.token(t, hubv1.SystemNamespace, provider.AccountOf("isolate"), "other")
	patch(t, hub, "cn", map[string]string{provider.ServerKey: us.address, provider.CAKey: string(us.ca), provider.TokenKey: token})
	awaitReason(t, fleet, "cn", provider.ReasonWrongCluster)
	cn.isolates(t, "as-before") // by the credentials before
	good := cn.token(t, hubv1.SystemNamespace, provider.AccountOf("isolate"), "third")
	patch(t, hub, "cn", map[string]string{provider.ServerKey: cn.address, provider.CAKey: string(cn.ca), provider.TokenKey: good})
	awaitReason(t, fleet, "cn", provider.ReasonServed)
}

func leaving(t *testing.T, fleet *provider.Provider, hub, cn *server) {
	t.Helper()
	before, err := fleet.Get(t.Context(), "cn")
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Delete(t.Context(), &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "cn"}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of cn", func() bool {
		_, err := fleet.Get(t.Context(), "cn")
		return errors.Is(err, multicluster.ErrClusterNotFound)
	})
	err = before.GetClient().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late"}})
	if err == nil || !strings.Contains(err.Error(), "cluster cn: the cluster left the fleet") {
		t.Errorf("a controller that still works on the cluster got %v", err)
	}
	cn.makeNamespace(t, "alone", map[string]string{isolatedLabel: "true"})
}

func patch(t *testing.T, hub *server, name string, data map[string]string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "isolate", Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	if err := hub.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

func awaitReason(t *testing.T, fleet *provider.Provider, name, reason string) {
	t.Helper()
	await(t, reason+" of "+name, func() bool {
		for _, s := range fleet.States() {
			if s.Cluster.String() == name {
				return s.Reason == reason
			}
		}
		return false
	})
}
