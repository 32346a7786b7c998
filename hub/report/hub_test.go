package report

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/catalog"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub("testdata"), &hubConfig)) }

// slowClock runs ten times slower than real time, so that the leader's timeouts do not end early on a slow machine.
type slowClock struct{ begin time.Time }

// Now implements clock.PassiveClock.
func (c slowClock) Now() time.Time { return c.begin.Add(time.Since(c.begin) / 10) }

// Since implements clock.PassiveClock.
func (c slowClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// world is a hub with one object, its binding and fake members. Each test has its own namespace.
type world struct {
	t         *testing.T
	client    client.WithWatch // a client without a cache
	namespace string
	gvk       schema.GroupVersionKind
	spec      map[string]any // spec of new objects
	fleet     *fakeFleet
	decisions *fakeDecisions
	events    *fakeEvents
	holds     func(cluster string) bool // whether the cluster is in this replica's shard; nil: every cluster is
	follows   bool                      // whether another replica leads
	withdrawn func(hubv1.BindingObject) bool
	pacer     *pace.Pacer        // nil: the reporter makes one
	clock     clock.PassiveClock // nil: the real clock
	grace     time.Duration      // grace period after a link is lost
	tracer    *tracing.Tracer    // nil: none
	reporter  *Reporter          // the reporter; set by start
}

func newWorld(t *testing.T, kind string) *world {
	t.Helper()
	apiserver.Needed(t)
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, hubv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(hubConfig, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "report-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, client: c, namespace: ns.Name, gvk: schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: kind}, spec: map[string]any{"replicas": int64(1)},
		fleet: newFakeFleet(), decisions: &fakeDecisions{}, events: &fakeEvents{}, grace: 100 * time.Millisecond,
	}
}

// start runs a reporter until stop is called or the test ends.
func (w *world) start() (stop func()) {
	w.t.Helper()
	yes := true
	mgr, err := manager.New(hubConfig, manager.Options{
		Scheme: w.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := New(Options{
		Client: mgr.GetClient(), HubConfig: hubConfig,
		Sources: Sources{
			Definitions: catalog.New(w.client, w.client.RESTMapper()), Fleet: w.fleet, Links: w.fleet, Templates: liveTemplates{w}, Decisions: w.decisions,
		},
		Shard: Shard{Holds: w.holds}, Withdrawn: w.withdrawn, Events: w.events, Pacer: w.pacer, Clock: w.clock, Grace: w.grace, Tracer: w.tracer,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := r.SetupWithManager(mgr); err != nil {
		w.t.Fatal(err)
	}
	feed := changes.NewFeed()
	feed.Bindings.On(changes.All, r.BindingChanged)
	feed.Placements.On(changes.Spec, r.PlacementChanged)
	feed.Clusters.On(changes.Readiness|changes.Deleted, r.ClusterChanged)
	if err := feed.Watch(w.t.Context(), mgr.GetCache()); err != nil {
		w.t.Fatal(err)
	}
	if w.follows {
		r.elected = make(chan struct{})
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		w.t.Fatal("the cache did not sync")
	}
	<-mgr.Elected() // bindings reported before the election are not written again
	w.reporter = r
	stopped := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stopped)
	return stopped
}

// object creates the hub object and its binding on the API server.
func (w *world) object(name string, targets ...hubv1.BindingTarget) *unstructured.Unstructured {
	w.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": w.spec}}
	o.SetGroupVersionKind(w.gvk)
	o.SetNamespace(w.namespace)
	o.SetName(name)
	if err := w.client.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
	id := w.id(name)
	b := hubv1.NewBinding(id.BindingKey())
	spec := b.BindingSpec()
	spec.ObjectRef = hubv1.ObjectReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: name, UID: o.GetUID()}
	spec.Clusters = targets
	if err := w.client.Create(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) id(name string) hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: w.gvk.Group, Kind: w.gvk.Kind, Namespace: w.namespace, Name: name}
}

// applied simulates that a cluster applied the object at its current generation, and that the copy has the given health
// and status.
func (w *world) applied(o *unstructured.Unstructured, cluster string, health hubv1.Health, observed string) {
	w.t.Helper()
	key := w.id(o.GetName()).BindingKey()
	b := w.known(o.GetName(), 1)
	// A reconcile of the binding reads the observation and the outcome. show stores the observation first, because
	// Record stores the outcome and may already queue the binding.
	w.show(o, cluster, health, observed)
	w.reporter.Record(b, cluster, w.outcome(o))
	w.reporter.Wake(key, cluster)
}

// record simulates that dispatch tried to write the object web to a cluster, with the given outcome.
func (w *world) record(cluster string, o member.Outcome) {
	w.t.Helper()
	var b hubv1.ResourceBinding
	if err := w.client.Get(w.t.Context(), w.id("web").BindingKey(), &b); err != nil {
		w.t.Fatal(err)
	}
	w.reporter.Record(w.known("web", b.Generation), cluster, o)
}

// known waits until the reporter's cache has an object's binding with at least this generation of the binding, and
// returns the binding.
func (w *world) known(name string, generation int64) *hubv1.ResourceBinding {
	w.t.Helper()
	key := w.id(name).BindingKey()
	var b hubv1.ResourceBinding
	w.eventually("the binding to be known", func() (bool, string) {
		err := w.reporter.opts.Client.Get(w.t.Context(), key, &b)
		return err == nil && b.Generation >= generation, fmt.Sprint(key, " ", err)
	})
	return &b
}

func (w *world) outcome(o *unstructured.Unstructured) member.Outcome {
	return member.Outcome{
		Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied,
		CopyState: member.CopyState{UID: "member", ResourceVersion: "1", Hash: "hash", Digest: fmt.Sprint("digest-", o.GetGeneration())},
		HubState:  member.HubState{HubGeneration: o.GetGeneration(), HubContent: uint64(o.GetGeneration())},
	}
}

// observe simulates that a cluster's watch showed the copy, and wakes the object's binding.
func (w *world) observe(o *unstructured.Unstructured, cluster string, health hubv1.Health, observed string) {
	w.t.Helper()
	w.show(o, cluster, health, observed)
	w.reporter.Wake(w.id(o.GetName()).BindingKey(), cluster)
}

func (w *world) show(o *unstructured.Unstructured, cluster string, health hubv1.Health, observed string) {
	seen := member.Observation{
		GVK: w.gvk, Namespace: w.namespace, Name: o.GetName(),
		CopyState: member.CopyState{UID: "member", ResourceVersion: "1", Digest: fmt.Sprint("digest-", o.GetGeneration()), Hash: "hash"},
		Owner:     w.id(o.GetName()),
		OwnerUID:  o.GetUID(), Assessment: member.Assessment{Health: health}, ObservedGeneration: -1,
	}
	if observed != "" {
		seen.Observed = []byte(observed)
	}
	w.fleet.see(cluster, seen)
}

// until waits until the status of the binding of the object web fulfils a condition, and returns the binding.
func (w *world) until(what string, is func(*hubv1.BindingStatus) bool) *hubv1.ResourceBinding {
	w.t.Helper()
	var b hubv1.ResourceBinding
	w.eventually(what, func() (bool, string) {
		if err := w.client.Get(w.t.Context(), w.id("web").BindingKey(), &b); err != nil {
			return false, err.Error()
		}
		text, _ := json.MarshalIndent(b.Status, "", " ")
		return is(&b.Status), string(text)
	})
	return &b
}

// change edits the binding of the object web and returns it. It repeats the edit after a conflict, because replicas may
// write the binding at the same time.
func (w *world) change(edit func(*hubv1.ResourceBinding)) *hubv1.ResourceBinding {
	w.t.Helper()
	var b hubv1.ResourceBinding
	if err := w.client.Get(w.t.Context(), w.id("web").BindingKey(), &b); err != nil {
		w.t.Fatal(err)
	}
	before := b.DeepCopy()
	edit(&b)
	if err := w.client.Patch(w.t.Context(), &b, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
	return &b
}

func (w *world) eventually(what string, is func() (bool, string)) {
	w.t.Helper()
	deadline := time.NewTimer(30 * time.Second) // a long limit, which only a failing test reaches
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, last := is()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			w.t.Fatalf("waiting for %s; last seen: %s", what, last)
		}
	}
}

// status returns the status of the object web on the hub.
func (w *world) status() map[string]any {
	w.t.Helper()
	status, _ := w.read().Object["status"].(map[string]any)
	return status
}

// read returns the object web from the hub's API server.
func (w *world) read() *unstructured.Unstructured {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(w.gvk)
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "web"}, o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// writes counts from now on the watch events of the list's kind.
func (w *world) writes(list client.ObjectList) (count func() int) {
	w.t.Helper()
	events, err := w.client.Watch(w.t.Context(), list, client.InNamespace(w.namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(events.Stop)
	var mu sync.Mutex
	n := 0
	go func() {
		for e := range events.ResultChan() {
			if e.Type == watch.Modified {
				mu.Lock()
				n++
				mu.Unlock()
			}
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func (w *world) objects() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(w.gvk.GroupVersion().WithKind(w.gvk.Kind + "List"))
	return list
}

// quiet waits until, during 300 ms, no binding had an open window. A window collects the changes of one binding into
// one write.
func (w *world) quiet() {
	w.t.Helper()
	since := time.Now()
	w.eventually("nothing to be due", func() (bool, string) {
		w.reporter.mu.Lock()
		defer w.reporter.mu.Unlock()
		waiting := 0
		for _, e := range w.reporter.entries {
			// This loop ignores a window of the class Many that ends later than maxWindow. The class has the events that
			// concern many bindings.
			if e.window.open() && (e.window.class != pace.Many || time.Until(e.window.due) <= maxWindow) {
				waiting++
			}
		}
		if waiting > 0 {
			since = time.Now()
		}
		return time.Since(since) > 300*time.Millisecond, fmt.Sprint(waiting, " waiting")
	})
}

// liveTemplates reads hub objects from the server, so that they are never stale.
type liveTemplates struct{ w *world }

func (l liveTemplates) Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: id.Group, Version: "v1", Kind: id.Kind})
	err := l.w.client.Get(context.WithoutCancel(l.w.t.Context()), types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, o)
	return o, err == nil
}

// Content implements Templates.
func (l liveTemplates) Content(id hubv1.ObjectIdentity) uint64 {
	o, _ := l.Get(id)
	return uint64(o.GetGeneration())
}

// fakeFleet implements the members and their links. A cluster that it does not list is connected.
type fakeFleet struct {
	mu    sync.Mutex
	links map[string]member.LinkState
	ended map[string]bool // clusters whose link a user has ended
	hub   string          // name of the cluster that is the hub itself
	seen  map[string]map[types.NamespacedName]member.Observation
}

func newFakeFleet() *fakeFleet {
	return &fakeFleet{links: map[string]member.LinkState{}, ended: map[string]bool{}, seen: map[string]map[types.NamespacedName]member.Observation{}}
}

func (f *fakeFleet) see(cluster string, o member.Observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[cluster] == nil {
		f.seen[cluster] = map[types.NamespacedName]member.Observation{}
	}
	f.seen[cluster][types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
}

// lose removes the observation of an object from a cluster.
func (f *fakeFleet) lose(cluster string, object types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen[cluster], object)
}

func (f *fakeFleet) link(cluster string, s member.LinkState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links[cluster] = s
}

// unlink ends the link of a cluster, as a user does who deletes the MemberCluster.
func (f *fakeFleet) unlink(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.links, cluster)
	f.ended[cluster] = true
}

func (f *fakeFleet) Get(cluster string) (member.Cluster, error) {
	f.mu.Lock()
	ended := f.ended[cluster]
	f.mu.Unlock()
	if s, ok := f.State(cluster); ended || ok && s.Ready != metav1.ConditionTrue {
		return nil, fmt.Errorf("cluster %q: %w", cluster, member.ErrNotConnected)
	}
	return fakeCluster{fleet: f, name: cluster}, nil
}

func (f *fakeFleet) Ensure(string, member.Route, string) {}
func (f *fakeFleet) Remove(string)                       {}

func (f *fakeFleet) State(cluster string) (member.LinkState, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.links[cluster]
	return s, ok
}

// fakeCluster returns the observations of fakeFleet. It implements no writes.
type fakeCluster struct {
	member.Cluster
	fleet *fakeFleet
	name  string
}

func (c fakeCluster) Name() string { return c.name }
func (c fakeCluster) IsHub() bool  { return c.name == c.fleet.hub }

func (c fakeCluster) Observation(_ schema.GroupVersionKind, key types.NamespacedName) (o member.Observation, found, synced bool) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	o, found = c.fleet.seen[c.name][key]
	return o, found, true
}

func (fakeCluster) Unwatched(schema.GroupVersionKind) *member.WatchFailure { return nil }

// fakeDecisions returns the same decision for every binding. It returns none until scheduled is set.
type fakeDecisions struct {
	mu        sync.Mutex
	scheduled metav1.Condition
	meanwhile func() // called once, at the next request for a decision
}

func (f *fakeDecisions) Decision(types.NamespacedName) (metav1.Condition, *hubv1.DecisionStatus, []string, bool) {
	f.mu.Lock()
	meanwhile := f.meanwhile
	f.meanwhile = nil
	scheduled := f.scheduled
	f.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
	if scheduled.Reason == "" {
		return metav1.Condition{}, nil, nil, false
	}
	return scheduled, &hubv1.DecisionStatus{Rejected: []hubv1.RejectedClusters{{Reason: hubv1.ReasonNotSelected, Count: 9}}}, []string{"other"}, true
}

type fakeEvents struct {
	mu  sync.Mutex
	all []string
}

func (f *fakeEvents) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	ref := regarding.(*corev1.ObjectReference)
	e := eventsv1.Event{Type: kind, Reason: reason, Note: fmt.Sprintf(note, args...)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, ref.Name, e.Note))
}

func (f *fakeEvents) reported() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.all...)
}
