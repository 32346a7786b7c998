package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// authority returns a certificate in PEM.
func authority(t *testing.T) []byte {
	t.Helper()
	pem, _, err := cert.GenerateSelfSignedCertKey("member.test", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pem
}

func TestOnlyServerAndCAAreTakenFromTheMemberKubeconfig(t *testing.T) {
	ca := authority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	inline := clientcmdapi.Cluster{Server: "https://member.test:6443/", CertificateAuthorityData: ca}
	tests := map[string]struct {
		change          func(*clientcmdapi.Cluster)
		context, server string
		want            address
		refused         string
	}{
		"an inline CA is taken": {want: address{server: "https://member.test:6443", ca: ca}},
		"a CA in a file is taken inline": {
			change: func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData, c.CertificateAuthority = nil, file },
			want:   address{server: "https://member.test:6443", ca: ca},
		},
		"the name in the certificate is taken along": {
			change: func(c *clientcmdapi.Cluster) { c.TLSServerName = "kubernetes" },
			want:   address{server: "https://member.test:6443", serverName: "kubernetes", ca: ca},
		},
		"another address for the hub takes its place": {server: "https://10.0.0.4:443/k8s", want: address{server: "https://10.0.0.4:443/k8s", ca: ca}},
		"another address makes up for a proxy": {
			change: func(c *clientcmdapi.Cluster) { c.ProxyURL = "http://proxy.test" }, server: "https://10.0.0.4",
			want: address{server: "https://10.0.0.4", ca: ca},
		},
		"a proxy is refused": {
			change: func(c *clientcmdapi.Cluster) { c.ProxyURL = "http://proxy.test" }, refused: "proxy-url is set",
		},
		"an unverified server is refused": {
			change: func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify = true }, refused: "insecure-skip-tls-verify is set",
		},
		"a missing CA is refused": {
			change: func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = nil }, refused: "certificate-authority-data is missing",
		},
		"a CA that is none is refused": {
			change: func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte("x") }, refused: "holds no PEM certificate",
		},
		"a CA file that is not there is refused": {
			change:  func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData, c.CertificateAuthority = nil, file+".gone" },
			refused: "its certificate-authority cannot be read",
		},
		"plain HTTP is refused":       {change: func(c *clientcmdapi.Cluster) { c.Server = "http://member.test" }, refused: "want a URL such as https://"},
		"a missing server is refused": {change: func(c *clientcmdapi.Cluster) { c.Server = "" }, refused: "want a URL such as https://"},
		"a password in the address is refused": {
			change: func(c *clientcmdapi.Cluster) { c.Server = "https://a:b@member.test" }, refused: "want a URL such as https://",
		},
		"a context that is not there is named": {context: "other", refused: `has no context "other": name one of its contexts with --member-context`},
	}
	t.Run("a kubeconfig without contexts is refused", func(t *testing.T) {
		if _, err := addressOf(clientcmdapi.Config{}, "", ""); err == nil || !strings.Contains(err.Error(), "current-context is not set") {
			t.Errorf("got %v", err)
		}
	})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := inline
			if tc.change != nil {
				tc.change(&cluster)
			}
			config := clientcmdapi.Config{
				Clusters: map[string]*clientcmdapi.Cluster{"prod": &cluster},
				Contexts: map[string]*clientcmdapi.Context{"admin": {Cluster: "prod", AuthInfo: "me"}},
				// The kubeconfig for the hub must not contain the login method of the admin.
				AuthInfos:      map[string]*clientcmdapi.AuthInfo{"me": {Exec: &clientcmdapi.ExecConfig{Command: "login"}}},
				CurrentContext: "admin",
			}
			got, err := addressOf(config, tc.context, tc.server)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("got %v, want an error that says %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(address{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHubGetsAddressAndTokenAndNothingElse(t *testing.T) {
	a := address{server: "https://member.test:6443", serverName: "kubernetes", ca: authority(t)}
	text, err := a.kubeconfig("cn-sha-1", "secret")
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	want := clientcmdapi.NewConfig()
	want.Clusters["cn-sha-1"] = &clientcmdapi.Cluster{Server: a.server, TLSServerName: a.serverName, CertificateAuthorityData: a.ca}
	want.AuthInfos["hanse"] = &clientcmdapi.AuthInfo{Token: "secret"}
	want.Contexts["cn-sha-1"] = &clientcmdapi.Context{Cluster: "cn-sha-1", AuthInfo: "hanse"}
	want.CurrentContext = "cn-sha-1"
	ignoreEmpty := cmp.FilterValues(func(a, b map[string]any) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
	if diff := cmp.Diff(want, got, ignoreEmpty, cmp.Transformer("content", func(c *clientcmdapi.Cluster) [3]string {
		return [3]string{c.Server, c.TLSServerName, string(c.CertificateAuthorityData)}
	}), cmp.Transformer("user", func(u *clientcmdapi.AuthInfo) string {
		return u.Token + u.ClientCertificate + u.TokenFile
	}), cmp.Transformer("context", func(c *clientcmdapi.Context) [2]string { return [2]string{c.Cluster, c.AuthInfo} }),
		cmp.FilterPath(func(p cmp.Path) bool {
			return p.Last().String() == ".Extensions" || p.Last().String() == ".Preferences"
		}, cmp.Ignore())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
