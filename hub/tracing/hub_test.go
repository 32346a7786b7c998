package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/collector"
)

const (
	usersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	usersSpan  = "00f067aa0ba902b7"
)

// TestAHubTracesChangesAndSurvivesItsEndpoint runs a hub and a member. The OTLP endpoint first accepts requests without
// an answer, then works, then hangs again while the hub ends.
func TestAHubTracesChangesAndSurvivesItsEndpoint(t *testing.T) {
	apiserver.Needed(t)
	ctrl.SetLogger(logr.Discard())
	otlp := collector.Start(t)
	endpoint, hangs := hanging(t, otlp.URL)
	hangs.Store(true)
	config, member := serve(t, apiserver.Hub()), serve(t, &envtest.Environment{})
	onHub, onMember := clientOf(t, config), clientOf(t, member)
	prepare(t, onHub, member)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- hub.Run(ctx, config, hub.Options{
			Namespace: hubv1.SystemNamespace, Manager: hub.ManagerOptions{HealthAddress: "0", MetricsAddress: "0"}, Tracing: tracing.Options{Endpoint: endpoint, Sampling: 1},
		})
	}()
	running := true
	stop := func() {
		if running {
			running = false
			cancel()
			must(t, <-ended)
		}
	}
	defer stop()

	// The hub handles objects while the endpoint hangs.
	const objects = 100
	for i := range objects {
		must(t, onHub.Create(ctx, object(fmt.Sprint("cm-", i), "")))
	}
	eventually(t, func() error {
		var all corev1.ConfigMapList
		if err := onMember.List(ctx, &all, client.InNamespace("shop"), client.HasLabels{hubv1.HubLabel}); err != nil || len(all.Items) < objects {
			return fmt.Errorf("the member has %d of %d: %w", len(all.Items), objects, err)
		}
		return nil
	})

	// Once the endpoint works, spans arrive. The traced object is of a kind without a generation, and its trace begins
	// with the user's span.
	hangs.Store(false)
	traced := object("traced", "00-"+usersTrace+"-"+usersSpan+"-01")
	must(t, onHub.Create(ctx, traced))
	spansAre(t, otlp, usersTrace, map[string]string{
		"change": usersSpan, "decide": "change", "dispatch": "change", "render": "dispatch", "write": "dispatch", "report": "change",
	})
	for _, once := range []string{tracing.SpanChange, tracing.SpanDecide, tracing.SpanDispatch} {
		if n := named(otlp.Spans(usersTrace), once); n != 1 {
			t.Errorf("%d spans %s of one change: %v", n, once, otlp.Spans(usersTrace))
		}
	}
	uid := traced.UID
	must(t, onHub.Delete(ctx, traced))
	self := otlp.Spans(usersTrace)[0].Attributes["k8s.cluster.uid"].(string)
	deletion := tracing.TraceOf(self, uid)
	spansAre(t, otlp, deletion, map[string]string{"change": "", "decide": "change", "dispatch": "change", "write": "dispatch"})
	for _, s := range otlp.Spans("") {
		if text := fmt.Sprint(s); strings.Contains(text, "hunter2") {
			t.Errorf("a span has data of the object: %s", text)
		}
	}

	// The endpoint hangs while the hub still has spans to send.
	hangs.Store(true)
	must(t, onHub.Create(ctx, object("last", "")))
	eventually(t, func() error {
		return onMember.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "last"}, &corev1.ConfigMap{})
	})
	began := time.Now()
	stop()
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("the hub took %s to end", took)
	}
}

// hanging returns a proxy of the endpoint. While the flag is true, the proxy does not answer.
func hanging(t *testing.T, to string) (endpoint string, hangs *atomic.Bool) {
	t.Helper()
	target, err := url.Parse(to)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	hangs, end := &atomic.Bool{}, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			<-end
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	return server.URL, hangs
}

// prepare creates the member, and a placement of all ConfigMaps in a namespace.
func prepare(t *testing.T, onHub client.Client, member *rest.Config) {
	t.Helper()
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: member.Host, CertificateAuthorityData: member.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: member.CertData, ClientKeyData: member.KeyData}},
	})
	must(t, err)
	cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	cluster.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	cluster.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "eu"}}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "eu"}, Data: map[string][]byte{"kubeconfig": kubeconfig}},
		cluster,
		&hubv1.Placement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"},
			Spec: hubv1.PlacementSpec{
				ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}},
				Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
			},
		},
	} {
		must(t, onHub.Create(t.Context(), o))
	}
}

// object returns a hub object. If parent is not empty, the object has the traceparent annotation.
func object(name, parent string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"password": "hunter2"}}
	if parent != "" {
		cm.Annotations = map[string]string{hubv1.TraceParentAnnotation: parent}
	}
	return cm
}

// spansAre waits until a trace has spans with these parents. want maps the name of a span to the name or ID of its
// parent.
func spansAre(t *testing.T, otlp *collector.Collector, trace string, want map[string]string) {
	t.Helper()
	eventually(t, func() error {
		names, got := map[string]string{}, map[string]string{}
		for _, s := range otlp.Spans(trace) {
			names[s.ID] = s.Name
		}
		for _, s := range otlp.Spans(trace) {
			got[s.Name] = s.Parent
			if parent := names[s.Parent]; parent != "" {
				got[s.Name] = parent
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("spans and their parents are %v, want %v", got, want)
		}
		return nil
	})
}

// named returns the number of spans with the name.
func named(spans []collector.Span, name string) (n int) {
	for _, s := range spans {
		if s.Name == name {
			n++
		}
	}
	return n
}

func serve(t *testing.T, server *envtest.Environment) *rest.Config {
	t.Helper()
	config, err := server.Start()
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	config.QPS = -1
	return config
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
