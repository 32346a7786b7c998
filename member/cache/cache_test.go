package cache_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/cache"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/test/apiserver"
)

const (
	hubUID   = types.UID("hub-1")
	ownerUID = types.UID("template-1")
)

var (
	apiServer *rest.Config
	counter   atomic.Int32

	widget    = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Widget"}
	widgets   = widget.GroupVersion().WithResource("widgets")
	bindingA  = types.NamespacedName{Namespace: "shop", Name: "a"}
	bindingB  = types.NamespacedName{Namespace: "shop", Name: "b"}
	webWidget = types.NamespacedName{Name: "web"}
)

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, environment(), &apiServer)) }

func environment() *envtest.Environment {
	open := true
	return &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.shop.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "shop.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open},
				},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}}}
}

// reported has the arguments of one call of the handler.
type reported struct {
	name          string
	content, gone bool
}

// world has a namespace on the member, an observer, and the calls of the observer's handler.
type world struct {
	*testing.T
	objects  dynamic.ResourceInterface
	observer *cache.Observer
	ns       string

	settings atomic.Pointer[health.Settings] // the settings of every object
	lists    atomic.Int32                    // number of requests for the first page of a list

	mu     sync.Mutex
	events []reported
	states int
}

func newWorld(t *testing.T, edits ...func(*cache.Options)) *world {
	t.Helper()
	apiserver.Needed(t)
	w := &world{T: t, ns: fmt.Sprintf("t-%d", counter.Add(1))}
	counted := rest.CopyConfig(apiServer)
	counted.Wrap(w.countLists)
	client := dynamic.NewForConfigOrDie(counted)
	w.objects = client.Resource(widgets).Namespace(w.ns)
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": w.ns}}}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := client.Resource(namespaces).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	options := cache.Options{
		Cluster: "m1", Client: client, HubUID: hubUID,
		Resolve:     func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return widgets, nil },
		Conventions: func(schema.GroupVersionKind) health.Conventions { return health.Conventions{HasStatus: true} },
		Handler: func(cluster string, o member.Observation, content, gone bool) {
			if cluster != "m1" {
				t.Errorf("told of cluster %q", cluster)
			}
			if o.Namespace != w.ns { // an object of another test
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, reported{o.Name, content, gone})
		},
		Settings: func(hubv1.ObjectIdentity) *health.Settings { return w.settings.Load() },
		OnState: func(string, schema.GroupVersionKind, informer.State) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.states++
		},
	}
	for _, edit := range edits {
		edit(&options)
	}
	w.observer = cache.New(ctx, options)
	return w
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (w *world) countLists(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		query := req.URL.Query()
		if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/widgets") && query.Get("watch") == "" && query.Get("continue") == "" {
			w.lists.Add(1)
		}
		return next.RoundTrip(req)
	})
}

// apply writes a copy to the member in the same way as the hub.
func (w *world) apply(name string, size int) *unstructured.Unstructured {
	w.Helper()
	id := hubv1.ObjectIdentity{Group: widget.Group, Kind: widget.Kind, Namespace: w.ns, Name: name}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(size)}}}
	u.SetGroupVersionKind(widget)
	u.SetName(name)
	u.SetNamespace(w.ns)
	u.SetLabels(map[string]string{hubv1.HubLabel: string(hubUID)})
	u.SetAnnotations(map[string]string{hubv1.OwnerAnnotation: id.Owner(ownerUID), hubv1.DigestAnnotation: "d1"})
	out, err := w.objects.Apply(w.Context(), name, u, metav1.ApplyOptions{FieldManager: hubv1.FieldManager})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func (w *world) patch(patch string, subresource ...string) {
	w.Helper()
	options := metav1.PatchOptions{FieldManager: "kubectl-edit"}
	if _, err := w.objects.Patch(w.Context(), "web", types.MergePatchType, []byte(patch), options, subresource...); err != nil {
		w.Fatal(err)
	}
}

// next waits for the next call of the handler and returns it.
func (w *world) next() reported {
	w.Helper()
	var out reported
	w.until("an event", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.events) == 0 {
			return false
		}
		out, w.events = w.events[0], w.events[1:]
		return true
	})
	return out
}

func (w *world) expect(want reported) {
	w.Helper()
	if got := w.next(); got != want {
		w.Errorf("told %+v, want %+v", got, want)
	}
}

func (w *world) until(what string, condition func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		w.Fatalf("waiting for %s: %v", what, err)
	}
}

func (w *world) synced() bool {
	_, _, synced := w.observer.Observation(widget, webWidget)
	return synced
}

func (w *world) key() types.NamespacedName { return types.NamespacedName{Namespace: w.ns, Name: "web"} }

func TestAnAwaitedWriteIsObservedWithItsEvent(t *testing.T) {
	w := newWorld(t)
	w.observer.Observe(widget, w.key())
	w.until("the first list", w.synced)
	written := w.apply("web", 1)
	w.observer.Await(widget, written)
	w.expect(reported{name: "web", content: true})
	first, _, _ := w.observer.Observation(widget, w.key())
	if first.ResourceVersion != written.GetResourceVersion() || first.UID != written.GetUID() || first.Digest != "d1" {
		t.Errorf("observed %+v, want what was written: %v", first, written)
	}
	w.patch(`{"spec":{"size":3}}`)
	w.expect(reported{name: "web", content: true})
	if o, _, _ := w.observer.Observation(widget, w.key()); o.Hash == first.Hash {
		t.Errorf("a later event left the observation at %+v", o)
	}
}

func TestObservationsFollowTheObject(t *testing.T) {
	w := newWorld(t)
	first := w.apply("web", 3)
	if _, found, synced := w.observer.Observation(widget, w.key()); found || synced {
		t.Error("a kind that nobody asked for is synced")
	}
	w.observer.Observe(widget, bindingA)
	w.expect(reported{"web", true, false})
	w.until("the state", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.states > 0 })
	o, found, synced := w.observer.Observation(widget, w.key())
	want := member.Observation{
		GVK: widget, Namespace: w.ns, Name: "web",
		CopyState:  member.CopyState{UID: first.GetUID(), ResourceVersion: first.GetResourceVersion(), Generation: 1, Digest: "d1", Hash: o.Hash},
		Owner:      hubv1.ObjectIdentity{Group: widget.Group, Kind: widget.Kind, Namespace: w.ns, Name: "web"},
		OwnerUID:   ownerUID,
		Assessment: member.Assessment{Health: hubv1.HealthProgressing, HealthReason: "StatusMissing", HealthMessage: o.HealthMessage}, ObservedGeneration: -1,
	}
	if diff := cmp.Diff(want, o); diff != "" || !found || !synced || o.Hash == "" {
		t.Errorf("found %v, synced %v, %s", found, synced, diff)
	}

	w.patch(`{"status":{"replicas":3,"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","reason":"Up"}]}}`, "status")
	w.expect(reported{"web", false, false})
	o, _, _ = w.observer.Observation(widget, w.key())
	if o.Health != hubv1.HealthHealthy || o.ObservedGeneration != 1 || len(o.Observed) == 0 || o.Hash != want.Hash {
		t.Errorf("%+v %s", o, o.Observed)
	}

	w.patch(`{"spec":{"note":"theirs"}}`) // the hub does not own the field, but the generation changes
	w.expect(reported{"web", false, false})
	w.patch(`{"metadata":{"labels":{"theirs":"x"}}}`) // observations do not contain this label
	w.patch(`{"spec":{"size":9}}`)                    // changes a field that the hub applied
	w.expect(reported{"web", true, false})
	w.patch(`{"metadata":{"annotations":{"hanse.dev/pause":"2999-01-01T00:00:00Z"}}}`)
	w.expect(reported{"web", true, false})
	if o, _, _ = w.observer.Observation(widget, w.key()); o.Paused.Year() != 2999 {
		t.Errorf("paused until %s", o.Paused)
	}
	w.apply("other", 1)
	w.expect(reported{"other", true, false})

	if err := w.objects.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.expect(reported{"web", true, true})
	if _, found, synced = w.observer.Observation(widget, w.key()); found || !synced {
		t.Errorf("found %v, synced %v", found, synced)
	}
}

func TestAnObjectThatLosesTheLabelIsGone(t *testing.T) {
	w := newWorld(t)
	w.apply("web", 3)
	w.observer.Observe(widget, bindingA)
	w.expect(reported{"web", true, false})
	w.patch(`{"metadata":{"labels":{"hanse.dev/hub":"hub-2"}}}`)
	w.expect(reported{"web", true, true})
}

func TestAKindIsWatchedForAsLongAsSomebodyHoldsIt(t *testing.T) {
	w := newWorld(t)
	w.observer.SetLinger(50 * time.Millisecond)
	w.observer.Observe(widget, bindingA)
	w.observer.Observe(widget, bindingA)
	w.observer.Observe(widget, bindingB)
	w.until("the first list", w.synced)
	w.observer.Forget(widget, bindingA)
	w.apply("web", 3)
	w.expect(reported{"web", true, false})

	w.observer.Forget(widget, bindingB)
	w.observer.Forget(widget, bindingB)
	if !w.synced() {
		t.Error("the kind does not linger")
	}
	w.until("the end", func() bool { return !w.synced() })
	if _, ok := w.observer.State(widget); ok {
		t.Error("the kind is still watched")
	}
	w.observer.Observe(widget, bindingA)
	w.until("another start", w.synced)
}

func TestAHolderThatComesBackKeepsTheWatch(t *testing.T) {
	w := newWorld(t)
	w.observer.SetLinger(time.Hour)
	w.observer.Observe(widget, bindingA)
	w.until("the first list", w.synced)
	before, _ := w.observer.State(widget)
	w.observer.Forget(widget, bindingA)
	w.observer.Observe(widget, bindingB)
	if after, ok := w.observer.State(widget); !ok || after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func judgedBy(t *testing.T, expression string) *health.Settings {
	t.Helper()
	e, err := health.Compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	return &health.Settings{Expression: e}
}

func TestChangedSettingsNeedNoWriteOnTheMember(t *testing.T) {
	w := newWorld(t)
	w.observer.SetGather(time.Millisecond)
	w.apply("web", 3)
	w.settings.Store(judgedBy(t, "object.spec.size > 2"))
	w.observer.Observe(widget, w.key())
	w.expect(reported{name: "web", content: true})
	judged := func(want hubv1.Health) {
		t.Helper()
		if o, _, _ := w.observer.Observation(widget, w.key()); o.Health != want {
			t.Errorf("health is %s, want %s", o.Health, want)
		}
	}
	judged(hubv1.HealthHealthy)
	id := hubv1.ObjectIdentity{Group: widget.Group, Kind: widget.Kind, Namespace: w.ns, Name: "web"}

	w.settings.Store(judgedBy(t, "object.spec.size > 5 ? 'Healthy' : 'Progressing'"))
	w.observer.Reread(id)
	w.expect(reported{name: "web"})
	judged(hubv1.HealthProgressing)

	w.settings.Store(judgedBy(t, "object.spec.none"))
	w.observer.Reread(id)
	w.expect(reported{name: "web"})
	if o, _, _ := w.observer.Observation(widget, w.key()); o.Health != hubv1.HealthUnknown || o.HealthReason != health.ReasonExpressionFailed {
		t.Errorf("health is %s, %s", o.Health, o.HealthReason)
	}

	w.settings.Store(nil)
	w.observer.Reread(id)
	w.expect(reported{name: "web"})
	if o, _, _ := w.observer.Observation(widget, w.key()); o.HealthReason != health.ReasonStatusMissing {
		t.Errorf("health is %s, %s: want what the conventions say", o.Health, o.HealthReason)
	}
}

func TestFewObjectsAreAskedForOneByOneAfterAChangeOfSettings(t *testing.T) {
	w := newWorld(t)
	w.observer.SetGather(time.Millisecond)
	w.apply("web", 3)
	w.settings.Store(judgedBy(t, "object.spec.size > 2"))
	w.observer.Observe(widget, w.key())
	w.until("the first health", func() bool { return w.health("web") == hubv1.HealthHealthy })
	for range 5 {
		w.rejudge("object.spec.size > 5", "web")
		w.until("the second health", func() bool { return w.health("web") == hubv1.HealthDegraded })
		w.rejudge("object.spec.size > 2", "web")
		w.until("the third health", func() bool { return w.health("web") == hubv1.HealthHealthy })
	}
	if n := w.lists.Load(); n != 1 {
		t.Errorf("the kind was listed %d times", n)
	}
}

func TestAKindIsListedOnceAMinuteForChangedSettings(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, func(o *cache.Options) { o.Clock = now })
	small := newWorld(t) // the objects of another tenant
	small.observer = w.observer
	small.apply("web", 3)
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("web-%d", i))
		w.apply(many[i], 3)
	}
	last := many[len(many)-1]
	w.settings.Store(judgedBy(t, "object.spec.size > 2"))
	w.observer.Observe(widget, w.key())
	w.until("the first health", func() bool {
		return w.health(last) == hubv1.HealthHealthy && small.health("web") == hubv1.HealthHealthy
	})

	w.rejudge("object.spec.size > 5", many...)
	w.until("the list that comes at once", func() bool {
		now.Step(100 * time.Millisecond)
		return w.lists.Load() == 2 && w.health(last) == hubv1.HealthDegraded
	})
	listed := now.Now()
	for _, expression := range []string{"object.spec.size > 2", "object.spec.size > 6", "object.spec.size > 1"} {
		w.rejudge(expression, many...)
		small.reread("web")
		want := hubv1.HealthHealthy
		if expression == "object.spec.size > 6" {
			want = hubv1.HealthDegraded
		}
		w.until("the health of the other tenant's object", func() bool {
			now.Step(100 * time.Millisecond)
			return small.health("web") == want
		})
	}
	if since := now.Since(listed); since > 50*time.Second {
		t.Fatalf("the test took %s", since)
	}
	if n := w.lists.Load(); n != 2 || w.health(last) != hubv1.HealthDegraded {
		t.Errorf("the kind was listed %d times, and the health is %s", n, w.health(last))
	}
	now.SetTime(listed.Add(58 * time.Second))
	if n := w.lists.Load(); n != 2 {
		t.Errorf("the kind was listed %d times within a minute", n)
	}
	w.until("the next list", func() bool {
		now.Step(100 * time.Millisecond)
		return w.lists.Load() == 3 && w.health(last) == hubv1.HealthHealthy
	})
	if now.Since(listed) < 59*time.Second {
		t.Errorf("the next list came after %s", now.Since(listed))
	}
}

// health returns the last observed health of an object.
func (w *world) health(name string) hubv1.Health {
	o, _, _ := w.observer.Observation(widget, types.NamespacedName{Namespace: w.ns, Name: name})
	return o.Health
}

// rejudge changes the settings and makes the observer read the given objects again.
func (w *world) rejudge(expression string, names ...string) {
	w.Helper()
	w.settings.Store(judgedBy(w.T, expression))
	w.reread(names...)
}

// reread makes the observer read the given objects again, as after a change of their settings.
func (w *world) reread(names ...string) {
	for _, name := range names {
		w.observer.Reread(hubv1.ObjectIdentity{Group: widget.Group, Kind: widget.Kind, Namespace: w.ns, Name: name})
	}
}

func TestSettingsThatChangeWhileAnObjectIsReadAreFollowed(t *testing.T) {
	w := newWorld(t)
	w.observer.SetGather(time.Millisecond)
	w.observer.Observe(widget, w.key())
	w.until("the first list", w.synced)
	written := w.apply("web", 3)
	w.observer.Await(widget, written) // read with the current settings, before its watch event
	w.settings.Store(judgedBy(t, "object.spec.size > 2"))
	w.observer.Reread(hubv1.ObjectIdentity{Group: widget.Group, Kind: widget.Kind, Namespace: w.ns, Name: "web"})
	w.until("the health", func() bool {
		o, _, _ := w.observer.Observation(widget, w.key())
		return o.Health == hubv1.HealthHealthy
	})
}
