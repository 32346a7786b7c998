package connect

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestParseKubeconfig(t *testing.T) {
	ca := newAuthority(t, "ca")
	certPEM, keyPEM := ca.issue(t, "hub", time.Now().Add(time.Hour))
	_, otherKey := ca.issue(t, "other", time.Now().Add(time.Hour))
	edited := func(edit func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo)) []byte {
		c := &clientcmdapi.Cluster{Server: "https://203.0.113.7:6443", CertificateAuthorityData: ca.pem}
		u := &clientcmdapi.AuthInfo{Token: fakeToken}
		edit(c, u)
		return kubeconfigOf(t, c, u)
	}
	tests := map[string]struct {
		kubeconfig []byte
		reason     string
		words      string // words that the message must contain
	}{
		"something that is not YAML":        {[]byte("{not: [yaml " + fakeToken), hubv1.ReasonKubeconfigInvalid, "not a kubeconfig"},
		"text":                              {[]byte("hello " + fakeToken), hubv1.ReasonKubeconfigInvalid, "not a kubeconfig"},
		"nothing":                           {nil, hubv1.ReasonKubeconfigInvalid, "current-context"},
		"another kind of object":            {[]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"), hubv1.ReasonKubeconfigInvalid, "kubeconfig"},
		"no current context":                {[]byte("apiVersion: v1\nkind: Config\n"), hubv1.ReasonKubeconfigInvalid, "current-context"},
		"a current context that is missing": {[]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\n"), hubv1.ReasonKubeconfigInvalid, `context "x"`},
		"a context without its cluster": {
			[]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"), hubv1.ReasonKubeconfigInvalid, `cluster "c"`,
		},
		"a context without its user": {
			[]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: https://x}}]\n"),
			hubv1.ReasonKubeconfigInvalid, `user "u"`,
		},
		"exec": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "/bin/sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
		}), hubv1.ReasonKubeconfigRefused, "exec"},
		"auth-provider": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "gcp"}
		}), hubv1.ReasonKubeconfigRefused, "auth-provider"},
		"a token file": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = "/etc/passwd" }), hubv1.ReasonKubeconfigRefused, "tokenFile"},
		"a certificate file": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/tls.crt" }),
			hubv1.ReasonKubeconfigRefused, "client-certificate"},
		"a key file": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientKey = "/tls.key" }), hubv1.ReasonKubeconfigRefused, "client-key"},
		"a CA file": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthority = "/ca.crt" }),
			hubv1.ReasonKubeconfigRefused, "certificate-authority"},
		"no verification": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil
		}), hubv1.ReasonKubeconfigRefused, "insecure-skip-tls-verify"},
		"a proxy": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = "http://proxy:3128" }),
			hubv1.ReasonKubeconfigRefused, "proxy-url"},
		"impersonation of a user": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Impersonate = "admin" }), hubv1.ReasonKubeconfigRefused, "as"},
		"impersonation of a group": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Impersonate, u.ImpersonateGroups = "a", []string{"system:masters"}
		}), hubv1.ReasonKubeconfigRefused, "as-groups"},
		"impersonation of a UID": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ImpersonateUID = "1" }), hubv1.ReasonKubeconfigRefused, "as-uid"},
		"a password": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Username, u.Password = "admin", fakeToken }),
			hubv1.ReasonKubeconfigRefused, "password"},
		"plain HTTP": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "http://169.254.169.254" }), hubv1.ReasonKubeconfigRefused, "https://"},
		"a server that is no URL": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "203.0.113.7:6443" }),
			hubv1.ReasonKubeconfigInvalid, "server"},
		"a password in the server": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://u:" + fakeToken + "@x" }),
			hubv1.ReasonKubeconfigRefused, "server"},
		"a server with a query": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://x?a=b" }), hubv1.ReasonKubeconfigInvalid, "query"},
		"no CA": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthorityData = nil }),
			hubv1.ReasonKubeconfigRefused, "certificate-authority-data"},
		"a CA that is none": {edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthorityData = []byte("x") }),
			hubv1.ReasonKubeconfigInvalid, "certificate-authority-data"},
		"no credentials":       {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "" }), hubv1.ReasonKubeconfigInvalid, "token"},
		"a token with a break": {edited(withToken(fakeToken + "\n")), hubv1.ReasonKubeconfigInvalid, "token"},
		"half a key pair": {edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificateData = certPEM }),
			hubv1.ReasonKubeconfigInvalid, "client-key-data"},
		"another certificate's key":           {edited(withCertificate(certPEM, otherKey)), hubv1.ReasonKubeconfigInvalid, "its key"},
		"a token":                             {kubeconfig: edited(func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {})},
		"a client certificate":                {kubeconfig: edited(withCertificate(certPEM, keyPEM))},
		"a name for the server's certificate": {kubeconfig: edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.TLSServerName = "api.internal" })},
		"a server below a path": {kubeconfig: edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = "https://rancher.example.com/k8s/clusters/c-1/"
		})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, r := parseKubeconfig(tc.kubeconfig)
			if r == nil {
				r = &fault{}
			}
			if r.reason != tc.reason || !strings.Contains(r.message, tc.words) {
				t.Errorf("got %s: %s; want %s with %q", r.reason, r.message, tc.reason, tc.words)
			}
			if strings.Contains(r.message, fakeToken) {
				t.Errorf("the message holds a secret: %s", r.message)
			}
		})
	}
}

func TestParseKubeconfigKeepsWhatALinkNeeds(t *testing.T) {
	ca := newAuthority(t, "ca")
	got, r := parseKubeconfig(kubeconfigOf(t,
		&clientcmdapi.Cluster{Server: "https://x:6443/", TLSServerName: "api", CertificateAuthorityData: ca.pem},
		&clientcmdapi.AuthInfo{Token: "t"}))
	if r != nil {
		t.Fatal(r.message)
	}
	want := member.Connection{
		Server: "https://x:6443", ServerName: "api", CA: string(ca.pem), Credentials: member.Credentials{Token: "t"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: https://x}}]\nusers: [{name: u, user: {token: t}}]\n"))
	f.Add([]byte("{not: [yaml"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, r := parseKubeconfig(data)
		switch {
		case r != nil && got != (member.Connection{}):
			t.Errorf("refused and still usable: %+v", r)
		case r != nil && (r.reason == "" || r.message == ""):
			t.Error("refused without a word")
		case r == nil && (!strings.HasPrefix(got.Server, "https://") || got.CA == "" || (got.Credentials.Token == "" && got.Credentials.Certificate == "")):
			t.Errorf("accepted without server, CA or credentials")
		}
	})
}
