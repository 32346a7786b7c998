package connect

import (
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// TestARealClusterIsConnected connects with a ServiceAccount that has only the rights that the member chart grants.
func TestARealClusterIsConnected(t *testing.T) {
	apiserver.Needed(t)
	server := &envtest.Environment{}
	admin, err := server.Start()
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	c, err := client.New(admin, client.Options{})
	must(t, err)
	account, kubeconfig := serviceAccount(t, c, admin)
	n := aNode(in("eu", "eu-a"))
	n.Name = "node-1"
	must(t, c.Create(t.Context(), &n))
	n.Status = aNode().Status
	must(t, c.Status().Update(t.Context(), &n))

	p := New(quick)
	a := start(t, p)
	p.Ensure("eu", by(kubeconfig), "")
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonForbidden)
	grant(t, c, account)
	s := reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)

	var namespace corev1.Namespace
	must(t, c.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace))
	if s.Facts.ClusterID != string(namespace.UID) {
		t.Errorf("clusterID is %q and kube-system has the UID %q", s.Facts.ClusterID, namespace.UID)
	}
	eventually(t, "facts", func() string {
		f, _ := p.State("eu")
		if f.Facts.Kubernetes != "" && f.Facts.Nodes == (hubv1.NodeSummary{Total: 1, Ready: 1}) && f.Facts.Region == "eu" && f.Facts.Capacity.Cpu().String() == "4" {
			return ""
		}
		return fmt.Sprintf("are %+v", f.Facts)
	})
	useClients(t, a.all()[0].cluster)

	must(t, c.Delete(t.Context(), account)) // the API server then refuses the account's token
	s = reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonUnauthorized)
	if s.Credentials != metav1.ConditionFalse {
		t.Errorf("credentials are %s", s.Credentials)
	}
	user, err := server.AddUser(envtest.User{Name: "hub", Groups: []string{"system:masters"}}, nil)
	must(t, err)
	p.Ensure("eu", by(kubeconfigOf(t, clusterOf(admin), &clientcmdapi.AuthInfo{
		ClientCertificateData: user.Config().CertData, ClientKeyData: user.Config().KeyData,
	})), s.Facts.ClusterID)
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	useClients(t, a.all()[0].cluster)
	if len(a.all()) != 1 {
		t.Error("new credentials made a new cluster")
	}
}

// useClients sends requests through every client config of the Cluster.
func useClients(t *testing.T, c *Cluster) {
	t.Helper()
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	requests, err := dynamic.NewForConfig(c.Requests)
	must(t, err)
	_, err = requests.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
	must(t, err)
	watches, err := dynamic.NewForConfig(c.Watches)
	must(t, err)
	w, err := watches.Resource(namespaces).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	must(t, err)
	<-w.ResultChan()
	w.Stop()
}

func serviceAccount(t *testing.T, c client.Client, admin *rest.Config) (*corev1.ServiceAccount, []byte) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hanse"}}
	must(t, c.Create(t.Context(), account))
	token := &authenticationv1.TokenRequest{}
	must(t, c.SubResource("token").Create(t.Context(), account, token))
	return account, kubeconfigOf(t, clusterOf(admin), &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

func clusterOf(admin *rest.Config) *clientcmdapi.Cluster {
	return &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
}

func grant(t *testing.T, c client.Client, account *corev1.ServiceAccount) {
	t.Helper()
	must(t, c.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "hanse"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces", "nodes"}, Verbs: []string{"get", "list", "watch"}}},
	}))
	must(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "hanse"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hanse"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}))
}
