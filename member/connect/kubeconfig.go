package connect

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// fault is the reason why the hub does not use a kubeconfig. It never contains a token or a key, and quotes no part of
// a file that cannot be parsed.
type fault struct{ reason, message string }

func refused(format string, args ...any) *fault {
	return &fault{reason: hubv1.ReasonKubeconfigRefused, message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *fault {
	return &fault{reason: hubv1.ReasonKubeconfigInvalid, message: fmt.Sprintf(format, args...)}
}

// parseKubeconfig returns the connection that the current context of a kubeconfig describes. It ignores other contexts.
// The administrator of the member writes the file, so the hub does not trust it. The file must not cause the hub to run
// a program, read another file, impersonate another identity or trust an unknown server.
func parseKubeconfig(data []byte) (member.Connection, *fault) {
	config, err := clientcmd.Load(data)
	if err != nil { // the error text may quote the file
		return member.Connection{}, invalid("the content is not a kubeconfig: put the YAML of one with apiVersion v1 and kind Config into the Secret")
	}
	if config.CurrentContext == "" {
		return member.Connection{}, invalid("the kubeconfig has no current-context: set it to the context of the member")
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return member.Connection{}, invalid("the kubeconfig has no context %.64q, which current-context names", config.CurrentContext)
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil {
		return member.Connection{}, invalid("the kubeconfig has no cluster %.64q, which its current context names", current.Cluster)
	}
	if user == nil {
		return member.Connection{}, invalid("the kubeconfig has no user %.64q, which its current context names", current.AuthInfo)
	}
	for _, rule := range []func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) *fault{
		refuseForeignCode, refuseFiles, refuseDetours, refuseOtherIdentities, checkServer, checkCA, checkCredentials,
	} {
		if r := rule(cluster, user); r != nil {
			return member.Connection{}, r
		}
	}
	return member.Connection{
		Server:     strings.TrimRight(cluster.Server, "/"),
		ServerName: cluster.TLSServerName,
		CA:         string(cluster.CertificateAuthorityData),
		Credentials: member.Credentials{
			Token: user.Token, Certificate: string(user.ClientCertificateData), Key: string(user.ClientKeyData),
		},
	}, nil
}

func refuseForeignCode(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *fault {
	const instead = "would run a program inside the hub: put a token or a client certificate into the kubeconfig instead"
	switch {
	case user.Exec != nil:
		return refused("the user sets exec, which %s", instead)
	case user.AuthProvider != nil:
		return refused("the user sets auth-provider, which %s", instead)
	}
	return nil
}

func refuseFiles(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *fault {
	for _, field := range []struct{ name, value, instead string }{
		{"certificate-authority", cluster.CertificateAuthority, "certificate-authority-data"},
		{"client-certificate", user.ClientCertificate, "client-certificate-data"},
		{"client-key", user.ClientKey, "client-key-data"},
		{"tokenFile", user.TokenFile, "token"},
	} {
		if field.value != "" {
			return refused("the kubeconfig sets %s, a file that the hub does not read: put its content into %s (kubectl config view --raw --flatten does)", field.name, field.instead)
		}
	}
	return nil
}

func refuseDetours(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) *fault {
	switch {
	case cluster.InsecureSkipTLSVerify:
		return refused("the cluster sets insecure-skip-tls-verify: remove this field and put the cluster's CA into certificate-authority-data")
	case cluster.ProxyURL != "":
		return refused("the cluster sets proxy-url, which sends the hub's requests elsewhere: remove it and make the server reachable from the hub")
	}
	return nil
}

func refuseOtherIdentities(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *fault {
	switch {
	case user.Impersonate != "", user.ImpersonateUID != "", len(user.ImpersonateGroups) > 0, len(user.ImpersonateUserExtra) > 0:
		return refused("the user sets as, as-uid, as-groups or as-user-extra: remove these fields and give the hub credentials of its own")
	case user.Username != "", user.Password != "":
		return refused("the user sets username or password: put a token or a client certificate into the kubeconfig instead")
	}
	return nil
}

func checkServer(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) *fault {
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil || server.Host == "" || server.Hostname() == "":
		return invalid("the cluster's server is not a URL: write it like https://203.0.113.7:6443")
	case server.Scheme != "https":
		return refused("the cluster's server does not start with https://: credentials are only sent over TLS")
	case server.User != nil:
		return refused("the cluster's server holds a user name or password: put a token or a client certificate into the kubeconfig instead")
	case server.RawQuery != "" || server.Fragment != "":
		return invalid("the cluster's server has a query or fragment: write it like https://203.0.113.7:6443")
	}
	return nil
}

func checkCA(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) *fault {
	switch {
	case len(cluster.CertificateAuthorityData) == 0:
		return refused("the cluster has no certificate-authority-data: put the CA of its API server there; the hub does not trust the CAs of its own machine")
	case !x509.NewCertPool().AppendCertsFromPEM(cluster.CertificateAuthorityData):
		return invalid("the cluster's certificate-authority-data holds no PEM certificate: put the CA of its API server there")
	}
	return nil
}

func checkCredentials(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *fault {
	hasCert, hasKey := len(user.ClientCertificateData) > 0, len(user.ClientKeyData) > 0
	switch {
	case hasCert != hasKey:
		return invalid("the user has only one of client-certificate-data and client-key-data: set both")
	case !hasCert && user.Token == "":
		return invalid("the user has neither a token nor a client certificate: put one of them into the kubeconfig")
	case strings.ContainsFunc(user.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return invalid("the user's token holds a space, a line break or another character that no token has")
	}
	if hasCert {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return invalid("the user's client-certificate-data and client-key-data are not a PEM certificate and its key")
		}
	}
	return nil
}
