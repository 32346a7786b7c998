package membership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/test/apiserver"
)

const (
	hubID = "the-hub-itself"
	grace = 2 * time.Second
)

// All tests use the same API server and the same reconciler. Each test has its own clusters.
var (
	hub        client.Client
	reconciler *Reconciler
	recorder   = &fakeRecorder{}
	links      = &fakeLinks{wants: map[string]want{}, states: map[string]member.LinkState{}}
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(ctrl.SetupSignalHandler())
	server := apiserver.Hub()
	ended := make(chan struct{})
	if err := serve(ctx, server, ended); err != nil {
		fmt.Fprintln(os.Stderr, "starting the hub of the test:", err)
		cancel()
		return 1
	}
	defer func() {
		cancel()
		<-ended
		_ = server.Stop()
	}()
	return m.Run()
}

func serve(ctx context.Context, server *envtest.Environment, ended chan struct{}) error {
	cfg, err := server.Start()
	if err != nil {
		return err
	}
	cfg.QPS = -1
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), hubv1.AddToScheme(s)); err != nil {
		return err
	}
	if hub, err = client.New(cfg, client.Options{Scheme: s}); err != nil {
		return err
	}
	if err := hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}}); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	reconciler = New(mgr.GetClient(), mgr.GetAPIReader(), clusters.New(mgr.GetClient()), links, hubID, grace)
	links.onChange = reconciler.Wake
	reconciler.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	reconciler.KeepTokens(func(cluster string) (Tokens, error) { return issuer(cluster), nil }, recorder)
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "running the manager:", err)
		}
	}()
	return nil
}

// fakeRecorder keeps the events about each cluster.
type fakeRecorder struct {
	mu       sync.Mutex
	reported map[string][]string
}

func (r *fakeRecorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported == nil {
		r.reported = map[string][]string{}
	}
	name := regarding.(*hubv1.MemberCluster).Name
	r.reported[name] = append(r.reported[name], fmt.Sprintf("%s %s %s", kind, reason, fmt.Sprintf(note, args...)))
}

func (r *fakeRecorder) of(cluster string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reported[cluster])
}

// reported waits until the last event about the cluster begins with the text.
func (s scene) reported(text string) {
	s.Helper()
	s.eventually("event "+text, func() string {
		got := recorder.of(s.name)
		if len(got) > 0 && strings.HasPrefix(got[len(got)-1], text) {
			return ""
		}
		return fmt.Sprintf("there are %q", got)
	})
}

// want has the arguments of the last Ensure call for a cluster. Ensure requests the link.
type want struct{ kubeconfig, expectedID string }

// fakeLinks replaces the connections to clusters. A test sets their states.
type fakeLinks struct {
	onChange func(string)

	mu     sync.Mutex
	wants  map[string]want
	states map[string]member.LinkState
}

func (l *fakeLinks) Ensure(cluster string, route member.Route, expectedID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wants[cluster] = want{string(route.Kubeconfig), expectedID}
}

// Holds returns true, because the hub of these tests has one replica.
func (l *fakeLinks) Holds(string) bool { return true }

func (l *fakeLinks) Remove(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wants, cluster)
}

// State returns the state that the test has set for the cluster's kubeconfig.
func (l *fakeLinks) State(cluster string) (member.LinkState, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, ok := l.wants[cluster]
	if !ok {
		return member.LinkState{}, false
	}
	s, ok := l.states[w.kubeconfig]
	// The kubeconfig has credentials for which the test has set no state.
	if inUse := credentialOf([]byte(w.kubeconfig)); !ok && inUse.ID != "" {
		return using(cluster, inUse), true
	}
	if !ok {
		s = connecting
	}
	return s, true
}

func (l *fakeLinks) wanted(cluster string) (want, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, ok := l.wants[cluster]
	return w, ok
}

// become sets the state of the connections to all clusters with this kubeconfig.
func (l *fakeLinks) become(kubeconfig string, s member.LinkState) {
	l.mu.Lock()
	l.states[kubeconfig] = s
	var changed []string
	for cluster, w := range l.wants {
		if w.kubeconfig == kubeconfig {
			changed = append(changed, cluster)
		}
	}
	l.mu.Unlock()
	for _, cluster := range changed {
		l.onChange(cluster)
	}
}

var connecting = member.LinkState{
	Ready: metav1.ConditionUnknown, Reason: hubv1.ReasonConnecting, Message: "under way",
	Credentials: metav1.ConditionUnknown, CredentialsReason: hubv1.ReasonConnecting, CredentialsMessage: "under way",
}

func connected(id string) member.LinkState {
	return member.LinkState{
		Ready: metav1.ConditionTrue, Reason: hubv1.ReasonConnected, Message: "watches deliver",
		Credentials: metav1.ConditionTrue, CredentialsReason: hubv1.ReasonCredentialsTaken, CredentialsMessage: "taken",
		LastObserved: time.Now(),
		Facts: member.Facts{
			ClusterID: id, Kubernetes: "v1.36.3", Region: "eu", Zones: []string{"eu-a", "eu-b"},
			Nodes: hubv1.NodeSummary{Total: 3, Ready: 3}, Capacity: cpus("12"), Allocatable: cpus("9"),
		},
	}
}

func away(s member.LinkState) member.LinkState {
	s.Ready, s.Reason, s.Message = metav1.ConditionFalse, hubv1.ReasonUnreachable, "it refuses connections"
	return s
}

// scene is one cluster with its own Secret. The content of its kubeconfig is the scene's name.
type scene struct {
	*testing.T
	name string
}

func newScene(t *testing.T, name string) scene {
	t.Helper()
	apiserver.Needed(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_ = hub.Delete(ctx, c)
		_ = hub.Patch(ctx, c, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	return scene{t, name}
}

func (s scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s scene) key() client.ObjectKey { return client.ObjectKey{Name: s.name} }

func (s scene) join(edits ...func(*hubv1.MemberCluster)) {
	s.Helper()
	c := &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: hubv1.MemberClusterSpec{
			Connection: hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{
				KubeconfigSecretRef: hubv1.SecretKeyRef{Name: s.name},
			}},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
		},
	}
	for _, edit := range edits {
		edit(c)
	}
	s.must(hub.Create(s.Context(), c))
}

func (s scene) secret(kubeconfig string) {
	s.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: s.name},
		Data:       map[string][]byte{"kubeconfig": []byte(kubeconfig)},
	}
	err := hub.Create(s.Context(), secret)
	if err != nil {
		err = hub.Update(s.Context(), secret)
	}
	s.must(err)
}

// ready joins a cluster with this clusterID, and waits until the condition Ready is True.
func (s scene) ready(id string, edits ...func(*hubv1.MemberCluster)) {
	s.Helper()
	links.become(s.name, connected(id))
	s.secret(s.name)
	s.join(edits...)
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "watches deliver")
}

func (s scene) get() *hubv1.MemberCluster {
	s.Helper()
	c := &hubv1.MemberCluster{}
	s.must(hub.Get(s.Context(), s.key(), c))
	return c
}

func (s scene) is(conditionType string, status metav1.ConditionStatus, reason, words string) {
	s.Helper()
	s.eventually(fmt.Sprintf("%s %s %s with %q", conditionType, status, reason, words), func() string {
		c := meta.FindStatusCondition(s.get().Status.Conditions, conditionType)
		if c == nil {
			return "there is none"
		}
		if c.Status == status && c.Reason == reason && strings.Contains(c.Message, words) {
			return ""
		}
		return fmt.Sprintf("it is %s %s: %s", c.Status, c.Reason, c.Message)
	})
}

// linked waits until the last request to connect to the cluster has these arguments. If w is nil, it waits until the
// connection has been removed.
func (s scene) linked(w *want) {
	s.Helper()
	s.eventually(fmt.Sprintf("link %+v", w), func() string {
		got, ok := links.wanted(s.name)
		if ok == (w != nil) && (w == nil || got == *w) {
			return ""
		}
		return fmt.Sprintf("there is one: %t %+v", ok, got)
	})
}

// unchanged calls act, waits until the cluster has been reconciled, and fails the test if its MemberCluster has
// changed.
func (s scene) unchanged(what string, act func()) {
	s.Helper()
	before := s.get().ResourceVersion
	act()
	// settle waits until another cluster has been reconciled after this one. The controller has only one worker, so that
	// this cluster has been reconciled, too.
	s.settle()
	if after := s.get(); after.ResourceVersion != before {
		s.Errorf("%s was written: %+v", what, after.Status)
	}
}

// settle waits until the reconciler has processed everything in its queue. It adds other MemberClusters as markers, and
// waits until the only worker has processed them.
func (s scene) settle() {
	s.Helper()
	for i := range 3 {
		marker := scene{s.T, fmt.Sprintf("%s-marker-%d", s.name, i)}
		marker.join()
		marker.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing, marker.name)
		marker.must(hub.Delete(marker.Context(), marker.get()))
		marker.gone()
	}
}

func (s scene) gone() {
	s.Helper()
	s.eventually("end of the MemberCluster", func() string {
		err := hub.Get(s.Context(), s.key(), &hubv1.MemberCluster{})
		if client.IgnoreNotFound(err) == nil && err != nil {
			return ""
		}
		return fmt.Sprintf("it is there: %v", err)
	})
}

func (s scene) eventually(what string, missing func() string) {
	s.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		m := missing()
		if m == "" {
			return
		}
		select {
		case <-deadline:
			s.Fatalf("%s: want %s: %s", s.name, what, m)
		case <-tick.C:
		}
	}
}
