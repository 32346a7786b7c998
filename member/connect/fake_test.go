package connect

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hanse-dev/hanse/member"
)

// authority is a certificate authority that signs the certificates of a fake cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *authority) issue(t *testing.T, name string, until time.Time, ips ...net.IP) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, IPAddresses: ips,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &key.PublicKey, a.key)
	must(t, err)
	encoded, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// fakeCluster is an API server over TLS and HTTP/2 that serves one namespace, its version and its nodes.
type fakeCluster struct {
	url string
	ca  *authority

	mu      sync.Mutex
	id      string
	tokens  map[string]bool
	nodes   []corev1.Node
	respond http.HandlerFunc // if set, handles every request after authentication
	denied  int              // number of requests answered with 401

	stop context.CancelFunc
}

const fakeToken = "canary-token-7f3a"

var loopback = net.IPv4(127, 0, 0, 1)

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	ca := newAuthority(t, "fake-cluster-ca")
	certPEM, keyPEM := ca.issue(t, "kube-apiserver", time.Now().Add(time.Hour), loopback)
	return startFakeCluster(t, ca, certPEM, keyPEM, "127.0.0.1:0")
}

func startFakeCluster(t *testing.T, ca *authority, certPEM, keyPEM []byte, address string) *fakeCluster {
	t.Helper()
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	must(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	listener, err := net.Listen("tcp", address)
	must(t, err)
	f := &fakeCluster{ca: ca, id: "cluster-1", tokens: map[string]bool{fakeToken: true}}
	life, stop := context.WithCancel(context.Background()) //nolint:forbidigo // it ends with the server, in stop
	f.stop = stop
	server := &httptest.Server{
		Listener: listener, EnableHTTP2: true,
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients},
		Config: &http.Server{
			Handler:     f,
			ErrorLog:    log.New(io.Discard, "", 0),
			BaseContext: func(net.Listener) context.Context { return life },
		},
	}
	server.StartTLS()
	f.url = server.URL
	var once sync.Once
	f.stop = func() {
		once.Do(func() {
			stop()
			server.CloseClientConnections()
			server.Close()
		})
	}
	t.Cleanup(f.stop)
	return f
}

func (f *fakeCluster) set(change func(f *fakeCluster)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeCluster) setRespond(h http.HandlerFunc) { f.set(func(f *fakeCluster) { f.respond = h }) }

// ServeHTTP checks the credentials. After that, it calls respond, or answers like an API server if respond is nil.
func (f *fakeCluster) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	id, nodes, respond := f.id, f.nodes, f.respond
	token, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	known := f.tokens[token] || (token == "" && len(req.TLS.PeerCertificates) > 0)
	if !known {
		f.denied++
	}
	f.mu.Unlock()
	switch {
	case !known:
		sendStatus(w, http.StatusUnauthorized, "Unauthorized")
	case respond != nil:
		respond(w, req)
	default:
		serveCluster(w, req, id, nodes)
	}
}

func serveCluster(w http.ResponseWriter, req *http.Request, id string, nodes []corev1.Node) {
	namespace := fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, id)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case req.URL.Path == "/api/v1/namespaces" && req.URL.Query().Get("watch") == "true":
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", namespace)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	case req.URL.Path == "/api/v1/namespaces/kube-system":
		_, _ = io.WriteString(w, namespace)
	case req.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`)
	case req.URL.Path == "/api/v1/nodes":
		serveNodes(w, req, nodes)
	default:
		sendStatus(w, http.StatusNotFound, "the server could not find the requested resource")
	}
}

// serveNodes sends two nodes per page, whatever limit the client requests.
func serveNodes(w http.ResponseWriter, req *http.Request, nodes []corev1.Node) {
	start := 0
	_, _ = fmt.Sscanf(req.URL.Query().Get("continue"), "from-%d", &start)
	end := min(start+2, len(nodes))
	list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: nodes[start:end]}
	if end < len(nodes) {
		list.Continue = fmt.Sprintf("from-%d", end)
	}
	_ = json.NewEncoder(w).Encode(list)
}

func sendStatus(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: message, Code: int32(code),
	})
}

func refuseNodes(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/api/v1/nodes" {
		sendStatus(w, http.StatusForbidden, "nodes is forbidden")
		return
	}
	serveCluster(w, req, "cluster-1", nil)
}

func hang(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

// kubeconfig returns a kubeconfig for the cluster. It has the cluster's token, unless an edit changes it.
func (f *fakeCluster) kubeconfig(t *testing.T, edits ...func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	cluster := &clientcmdapi.Cluster{Server: f.url, CertificateAuthorityData: f.ca.pem}
	user := &clientcmdapi.AuthInfo{Token: fakeToken}
	for _, edit := range edits {
		edit(cluster, user)
	}
	return kubeconfigOf(t, cluster, user)
}

// by returns the route by a kubeconfig.
func by(kubeconfig []byte) member.Route { return member.Route{Kubeconfig: kubeconfig} }

func kubeconfigOf(t *testing.T, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["member"], config.AuthInfos["hanse"] = cluster, user
	config.Contexts["member"] = &clientcmdapi.Context{Cluster: "member", AuthInfo: "hanse"}
	config.CurrentContext = "member"
	data, err := clientcmd.Write(*config)
	must(t, err)
	return data
}

func withToken(token string) func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	return func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = token }
}

func withCertificate(certPEM, keyPEM []byte) func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	return func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		u.Token, u.ClientCertificateData, u.ClientKeyData = "", certPEM, keyPEM
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for the condition. condition returns what is still missing, or "" if it is met.
func eventually(t *testing.T, what string, condition func() string) {
	t.Helper()
	deadline := time.After(40 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := condition()
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %s", what, missing)
		case <-tick.C:
		}
	}
}
