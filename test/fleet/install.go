package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// The names of the helm releases. The names differ, because both charts may be installed on the hub.
const (
	hubRelease    = "hanse"
	memberRelease = "hanse-member"
)

// UninstallMember uninstalls the member chart from a cluster.
func (f *Fleet) UninstallMember(ctx context.Context, c *Cluster) error {
	_, err := f.HelmCommand(ctx, c, "uninstall", memberRelease, "--namespace", hubv1.SystemNamespace)
	return err
}

// Kind is an entry of the chart value federatedKinds (hub) or grantedKinds (member).
type Kind struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	// Status allows the hub to write the status of the kind. Only the hub chart has this value.
	Status bool `json:"status,omitempty"`
}

// WithWebhook returns an option that lets the hub at this URL review policies.
func WithWebhook(url string) func(values map[string]any) {
	return func(values map[string]any) { values["webhook"] = map[string]any{"url": url, "authors": true} }
}

// InstallHub installs or upgrades the hub chart with these kinds. The chart creates no pods, because the lab has no
// kubelet.
func (f *Fleet) InstallHub(ctx context.Context, kinds []Kind, options ...func(values map[string]any)) error {
	content := map[string]any{"replicas": 0, "federatedKinds": kinds, "uninstallHook": map[string]any{"enabled": false}}
	if f.Agents {
		content["tunnel"] = map[string]any{"enabled": true, "service": map[string]any{"type": "ClusterIP"}}
	}
	for _, o := range options {
		o(content)
	}
	values, err := f.valuesFile("hub-values.json", content)
	if err != nil {
		return err
	}
	_, err = f.HelmCommand(ctx, f.Hub, "upgrade", "--install", hubRelease, filepath.Join(f.Charts, "hanse-hub"),
		"--namespace", hubv1.SystemNamespace, "--create-namespace", "--values", values)
	return err
}

// UninstallHub uninstalls the hub chart from the hub. The caller must stop the hub processes.
func (f *Fleet) UninstallHub(ctx context.Context) error {
	_, err := f.HelmCommand(ctx, f.Hub, "uninstall", hubRelease, "--namespace", hubv1.SystemNamespace)
	return err
}

// InstallMember installs or upgrades the member chart with these kinds on a cluster. The cluster may be the hub, which
// can be a member as well.
func (f *Fleet) InstallMember(ctx context.Context, c *Cluster, kinds []Kind, options ...func(values map[string]any)) error {
	granted := make([]Kind, 0, len(kinds))
	for _, k := range kinds {
		k.Status = false
		granted = append(granted, k)
	}
	content := map[string]any{
		"grantedKinds": granted, "listWorkloads": true, "listEvents": true, "readLogs": true,
		"admissionPolicy": map[string]any{"adoption": true}, // tests adopt objects, and take orphaned copies back
	}
	for _, o := range options {
		o(content)
	}
	values, err := f.valuesFile(c.Name+"-values.json", content)
	if err != nil {
		return err
	}
	_, err = f.HelmCommand(ctx, c, "upgrade", "--install", memberRelease, filepath.Join(f.Charts, "hanse-member"),
		"--namespace", hubv1.SystemNamespace, "--create-namespace", "--values", values)
	return err
}

func (f *Fleet) valuesFile(name string, values map[string]any) (string, error) {
	raw, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	path := filepath.Join(f.Dir, name)
	return path, os.WriteFile(path, raw, 0o600)
}

// Token returns a token of a ServiceAccount in the namespace hanse-system.
func (c *Cluster) Token(ctx context.Context, serviceAccount string) (string, error) {
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](6 * 3600)}}
	answer, err := clients.CoreV1().ServiceAccounts(hubv1.SystemNamespace).CreateToken(ctx, serviceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s in %s: %w", serviceAccount, c.Name, err)
	}
	return answer.Status.Token, nil
}

// KubeconfigFor returns a kubeconfig for the cluster with a bearer token. It connects through the fault proxy if
// proxied is true.
func (c *Cluster) KubeconfigFor(token string, proxied bool) ([]byte, error) {
	ca, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of %s: %w", c.Name, err)
	}
	server := c.Server
	if proxied && c.ProxyServer != "" {
		server = c.ProxyServer
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{c.Name: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"hanse": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{c.Name: {Cluster: c.Name, AuthInfo: "hanse"}},
		CurrentContext: c.Name,
	})
}

// Join creates the Secret and the MemberCluster for a cluster on which the member chart is installed. The labels are
// set on the MemberCluster.
func (f *Fleet) Join(ctx context.Context, c *Cluster, labels map[string]string) error {
	token, err := c.Token(ctx, "hanse")
	if err != nil {
		return err
	}
	kubeconfig, err := c.KubeconfigFor(token, true)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: c.Name}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	if err := client.IgnoreAlreadyExists(f.Hub.Create(ctx, secret)); err != nil {
		return fmt.Errorf("creating the kubeconfig Secret of %s: %w", c.Name, err)
	}
	mcl := &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: labels},
		Spec: hubv1.MemberClusterSpec{
			Connection: hubv1.Connection{
				Type:   hubv1.ConnectionDirect,
				Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: c.Name, Key: "kubeconfig"}},
			},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
			Hub:               c.Name == f.Hub.Name,
		},
	}
	if err := client.IgnoreAlreadyExists(f.Hub.Create(ctx, mcl)); err != nil {
		return fmt.Errorf("creating MemberCluster %s: %w", c.Name, err)
	}
	return nil
}

// AsServiceAccount returns a client config for the cluster with the token of a ServiceAccount.
func (c *Cluster) AsServiceAccount(ctx context.Context, serviceAccount string) (*rest.Config, error) {
	token, err := c.Token(ctx, serviceAccount)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token
	return config, nil
}
