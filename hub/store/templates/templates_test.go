package templates

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var hub *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, &envtest.Environment{}, &hub)) }

func newClient(t *testing.T) client.Client {
	t.Helper()
	apiserver.Needed(t)
	s := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(hub, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// define creates a CRD of the kind Widget in the given group.
func define(t *testing.T, c client.Client, group string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	schemaOf := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: new(true),
	}}
	status := &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget", Singular: "widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: schemaOf, Subresources: status},
				{Name: "v1beta1", Served: true, Schema: schemaOf, Subresources: status},
			},
		},
	}
	eventually(t, "the definition is created", func(ctx context.Context) error {
		fresh := crd.DeepCopy()
		err := c.Create(ctx, fresh)
		if err == nil {
			crd = fresh
		}
		return err
	})
	served(t, c, group)
	return crd
}

func served(t *testing.T, c client.Client, group string) {
	t.Helper()
	eventually(t, "the kind is served", func(ctx context.Context) error {
		return c.List(ctx, list(group), client.InNamespace("default"))
	})
}

func list(group string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "WidgetList"})
	return l
}

func widget(group, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"})
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func idOf(u *unstructured.Unstructured) hubv1.ObjectIdentity {
	gvk := u.GroupVersionKind()
	return hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v (last: %v)", what, err, last)
	}
}

func newStore(t *testing.T, c client.Client) *Store {
	t.Helper()
	return newStoreIn(t, c, nil)
}

func newStoreIn(t *testing.T, c client.Client, namespaces map[schema.GroupResource][]string) *Store {
	t.Helper()
	s, err := New(hub, c, hubv1.SystemNamespace, namespaces)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T, s *Store) {
	t.Helper()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the store ended with %v", err)
		}
	})
}

func synced(t *testing.T, s *Store) {
	t.Helper()
	eventually(t, "the store is synced", func(context.Context) error {
		for gk := range s.wanted {
			if state, _ := s.State(gk); !state.Synced && state.Reason == "" {
				return fmt.Errorf("%s is not", gk)
			}
		}
		return nil
	})
}

func TestAChangeOfOnlyTheStatusIsRecognised(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	define(t, c, "status.example.com")
	w := widget("status.example.com", "one")
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, c)
	reported := make(chan string, 10)
	s.OnChange(func(hubv1.ObjectIdentity) { reported <- "object" })
	s.OnStatus(func(hubv1.ObjectIdentity) { reported <- "status" })
	s.Want(sets.New(idOf(w).GroupKind()))
	start(t, s)
	synced(t, s)
	want := func(what string) {
		t.Helper()
		if got := <-reported; got != what {
			t.Errorf("told of a change of the %s, want the %s", got, what)
		}
	}
	want("object")
	w.Object["status"] = map[string]any{"ready": int64(1)}
	if err := c.Status().Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	want("status")
	w.SetLabels(map[string]string{"tier": "gold"})
	if err := c.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	want("object")
}

func TestOnlyTheObjectsOfNamedNamespacesAreTemplates(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	const group = "namespaces.example.com"
	define(t, c, group)
	ours, theirs := widget(group, "one"), widget(group, "one")
	theirs.SetNamespace("kube-public")
	for _, w := range []*unstructured.Unstructured{ours, theirs} {
		if err := c.Create(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	gk := idOf(ours).GroupKind()
	s := newStoreIn(t, c, map[schema.GroupResource][]string{{Group: group, Resource: "widgets"}: {"default"}})
	s.Want(sets.New(gk))
	start(t, s)
	synced(t, s)
	if _, found := s.Head(idOf(ours)); !found || len(s.List(gk)) != 1 || !s.Watches(gk, "default") {
		t.Errorf("known are %v", s.List(gk))
	}
	if _, found := s.Head(idOf(theirs)); found || s.Watches(gk, "kube-public") {
		t.Error("an object of another namespace is known")
	}
}

func TestWantedKindsAreKeptTrimmed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	define(t, c, "trim.example.com")
	w := widget("trim.example.com", "one")
	w.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "a"})
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, c)
	var mu sync.Mutex
	reported := map[string]bool{}
	s.OnChange(func(id hubv1.ObjectIdentity) {
		mu.Lock()
		defer mu.Unlock()
		reported[id.String()] = true
	})
	gk := idOf(w).GroupKind()
	s.Want(sets.New(gk, schema.GroupKind{Group: hubv1.GroupVersion.Group, Kind: "Placement"}))
	start(t, s)
	synced(t, s)

	got, ok := s.Get(idOf(w))
	if !ok {
		t.Fatal("the object is missing")
	}
	for _, e := range got.GetManagedFields() {
		if e.Manager != "" || e.Time != nil || e.APIVersion != "" {
			t.Errorf("more than the owned fields is kept: %v", e)
		}
	}
	if diff := cmp.Diff(map[string]string{"team": "a"}, got.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]hubv1.ObjectIdentity{idOf(w)}, s.List(gk)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if _, watched := s.State(schema.GroupKind{Group: hubv1.GroupVersion.Group, Kind: "Placement"}); watched {
		t.Error("a kind of hanse.dev is watched")
	}
	mu.Lock()
	if !reported[idOf(w).String()] {
		t.Error("nobody was told of the object")
	}
	mu.Unlock()

	s.Want(sets.New[schema.GroupKind]())
	if _, watched := s.State(gk); watched {
		t.Error("a kind that nobody wants is watched")
	}
}

func TestAKindThatIsNotServedHoldsNothingUp(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	s := newStore(t, c)
	missing := schema.GroupKind{Group: "missing.example.com", Kind: "Widget"}
	s.Want(sets.New(missing, schema.GroupKind{Kind: "ConfigMap"}))
	start(t, s)
	synced(t, s)
	eventually(t, "the state says why", func(context.Context) error {
		if state, _ := s.State(missing); state.Reason != hubv1.ReasonKindNotServed {
			return fmt.Errorf("state %+v", state)
		}
		return nil
	})
}

// retry calls Retry for a group once discovery has the group's kinds. It returns the time of the call.
func retry(t *testing.T, s *Store, group string) time.Time {
	t.Helper()
	eventually(t, "the kind is discovered", func(ctx context.Context) error {
		if kinds, err := s.Kinds(ctx, group); err != nil || len(kinds) == 0 {
			return fmt.Errorf("kinds %v, error %w", kinds, err)
		}
		return nil
	})
	now := time.Now()
	s.Retry(t.Context(), sets.New(group))
	return now
}

func TestAKindIsTriedWhenItIsDefined(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	s := newStore(t, c)
	gk := schema.GroupKind{Group: "late.example.com", Kind: "Widget"}
	s.Want(sets.New(gk))
	start(t, s)
	eventually(t, "the kind is found missing", func(context.Context) error {
		if state, _ := s.State(gk); state.Reason != hubv1.ReasonKindNotServed {
			return fmt.Errorf("state %+v", state)
		}
		return nil
	})
	define(t, c, gk.Group)
	began := retry(t, s, gk.Group)
	eventually(t, "the kind is listed", func(context.Context) error {
		if state, _ := s.State(gk); !state.Synced {
			return fmt.Errorf("state %+v", state)
		}
		return nil
	})
	if took := time.Since(began); took > 4*time.Second { // without Retry, the next try comes after at least 5 s
		t.Errorf("it took %s", took)
	}
}

func TestAVersionThatTheHubPrefersByNowIsTakenUp(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	crd := define(t, c, "newer.example.com")
	s := newStore(t, c)
	gk := schema.GroupKind{Group: "newer.example.com", Kind: "Widget"}
	id := hubv1.ObjectIdentity{Group: gk.Group, Kind: gk.Kind, Namespace: "default", Name: "web"}
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(gk.WithVersion("v1"))
	w.SetNamespace(id.Namespace)
	w.SetName(id.Name)
	eventually(t, "the object is made", func(ctx context.Context) error { return c.Create(ctx, w) })
	var changes, states atomic.Int32
	s.OnChange(func(hubv1.ObjectIdentity) { changes.Add(1) })
	s.OnStatus(func(hubv1.ObjectIdentity) { changes.Add(1) })
	s.OnState(func(schema.GroupKind) { states.Add(1) })
	s.Want(sets.New(gk))
	start(t, s)
	isReadAt := func(version string) func(context.Context) error {
		return func(context.Context) error {
			if got, ok := s.Get(id); !ok || got.GroupVersionKind().Version != version {
				return fmt.Errorf("got %v", got)
			}
			return nil
		}
	}
	eventually(t, "the object is read", isReadAt("v1"))
	content := s.Content(id)

	newer := crd.Spec.Versions[0]
	newer.Name, newer.Storage = "v2", false
	patch := client.MergeFrom(crd.DeepCopy())
	crd.Spec.Versions = append(crd.Spec.Versions, newer)
	if err := c.Patch(t.Context(), crd, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the hub prefers the version", func(ctx context.Context) error {
		if r, err := s.resource(ctx, gk); r.Version != "v2" || err != nil {
			return fmt.Errorf("resource %s, %w", r, err)
		}
		return nil
	})
	changes.Store(0)
	states.Store(0)
	s.Retry(t.Context(), sets.New(gk.Group))
	eventually(t, "the object is read at the new version", isReadAt("v2"))
	eventually(t, "it is told that the kind was read once more", func(context.Context) error {
		if states.Load() == 0 {
			return errors.New("not told")
		}
		return nil
	})
	if changes.Load() != 0 || s.Content(id) != content {
		t.Errorf("the new version counts as %d changes of the object, and its content is %d, was %d", changes.Load(), s.Content(id), content)
	}
	patch = client.MergeFrom(w.DeepCopy())
	w.SetLabels(map[string]string{"a": "b"})
	if err := c.Patch(t.Context(), w, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the object is followed at the new version", func(context.Context) error {
		if got, ok := s.Get(id); !ok || got.GetLabels()["a"] != "b" || changes.Load() == 0 {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
	states.Store(0)
	s.Retry(t.Context(), sets.New(gk.Group))
	if got := s.watches.Resource(unversioned(gk)); got.Version != "v2" {
		t.Errorf("the kind is read at %s", got)
	}
}

func TestKindsOfAGroup(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	define(t, c, "kinds.example.com")
	s := newStore(t, c)
	tests := map[string][]schema.GroupKind{
		"kinds.example.com":         {{Group: "kinds.example.com", Kind: "Widget"}},
		"none.example.com":          nil,
		hubv1.GroupVersion.Group:    nil,
		"coordination.k8s.io":       {{Group: "coordination.k8s.io", Kind: "Lease"}},
		"authorization.k8s.io":      nil, // its kinds cannot be listed
		"no group can be like this": nil,
	}
	for group, want := range tests {
		var got []schema.GroupKind
		eventually(t, "the group is discovered", func(ctx context.Context) error {
			var err error
			if got, err = s.Kinds(ctx, group); err == nil && len(got) != len(want) {
				err = fmt.Errorf("%d kinds", len(got))
			}
			return err
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("group %s (-want +got):\n%s", group, diff)
		}
	}
}

func isUndecided(err error) bool {
	var u interface{ Undecided() bool }
	return errors.As(err, &u) && u.Undecided()
}

func TestLive(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	crd := define(t, c, "live.example.com")
	s := newStore(t, c)
	w := widget("live.example.com", "one")
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	since := w.GetCreationTimestamp().Time

	if obj, gone, err := s.Live(t.Context(), idOf(w), since); err != nil || gone || obj.GetUID() != w.GetUID() {
		t.Errorf("an object that lives: gone %v, error %v", gone, err)
	}
	if _, gone, err := s.Live(t.Context(), idOf(widget("live.example.com", "two")), since); err != nil || !gone {
		t.Errorf("an object that is not there: gone %v, error %v", gone, err)
	}
	if _, gone, err := s.Live(t.Context(), idOf(widget("dead.example.com", "one")), since); gone || !isUndecided(err) {
		t.Errorf("an object of a kind that is not served: gone %v, error %v", gone, err)
	}
	before := crd.CreationTimestamp.Add(-time.Second)
	if _, gone, err := s.Live(t.Context(), idOf(widget("live.example.com", "two")), before); gone || !isUndecided(err) {
		t.Errorf("an object that is older than the definition of its kind: gone %v, error %v", gone, err)
	}
	configMap := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "default", Name: "none"}
	if _, gone, err := s.Live(t.Context(), configMap, since); err != nil || !gone {
		t.Errorf("an object of a built-in kind that is not there: gone %v, error %v", gone, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, gone, err := s.Live(ended, idOf(widget("live.example.com", "two")), since); gone || err == nil || isUndecided(err) {
		t.Errorf("a failed read: gone %v, error %v", gone, err)
	}
}

func TestObjectsAreNotGoneWithTheirDefinition(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	crd := define(t, c, "end.example.com")
	s := newStore(t, c)
	gk := schema.GroupKind{Group: "end.example.com", Kind: "Widget"}
	s.Want(sets.New(gk))
	start(t, s)

	held, free := widget("end.example.com", "held"), widget("end.example.com", "free")
	held.SetFinalizers([]string{"example.com/hold"})
	for _, w := range []*unstructured.Unstructured{held, free} {
		if err := c.Create(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	since := free.GetCreationTimestamp().Time
	if err := c.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the free object has gone with its definition", func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(free), free.DeepCopy())
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read: %w", err)
	})
	for _, w := range []*unstructured.Unstructured{held, free} {
		if obj, gone, err := s.Live(t.Context(), idOf(w), since); gone || obj != nil || !isUndecided(err) {
			t.Errorf("%s while the definition is being deleted: gone %v, error %v", w.GetName(), gone, err)
		}
	}

	if err := c.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store sees that the kind is gone", func(context.Context) error {
		if state, _ := s.State(gk); state.Reason != hubv1.ReasonKindNotServed {
			return fmt.Errorf("state %+v", state)
		}
		return nil
	})
	if _, gone, err := s.Live(t.Context(), idOf(free), since); gone || !isUndecided(err) {
		t.Errorf("while the kind is not served: gone %v, error %v", gone, err)
	}

	// Creation times have a resolution of one second.
	eventually(t, "a second has passed", func(context.Context) error {
		if time.Since(since) < 2*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	define(t, c, "end.example.com")
	eventually(t, "the object is undecided on under the new definition", func(ctx context.Context) error {
		_, gone, err := s.Live(ctx, idOf(free), since)
		if gone {
			t.Fatal("an object is taken for deleted that went with the former definition")
		}
		if err == nil || !isUndecided(err) {
			return fmt.Errorf("error %w", err)
		}
		return nil
	})
	retry(t, s, "end.example.com")
	again := widget("end.example.com", "free")
	if err := c.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store has the new object", func(context.Context) error {
		if got, ok := s.Get(idOf(again)); !ok || got.GetUID() != again.GetUID() {
			return errors.New("not yet")
		}
		return nil
	})
	if err := c.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if _, gone, err := s.Live(t.Context(), idOf(again), again.GetCreationTimestamp().Time); err != nil || !gone {
		t.Errorf("an object deleted under the new definition: gone %v, error %v", gone, err)
	}
}
