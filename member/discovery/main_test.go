package discovery_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/member/discovery"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// apiServer is the config of the real API server for all tests that need one. It is nil if there is none.
var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, &envtest.Environment{}, &apiServer)) }

// world has the API server, a Kinds that uses it, and the calls of OnChange.
type world struct {
	*testing.T
	admin client.Client
	kinds *discovery.Kinds
	woken chan schema.GroupKind
	disco *lagging
}

// lagging is a transport that answers discovery with an old response while it has one. A real API server does the same
// for a moment after the deletion of a definition. status is the code of the old response; 0 means 200.
type lagging struct {
	next   http.RoundTripper
	old    atomic.Pointer[[]byte]
	status atomic.Int32
	last   atomic.Pointer[[]byte] // the last response
	asked  atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (l *lagging) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/apis/") || strings.Count(r.URL.Path, "/") != 3 {
		return l.next.RoundTrip(r)
	}
	l.asked.Add(1)
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if old := l.old.Load(); old != nil {
		_ = response.Body.Close()
		response.StatusCode, response.Body = cmp.Or(int(l.status.Load()), http.StatusOK), io.NopCloser(bytes.NewReader(*old))
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	l.last.Store(&body)
	return response, err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	apiserver.Needed(t)
	scheme := newScheme(t)
	admin, err := client.New(apiServer, client.Options{Scheme: scheme})
	must(t, err)
	w := &world{T: t, admin: admin}
	w.kinds, w.woken = w.as(apiServer)
	return w
}

// as returns a Kinds that uses these credentials, and its calls of OnChange.
func (w *world) as(config *rest.Config) (*discovery.Kinds, chan schema.GroupKind) {
	w.Helper()
	client, err := rest.HTTPClientFor(config)
	must(w.T, err)
	w.disco = &lagging{next: client.Transport}
	client.Transport = w.disco
	disco, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(config, client)
	must(w.T, err)
	definitions, err := dynamic.NewForConfig(discovery.MetadataOnly(config))
	must(w.T, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	w.Cleanup(cancel)
	woken := make(chan schema.GroupKind, 1000)
	return discovery.New(ctx, discovery.Options{
		Discovery: disco, HTTP: client, Definitions: definitions, OnChange: func(gk schema.GroupKind) { woken <- gk },
	}), woken
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for the condition, and fails the test if it does not become true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

type property = apiextensionsv1.JSONSchemaProps

func objectOf(properties map[string]property) property {
	return property{Type: "object", Properties: properties}
}

// definition returns a definition of a namespaced kind in a separate group, so that tests do not affect each other.
func definition(gvk schema.GroupVersionKind, spec property) *apiextensionsv1.CustomResourceDefinition {
	root := objectOf(map[string]property{"spec": spec})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: gvk.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// prometheusDefinition returns the definition of Prometheus that Prometheus Operator ships.
func prometheusDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	path := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "..", "share", "crds", "prometheus-operator", "monitoring.coreos.com_prometheuses.yaml")
	raw, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skip("the API server does not come from the lab, which ships the definition")
	}
	must(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	must(t, yaml.Unmarshal(raw, &crd))
	return &crd
}
