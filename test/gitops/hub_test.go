package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// world is a hub process in the test, with one member. The hub and the member serve the kind Widget.
type world struct {
	hub, member client.Client
	kubeconfig  string // path of the hub's kubeconfig
}

// startWorld starts a hub and its member, and waits until the member is ready.
func startWorld(t *testing.T) *world {
	t.Helper()
	onHub, onMember := apiserver.Hub(), &envtest.Environment{}
	w := &world{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	w.hub, w.member = serve(t, onHub), serve(t, onMember)
	must(t, os.WriteFile(w.kubeconfig, onHub.KubeConfig, 0o600))
	w.serveWidgets(t)
	must(t, w.hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}}))
	must(t, w.hub.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "eu"}, Data: map[string][]byte{"kubeconfig": onMember.KubeConfig},
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- hub.Run(ctx, onHub.Config, hub.Options{Namespace: hubv1.SystemNamespace, Manager: hub.ManagerOptions{HealthAddress: "0", MetricsAddress: "0"}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running the hub: %v", err)
		}
	})
	w.join(t)
	return w
}

// serve starts an API server and returns its administrator's client.
func serve(t *testing.T, server *envtest.Environment) client.Client {
	t.Helper()
	config, err := server.Start()
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	config.QPS = -1
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

func (w *world) serveWidgets(t *testing.T) {
	t.Helper()
	definition, err := os.ReadFile(filepath.Join(apiserver.Root(), "test", "e2e", "testdata", "widget-crd.yaml"))
	must(t, err)
	for _, c := range []client.Client{w.hub, w.member} {
		crd, widgets := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		must(t, yaml.Unmarshal(definition, &crd.Object))
		must(t, c.Create(t.Context(), crd))
		widgets.SetAPIVersion("test.hanse.dev/v1")
		widgets.SetKind("WidgetList")
		eventually(t, func() error { return c.List(t.Context(), widgets) })
	}
}

func (w *world) join(t *testing.T) {
	t.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	c.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "eu"}}}
	must(t, w.hub.Create(t.Context(), c))
	eventually(t, func() error {
		if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, hubv1.ConditionReady) {
			return fmt.Errorf("the member is not ready: %+v", c.Status.Conditions)
		}
		return nil
	})
}

// eventually waits up to a minute until check returns nil.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
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
