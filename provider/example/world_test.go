package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/provider"
)

const root = "../.."

func init() { ctrl.SetLogger(logr.Discard()) }

// server is a real API server, with a client of its administrator.
type server struct {
	client.Client
	config *rest.Config
	// address and ca are those at which the operator reaches the server.
	address string
	ca      []byte
}

// startServers starts API servers at the same time. The first one serves the kinds of the hub.
func startServers(t *testing.T, n int) []*server {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" || os.Getenv("HANSE_HELM") == "" {
		t.Skip("KUBEBUILDER_ASSETS or HANSE_HELM is not set: no API server or no helm to test with; `make test-envtest` sets both")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	servers, failures := make([]*server, n), make([]error, n)
	var starting sync.WaitGroup
	for i := range n {
		environment := &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute} // several start at once
		if i == 0 {
			environment.CRDDirectoryPaths = []string{filepath.Join(root, "charts/hanse-hub/files/crds")}
			environment.ErrorIfCRDPathMissing = true
		}
		t.Cleanup(func() { _ = environment.Stop() })
		starting.Go(func() {
			config, err := environment.Start()
			if err != nil {
				failures[i] = err
				return
			}
			config.QPS = -1
			admin, err := client.New(config, client.Options{Scheme: scheme})
			servers[i], failures[i] = &server{Client: admin, config: config, address: config.Host, ca: config.CAData}, err
		})
	}
	starting.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	return servers
}

// apply creates the objects of a file of manifests.
func (s *server) apply(t *testing.T, manifests []byte) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil && len(o.Object) == 0 {
			continue
		}
		if err == nil {
			err = s.Create(t.Context(), o)
		}
		if client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// installMember installs the chart hanse-member with the values of the example.
func (s *server) installMember(t *testing.T) {
	t.Helper()
	s.makeNamespace(t, hubv1.SystemNamespace, nil)
	helm := exec.CommandContext(t.Context(), os.Getenv("HANSE_HELM"), "template", "hanse", filepath.Join(root, "charts/hanse-member"),
		"--namespace", hubv1.SystemNamespace, "--values", filepath.Join(root, "docs/examples/controllers/member-values.yaml"))
	rendered, err := helm.Output()
	if err != nil {
		t.Fatalf("rendering the chart: %v", err)
	}
	s.apply(t, rendered)
}

func (s *server) makeNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	if client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

// token returns a token of a ServiceAccount. It ends when the Secret that it is bound to is deleted.
func (s *server) token(t *testing.T, namespace, account, bound string) string {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bound}}
	if err := s.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Secret", Name: bound, UID: secret.UID,
	}}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := s.SubResource("token").Create(t.Context(), of, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// join makes a MemberCluster as the hub and its administrator do, and the Secret of the consumer.
func (s *server) join(t *testing.T, hub *server, name string) {
	t.Helper()
	system := &corev1.Namespace{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hubv1.MemberClusterSpec{
		Connection: hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{
			KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name},
		}},
		AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
	}}
	if err := hub.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Status.ClusterID = string(system.UID)
	if err := hub.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	err := hub.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "isolate", Name: name}, Type: provider.SecretType,
		Data: map[string][]byte{
			provider.ServerKey: []byte(s.address), provider.CAKey: s.ca,
			provider.TokenKey: []byte(s.token(t, hubv1.SystemNamespace, provider.AccountOf("isolate"), name)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// hanging puts a proxy before the server. It passes on single objects and discovery, and no list or watch, until the
// returned function is called.
func (s *server) hanging(t *testing.T) (mend func()) {
	t.Helper()
	target, err := url.Parse(s.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.config.CAData)
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	mended := make(chan struct{})
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/namespaces") || strings.HasSuffix(r.URL.Path, "/networkpolicies") {
			select {
			case <-mended:
			case <-r.Context().Done():
				return
			}
		}
		pass.ServeHTTP(w, r)
	}))
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.CloseClientConnections)
	s.address = front.URL
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return sync.OnceFunc(func() { close(mended) })
}

// isolates makes a namespace with the label, and waits for its policy.
func (s *server) isolates(t *testing.T, namespace string) {
	t.Helper()
	s.makeNamespace(t, namespace, map[string]string{isolatedLabel: "true"})
	s.awaitPolicy(t, namespace)
}

func (s *server) awaitPolicy(t *testing.T, namespace string) {
	t.Helper()
	await(t, "the policy of namespace "+namespace, func() bool { return s.hasPolicy(t, namespace) })
}

func (s *server) hasPolicy(t *testing.T, namespace string) bool {
	t.Helper()
	err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: policyName}, denyIngress(namespace))
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline, ticker := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		case <-ticker.C:
		}
	}
}

// operatorConfig returns a config of the operator's ServiceAccount on the hub.
func (s *server) operatorConfig(t *testing.T) *rest.Config {
	t.Helper()
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = s.token(t, "isolate", "isolate", "operator")
	return config
}

// start runs the operator until the test ends.
func start(t *testing.T, hub *rest.Config) (*provider.Provider, context.CancelFunc) {
	t.Helper()
	fleet, manager, err := setUp(hub, "isolate", "isolate")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return fleet, stop
}
