package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAMemberThatCannotBeReadLosesNothing restarts the hub while a member has an empty discovery, refuses all requests,
// or sends no watch events. The hub must not conclude that the member has no copies: it keeps all copies, and delays a
// requested deletion.
func TestAMemberThatCannotBeReadLosesNothing(t *testing.T) {
	tests := map[string]struct {
		begin func(t *testing.T)
		shows func(ctx context.Context, ns string) error
	}{
		"its discovery is empty": {
			begin: emptyDiscovery,
			shows: func(ctx context.Context, ns string) error {
				return rowIs(ctx, widget(ns, "kept"), frankfurt, metav1.ConditionFalse, hubv1.ReasonKindNotServed)
			},
		},
		"it answers 503 to everything": {
			begin: func(t *testing.T) { breakMember(t, frankfurt, "status", "503") },
			shows: func(ctx context.Context, _ string) error {
				return memberCondition(ctx, frankfurt, hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonUnreachable)
			},
		},
		"its watches deliver nothing": {
			begin: func(t *testing.T) { breakMember(t, frankfurt, "hang-watch") },
			shows: func(ctx context.Context, _ string) error {
				return memberCondition(ctx, frankfurt, hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonWatchesStalled)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			ns := namespace(t)
			kept, deleted := widget(ns, "kept"), widget(ns, "deleted")
			placeWidgets(t, ns)
			must(t, suite.Hub.Create(ctx, kept))
			must(t, suite.Hub.Create(ctx, deleted))
			eventually(t, normal, func() error { return allApplied(ctx, ns, 2) })
			uids := memberUIDs(ctx, t, ns)

			must(t, suite.hub.Stop())
			tc.begin(t)
			must(t, suite.Hub.Patch(ctx, widget(ns, "kept"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
			must(t, suite.Hub.Delete(ctx, deleted.DeepCopy()))
			startHubWithout(t, frankfurt)
			for _, m := range []string{singapore, shanghai} {
				eventually(t, normal, func() error { return replicasOn(ctx, m, kept, 4) })
				eventually(t, normal, func() error { return goneFrom(ctx, m, deleted) })
			}
			eventually(t, normal, func() error { return tc.shows(ctx, ns) })
			b, err := bindingOf(ctx, deleted)
			must(t, err)
			if b.BindingSpec().Target(frankfurt) == nil {
				t.Error("the deletion on the member that cannot be read counts as done")
			}
			now := memberUIDs(ctx, t, ns)
			for _, name := range []string{frankfurt + "/kept", frankfurt + "/deleted"} {
				if now[name] != uids[name] {
					t.Errorf("%s was deleted", name)
				}
			}

			setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
			mendMember(t, frankfurt)
			eventually(t, 90*time.Second, func() error { return replicasOn(ctx, frankfurt, kept, 4) })
			eventually(t, 90*time.Second, func() error { return goneFrom(ctx, frankfurt, deleted) })
			eventually(t, normal, func() error { return noBinding(ctx, deleted) })
			if got := memberUIDs(ctx, t, ns)[frankfurt+"/kept"]; got != uids[frankfurt+"/kept"] {
				t.Error("the object on the member was deleted and made again")
			}
		})
	}
}

// startHubWithout starts the suite's hub and waits until all members except broken are ready.
func startHubWithout(t *testing.T, broken string) {
	t.Helper()
	h, err := suite.StartHub(t.Context(), "hub-a")
	if h != nil {
		suite.hub = h
	}
	must(t, err)
	for _, m := range members {
		if m != broken {
			eventually(t, normal, func() error { return memberReady(t.Context(), m) })
		}
	}
}

// emptyDiscovery puts a proxy in front of Frankfurt's API server until the test ends. The proxy answers discovery
// requests with empty lists, and forwards all other requests.
func emptyDiscovery(t *testing.T) {
	t.Helper()
	real, err := url.Parse(suite.Members[frankfurt].Server)
	must(t, err)
	ca, err := os.ReadFile(suite.Members[frankfurt].CAFile)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(real) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true},
		FlushInterval: -1,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := nothingServed(r.URL.Path); answer != nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	config, err := clientcmd.Load(goodKubeconfig(t, frankfurt, nil))
	must(t, err)
	config.Clusters[frankfurt].Server = server.URL
	config.Clusters[frankfurt].CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	raw, err := clientcmd.Write(*config)
	must(t, err)
	setSecret(t, frankfurt, raw)
	t.Cleanup(func() {
		setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
		server.CloseClientConnections()
		server.Close()
		must(t, poll(context.WithoutCancel(t.Context()), time.Minute, func() error { return memberReady(context.WithoutCancel(t.Context()), frankfurt) }))
	})
}

// nothingServed returns an empty discovery response if path is a discovery path. For all other paths it returns nil.
func nothingServed(path string) any {
	steps := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}
	case path == "/apis":
		return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	case steps[0] == "api" && len(steps) == 2, steps[0] == "apis" && len(steps) == 3:
		return metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: strings.Join(steps[1:], "/"), APIResources: []metav1.APIResource{},
		}
	}
	return nil
}
