package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// setNamespace is the namespace of the SetRollouts.
const setNamespace = "default"

// One API server and one scheduler serve all tests; each test has its own namespace and clusters.
var (
	hubConfig *rest.Config
	hubClient client.Client
	scheduler *Scheduler
	objects   = &hubObjects{cached: map[key]*unstructured.Unstructured{}, live: map[key]*unstructured.Unstructured{}, unlisted: sets.New[schema.GroupKind](), asked: map[key]int{}}
	observed  = &recorder{}
	stored    = &contents{}
	setLists  = &storedLists{lists: map[string]decide.SetList{}, parts: map[string][]byte{}}
	spans     = tracetest.NewInMemoryExporter()
	scenes    atomic.Int32
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
	hubConfig = cfg
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), hubv1.AddToScheme(s)); err != nil {
		return err
	}
	if hubClient, err = client.New(cfg, client.Options{Scheme: s}); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	scheduler = New(Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Templates: objects, Recorder: observed,
		Kinds: Kinds{HubRunsWorkloads: func() bool { return false }}, Failover: Failover{Grace: 100 * time.Millisecond, MaxAway: 90},
		Guard:    Guard{Window: 10 * time.Millisecond, Quiet: 200 * time.Millisecond},
		Rollouts: Rollouts{Revisions: stored, Sets: setLists, Namespace: setNamespace, Key: canonical.Key("key")},
		Tracer:   tracing.NewWith(spans, 1, tracing.Process{HubID: "hub"}),
	})
	if err := scheduler.SetupWithManager(mgr); err != nil {
		return err
	}
	feed := changes.NewFeed()
	feed.Bindings.On(changes.All, scheduler.BindingChanged)
	feed.Placements.On(changes.Added|changes.Deleted|changes.Spec|changes.Ending|changes.Verbs, scheduler.PlacementChanged)
	feed.SetRollouts.On(changes.Added|changes.Deleted|changes.Spec, scheduler.SetRolloutChanged)
	feed.Bundles.On(changes.Deleted|changes.Ending|changes.Verbs, scheduler.BundleChanged)
	feed.OverridePolicies.On(changes.Added|changes.Deleted|changes.Spec|changes.Ending, scheduler.OverridePolicyChanged)
	feed.Clusters.On(changes.All, scheduler.ClusterChanged)
	feed.Namespaces.On(changes.Added|changes.Deleted|changes.Labels, scheduler.NamespaceChanged)
	if err := feed.Watch(ctx, mgr.GetCache()); err != nil {
		return err
	}
	scheduler.CountWhen(feed.Bindings.Await)
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "running the manager:", err)
		}
	}()
	// The tests create objects only after the scheduler leads, because hubObjects sends no events about objects that exist
	// already.
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, q := scheduler.leading()
		return q != nil, nil
	})
}

// hubObjects replaces the watch of the hub's own objects: it has the cached objects and the objects of the API server.
type hubObjects struct {
	mu           sync.Mutex
	cached, live map[key]*unstructured.Unstructured
	undecided    sets.Set[key]
	unlisted     sets.Set[schema.GroupKind]
	asked        map[key]int // number of calls of Live, by object
	wanted       sets.Set[schema.GroupKind]
	recreated    bool // whether the kinds of undecided objects were created again
	onChange     func(key)
}

type notServedError struct{ error }

func (notServedError) Undecided() bool { return true }

func (h *hubObjects) Want(kinds sets.Set[schema.GroupKind]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = kinds
}

func (h *hubObjects) Retry(context.Context, sets.Set[string]) {}

func (h *hubObjects) Kinds(context.Context, string) ([]schema.GroupKind, error) { return nil, nil }

func (h *hubObjects) Get(id key) (*unstructured.Unstructured, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u, ok := h.cached[id]
	return u, ok
}

func (h *hubObjects) List(gk schema.GroupKind) []key {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []key
	for id := range h.cached {
		if id.GroupKind() == gk {
			ids = append(ids, id)
		}
	}
	return ids
}

func (h *hubObjects) State(gk schema.GroupKind) (informer.State, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// The first list is over, so every change has its own event.
	return informer.State{Synced: !h.unlisted.Has(gk), Delivered: true}, true
}

func (h *hubObjects) StateOf(id key) (informer.State, bool) { return h.State(id.GroupKind()) }

func (h *hubObjects) StoredState() informer.State {
	return informer.State{Synced: true, Delivered: true}
}

func (h *hubObjects) StoredKinds() sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	for _, id := range h.ListStored(func(hubv1.ObjectBundle) bool { return true }) {
		kinds.Insert(id.GroupKind())
	}
	return kinds
}

func (h *hubObjects) ListStored(which func(hubv1.ObjectBundle) bool) []key {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []key
	for id, o := range h.cached {
		if b := hubv1.BundleOf(o); b != nil && which(*b) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (h *hubObjects) StoredOf(of hubv1.BundleReference) []key {
	return h.ListStored(func(b hubv1.ObjectBundle) bool { return b.BundleReference == of })
}

func (h *hubObjects) OnChange(f func(key))           { h.onChange = f }
func (h *hubObjects) OnState(func(schema.GroupKind)) {}

func (h *hubObjects) Live(_ context.Context, id key, _ time.Time) (*unstructured.Unstructured, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[id]++
	if h.undecided.Has(id) {
		return nil, false, notServedError{errors.New("the kind is not served")}
	}
	u, ok := h.live[id]
	return u, !ok, nil
}

// KindStays says that the kind was created again if the object is undecided.
func (h *hubObjects) KindStays(_ context.Context, gk schema.GroupKind, _ time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.undecided {
		if id.GroupKind() == gk && h.recreated {
			return notServedError{errors.New("the kind was created again")}
		}
	}
	return nil
}

// change changes the cached and the live object, and calls the registered functions.
func (h *hubObjects) change(id key, f func()) {
	h.mu.Lock()
	f()
	h.mu.Unlock()
	h.onChange(id)
}

func (h *hubObjects) set(id key, u *unstructured.Unstructured) {
	h.change(id, func() { h.cached[id], h.live[id] = u, u })
}

func (h *hubObjects) remove(id key) {
	h.change(id, func() { delete(h.cached, id); delete(h.live, id) })
}

// recorder keeps the reasons of events by the name of their object.
type recorder struct {
	mu      sync.Mutex
	reasons map[string][]string
}

func (r *recorder) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reasons == nil {
		r.reasons = map[string][]string{}
	}
	var namespace string
	switch o := regarding.(type) {
	case metav1.Object:
		namespace = o.GetNamespace()
	case *corev1.ObjectReference: // the object is in a bundle
		namespace = o.Namespace
	}
	r.reasons[namespace] = append(r.reasons[namespace], reason)
}

func (r *recorder) of(namespace string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.reasons[namespace]...)
}

// scene is one object in a namespace of its own, and the clusters of one test, whose names begin with the namespace's.
type scene struct {
	t  *testing.T
	id key
}

func newScene(t *testing.T, name string, clusters ...string) *scene {
	t.Helper()
	apiserver.Needed(t)
	name = fmt.Sprintf("%s-%d", name, scenes.Add(1))
	s := &scene{t: t, id: key{Group: "example.com", Kind: "Widget", Namespace: name, Name: "web"}}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	for _, c := range clusters {
		s.join(c)
	}
	return s
}

func (s *scene) create(o client.Object) {
	s.t.Helper()
	if err := hubClient.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) cluster(name string) string { return s.id.Namespace + "-" + name }

// join creates a Ready cluster, and returns when every decision includes the cluster. Without this wait, clusters that
// join later could be selected first.
func (s *scene) join(name string) {
	s.t.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: s.cluster(name), Finalizers: []string{hubv1.WithdrawFinalizer}}}
	c.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{
		KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name, Key: "kubeconfig"},
	}}
	c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	s.create(c)
	c.Status.Conditions = []metav1.Condition{{
		Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: hubv1.ReasonConnected, LastTransitionTime: metav1.Now(),
	}}
	if err := hubClient.Status().Update(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the scheduler knows the cluster", func() error {
		var known hubv1.MemberCluster
		if err := scheduler.opts.Client.Get(s.t.Context(), client.ObjectKeyFromObject(c), &known); err != nil {
			return err
		}
		if known.IsAway() {
			return errors.New("it is not ready")
		}
		return nil
	})
}

// leave asks for the cluster's deletion, which its finalizer holds up.
func (s *scene) leave(name string) {
	s.t.Helper()
	if err := hubClient.Delete(s.t.Context(), &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: s.cluster(name)}}); err != nil {
		s.t.Fatal(err)
	}
}

// vanish removes the MemberCluster and its finalizer.
func (s *scene) vanish(name string) {
	s.t.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: s.cluster(name)}}
	if err := hubClient.Patch(s.t.Context(), c, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		s.t.Fatal(err)
	}
	s.leave(name)
}

// object creates the hub object with a new UID. An existing object is replaced.
func (s *scene) object() types.UID {
	u := template(uuid.NewUUID())
	u.SetNamespace(s.id.Namespace)
	u.SetCreationTimestamp(metav1.Now())
	objects.set(s.id, u)
	return u.GetUID()
}

func (s *scene) place(name string, clusters ...string) *hubv1.Placement {
	s.t.Helper()
	for i, c := range clusters {
		clusters[i] = s.cluster(c)
	}
	p := policy(name, named(clusters...))
	p.ObjectMeta = metav1.ObjectMeta{Namespace: s.id.Namespace, Name: name}
	return p
}

func (s *scene) edit(p *hubv1.Placement, change func()) {
	s.t.Helper()
	change()
	if err := hubClient.Update(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) only(clusters ...string) hubv1.ClusterSelection {
	for i, c := range clusters {
		clusters[i] = s.cluster(c)
	}
	return hubv1.ClusterSelection{Names: clusters}
}

func (s *scene) binding() *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{}
	if err := hubClient.Get(s.t.Context(), s.id.BindingKey(), b); err != nil {
		return nil
	}
	return b
}

// entries formats the items of the binding's spec.clusters: "eu" for an item that is not Absent, and "-eu NotSelected
// Delete" for an Absent one with its reason and removal policy.
func (s *scene) entries() []string {
	b := s.binding()
	if b == nil {
		return []string{"no binding"}
	}
	out := []string{}
	for _, e := range b.Spec.Clusters {
		name := e.Name[len(s.id.Namespace)+1:]
		if e.Absent != nil {
			name = fmt.Sprintf("-%s %s %s", name, e.Absent.Reason, e.Absent.Policy)
		}
		out = append(out, name)
	}
	return out
}

func (s *scene) becomes(want ...string) {
	s.t.Helper()
	var got []string
	s.eventually(fmt.Sprintf("the binding reads %q", want), func() error {
		if got = s.entries(); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("it reads %q", got)
		}
		return nil
	})
}

func (s *scene) decides(reason string) {
	s.t.Helper()
	s.eventually("the decision is "+reason, func() error {
		if c, _, _, _ := scheduler.Decision(s.id.BindingKey()); c.Reason != reason {
			return fmt.Errorf("it is %s: %s", c.Reason, c.Message)
		}
		return nil
	})
}

func (s *scene) eventually(what string, try func() error) {
	s.t.Helper()
	s.within(time.Minute, what, try)
}

func (s *scene) within(patience time.Duration, what string, try func() error) {
	s.t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(s.t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	}); err != nil {
		s.t.Fatalf("waiting until %s: %v", what, last)
	}
}

// withdraws acts as the members: it confirms the withdrawals of the Absent items in the binding's spec.clusters. It
// confirms them for these clusters, or for all clusters if none is given.
func (s *scene) withdraws(clusters ...string) {
	s.t.Helper()
	s.eventually("the rows are written", func() error {
		b := s.binding()
		if b == nil {
			return errors.New("no binding")
		}
		b.Status.ObservedGeneration = b.Generation
		b.Status.Clusters = nil
		for _, e := range b.Spec.Clusters {
			row := hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}
			if e.State == hubv1.TargetAbsent && (len(clusters) == 0 || slices.Contains(clusters, e.Name[len(s.id.Namespace)+1:])) {
				row = hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonWithdrawn}
			}
			b.Status.Clusters = append(b.Status.Clusters, row)
		}
		return hubClient.Status().Update(s.t.Context(), b)
	})
}

// The deletion of a namespace deletes the binding, too. If the definition of the kind is deleted before the last member
// has answered, the decided withdrawals continue.
func TestADecidedWithdrawalOutlivesTheDefinitionOfItsKind(t *testing.T) {
	apiserver.Needed(t)
	s := newScene(t, "undefined", "eu")
	objects.mu.Lock()
	objects.unlisted.Insert(stagedKind) // an unlisted kind, so that the scheduler of other tests leaves the binding alone
	objects.mu.Unlock()
	s.id.Kind = stagedKind.Kind
	own := &hubObjects{
		cached: map[key]*unstructured.Unstructured{}, live: map[key]*unstructured.Unstructured{}, asked: map[key]int{}, onChange: func(key) {},
		undecided: sets.New(s.id), unlisted: sets.New[schema.GroupKind](),
	}
	b := hubv1.NewBinding(s.id.BindingKey()).(*hubv1.ResourceBinding)
	b.Finalizers = []string{hubv1.WithdrawFinalizer}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: stagedKind.Group + "/v1", Kind: stagedKind.Kind, Name: s.id.Name, UID: "a"}
	b.Spec.Clusters = []hubv1.BindingTarget{{Name: s.cluster("eu"), State: hubv1.TargetAbsent, Absent: &hubv1.Absence{
		Reason: hubv1.ReasonObjectDeleted, UID: "a", Policy: hubv1.RemovalDelete,
	}}}
	s.create(b)
	if err := hubClient.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	scheduler := New(Options{Client: hubClient, APIReader: hubClient, Templates: own, Recorder: &recorder{}, Kinds: Kinds{HubRunsWorkloads: func() bool { return false }}})
	decide := func() {
		t.Helper()
		if _, err := scheduler.Reconcile(t.Context(), s.id); err != nil {
			t.Fatal(err)
		}
	}
	decide()
	if got := fmt.Sprint(s.entries()); got != "[-eu ObjectDeleted Delete]" {
		t.Fatalf("before the member has answered, the binding reads %s", got)
	}
	s.withdraws()
	decide()
	decide()
	s.becomes("no binding")
}
