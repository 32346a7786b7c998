package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

func init() { ctrllog.SetLogger(logr.Discard()) }

// server is an API server with one ConfigMap. It serves ConfigMaps and, after serve, Pods.
type server struct {
	*httptest.Server
	uid string

	mu       sync.Mutex
	tokens   map[string]bool     // those that it takes; nil: any
	denied   map[string]bool     // resources that may not be listed
	hung     chan struct{}       // closed when lists are answered again; nil: they are answered
	pods     bool                // it serves Pods
	requests map[string]int      // by method and path
	made     func() string       // the token that it makes; nil: it refuses
	seen     map[string]struct{} // Authorization of requests
}

func newServer(t *testing.T, uid string) *server {
	t.Helper()
	f := &server{uid: uid, requests: map[string]int{}, denied: map[string]bool{}, seen: map[string]struct{}{}}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.EnableHTTP2 = true
	f.StartTLS()
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *server) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}))
}

// set changes the fake under its lock.
func (f *server) set(change func()) { f.mu.Lock(); defer f.mu.Unlock(); change() }

func (f *server) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[request]
}

func (f *server) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests[r.Method+" "+r.URL.Path]++
	f.seen[r.Header.Get("Authorization")] = struct{}{}
	taken, hung, pods, made := f.tokens == nil || f.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")], f.hung, f.pods, f.made
	denied, uid := f.denied[listed(r.URL.Path)], f.uid
	f.mu.Unlock()
	switch resource := listed(r.URL.Path); {
	case !taken:
		fail(w, http.StatusUnauthorized)
	case denied:
		fail(w, http.StatusForbidden)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		answer(w, map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kube-system", "uid": uid}})
	case r.URL.Path == "/api":
		answer(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case r.URL.Path == "/apis":
		answer(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
	case r.URL.Path == "/api/v1":
		kinds := []any{resourceOf("configmaps", "ConfigMap", true), resourceOf("namespaces", "Namespace", false)}
		if pods {
			kinds = append(kinds, resourceOf("pods", "Pod", true))
		}
		answer(w, map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": kinds})
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/token") && made != nil:
		answer(w, map[string]any{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{"token": made()}})
	case resource == "configmaps" || resource == "pods" && pods:
		f.list(w, r, resource, hung)
	default:
		fail(w, http.StatusNotFound)
	}
}

// list answers a list or a watch, when the server does not hang.
func (f *server) list(w http.ResponseWriter, r *http.Request, resource string, hung chan struct{}) {
	if hung != nil {
		select {
		case <-hung:
		case <-r.Context().Done():
			return
		}
	}
	kind := map[string]string{"configmaps": "ConfigMap", "pods": "Pod"}[resource]
	one := map[string]any{"kind": kind, "apiVersion": "v1", "metadata": map[string]any{"namespace": "shop", "name": "one", "uid": "u", "resourceVersion": "5"}}
	query := r.URL.Query()
	if query.Get("watch") == "" {
		answer(w, map[string]any{"kind": kind + "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "7"}, "items": []any{one}})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if query.Get("sendInitialEvents") == "true" {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": one})
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
			"kind": kind, "apiVersion": "v1",
			"metadata": map[string]any{"resourceVersion": "7", "annotations": map[string]any{"k8s.io/initial-events-end": "true"}},
		}})
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func resourceOf(name, kind string, namespaced bool) map[string]any {
	return map[string]any{"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": []string{"get", "list", "watch"}}
}

func answer(w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(content)
}

func fail(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": strings.ReplaceAll(http.StatusText(code), " ", "")})
}

// engagement is a clusters' controller that remembers what it was given.
type engagement struct {
	mu      sync.Mutex
	engaged map[multicluster.ClusterName]cluster.Cluster
	refuses int // times that Engage fails
}

func (e *engagement) Engage(_ context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuses > 0 {
		e.refuses--
		return fmt.Errorf("a controller is not ready")
	}
	e.engaged[name] = cl
	return nil
}

// newProvider returns a provider without a hub.
func newProvider(t *testing.T) (*Provider, *engagement) {
	t.Helper()
	p, err := New(&rest.Config{Host: "https://hub.invalid"}, Options{Consumer: "isolate", Namespace: "isolate"})
	if err != nil {
		t.Fatal(err)
	}
	e := &engagement{engaged: map[multicluster.ClusterName]cluster.Cluster{}}
	p.aware = e
	t.Cleanup(p.endAll)
	return p, e
}

func (f *server) want(token string) want {
	return want{uid: "mcl", clusterID: f.uid, to: connection{server: f.URL, ca: f.ca(), token: token}}
}

// awaitReason waits until the state of cluster eu has a reason.
func (p *Provider) awaitReason(t *testing.T, reason string) State {
	t.Helper()
	var found State
	await(t, reason, func() bool {
		for _, s := range p.States() {
			if s.Cluster.String() == "eu" && s.Reason == reason {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline, ticker := time.After(30*time.Second), time.NewTicker(5*time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		case <-ticker.C:
		}
	}
}

// jwt returns a token that is valid for 30 days from a time.
func jwt(name string, from time.Time) string {
	payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"jti":%q}`, from.Unix(), from.Add(30*24*time.Hour).Unix(), name)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}
