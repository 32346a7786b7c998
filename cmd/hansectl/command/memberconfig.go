package command

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// address is the address at which the hub reaches a member. It is the only part of the admin's kubeconfig that hansectl
// gives to the hub.
type address struct {
	server     string
	serverName string // name in the server's certificate, if it differs from the host of server
	ca         []byte // PEM
}

var errRefused = errors.New("cannot be used for the hub")

// addressOf reads the address of a member from the kubeconfig of its admin. The credentials in this kubeconfig stay on
// this machine, so the admin's way to log in does not matter. If server is not empty, it replaces the address of the
// kubeconfig.
func addressOf(config clientcmdapi.Config, context, server string) (address, error) {
	if context == "" {
		context = config.CurrentContext
	}
	current := config.Contexts[context]
	if context == "" {
		return address{}, fmt.Errorf("the member kubeconfig %w: current-context is not set: pass --member-context", errRefused)
	}
	if current == nil {
		return address{}, fmt.Errorf("the member kubeconfig has no context %q: name one of its contexts with --member-context", context)
	}
	cluster := config.Clusters[current.Cluster]
	if cluster == nil {
		return address{}, fmt.Errorf("the member kubeconfig has no cluster %q, which its context %q names", current.Cluster, context)
	}
	refuse := func(format string, args ...any) (address, error) {
		return address{}, fmt.Errorf("cluster %q of the member kubeconfig %w: %s", current.Cluster, errRefused, fmt.Sprintf(format, args...))
	}
	if cluster.InsecureSkipTLSVerify {
		return refuse("insecure-skip-tls-verify is set, but the hub verifies every server: remove this field, and set certificate-authority-data")
	}
	if cluster.ProxyURL != "" && server == "" {
		return refuse("proxy-url is set, but the hub uses no proxy: pass --member-server with the address at which the hub reaches the cluster")
	}
	ca, err := authorityOf(cluster)
	if err != nil {
		return refuse("%v", err)
	}
	a := address{server: strings.TrimRight(cluster.Server, "/"), serverName: cluster.TLSServerName, ca: ca}
	if server != "" {
		a.server = strings.TrimRight(server, "/")
	}
	if u, err := url.Parse(a.server); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return refuse("server %q: want a URL such as https://203.0.113.7:6443: correct the kubeconfig, or pass --member-server", a.server)
	}
	return a, nil
}

func authorityOf(cluster *clientcmdapi.Cluster) ([]byte, error) {
	ca := cluster.CertificateAuthorityData
	if len(ca) == 0 && cluster.CertificateAuthority != "" {
		var err error
		if ca, err = os.ReadFile(cluster.CertificateAuthority); err != nil {
			return nil, fmt.Errorf("its certificate-authority cannot be read: %w", err)
		}
	}
	switch {
	case len(ca) == 0:
		return nil, errors.New("certificate-authority-data is missing, and the hub trusts no system CAs: put the CA of the API server into this field")
	case !x509.NewCertPool().AppendCertsFromPEM(ca):
		return nil, errors.New("its certificate authority holds no PEM certificate")
	}
	return ca, nil
}

// kubeconfig returns a kubeconfig for the hub. It has only the address of the member and the token.
func (a address) kubeconfig(name, token string) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: a.server, TLSServerName: a.serverName, CertificateAuthorityData: a.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{accountName: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: accountName}},
		CurrentContext: name,
	})
}
