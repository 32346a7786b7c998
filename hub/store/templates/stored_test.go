package templates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
)

// shelf is a Store that keeps objects of bundles in a namespace of its own.
type shelf struct {
	*testing.T
	*Store
	client   client.Client
	reported *reported
}

// newShelf returns a shelf that is not started.
func newShelf(t *testing.T, name string) *shelf {
	t.Helper()
	c := newClient(t)
	all, err := client.New(hub, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	s, err := New(hub, c, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	reported := &reported{}
	s.OnChange(func(id hubv1.ObjectIdentity) { reported.add(id.String()) })
	s.OnState(func(gk schema.GroupKind) { reported.add(gk.String()) })
	return &shelf{T: t, Store: s, client: all, reported: reported}
}

// begin starts the Store, and waits until it has read the objects of bundles.
func (s *shelf) begin() {
	s.Helper()
	start(s.T, s.Store)
	eventually(s.T, "the stored objects are listed", func(context.Context) error {
		if state := s.StoredState(); !state.Synced {
			return fmt.Errorf("state %+v", state)
		}
		return nil
	})
}

// store creates the Secret of a bundle's object.
func (s *shelf) store(o manifest.Stored) *corev1.Secret {
	s.Helper()
	secret, err := o.Secret(s.namespace)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.client.Create(s.Context(), secret); err != nil {
		s.Fatal(err)
	}
	return secret
}

// patch changes a Secret.
func (s *shelf) patch(secret *corev1.Secret, patch []byte) {
	s.Helper()
	if err := s.client.Patch(s.Context(), secret, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.Fatal(err)
	}
}

// become updates a Secret to another state of its object.
func (s *shelf) become(secret *corev1.Secret, o manifest.Stored) {
	s.Helper()
	patch, err := o.Patch(secret.ResourceVersion)
	if err != nil {
		s.Fatal(err)
	}
	s.patch(secret, patch)
}

func (s *shelf) remove(o client.Object) {
	s.Helper()
	if err := s.client.Delete(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

// shows waits until a template fulfils a condition, and returns the template.
func (s *shelf) shows(what string, id hubv1.ObjectIdentity, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	s.Helper()
	var got *unstructured.Unstructured
	eventually(s.T, what, func(context.Context) error {
		var ok bool
		if got, ok = s.Get(id); !ok || !is(got) {
			return fmt.Errorf("found %t: %v", ok, got)
		}
		return nil
	})
	return got
}

func (s *shelf) lacks(id hubv1.ObjectIdentity) {
	s.Helper()
	eventually(s.T, "the template is gone", func(context.Context) error {
		if got, ok := s.Get(id); ok {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// reported records the arguments of the registered functions: identities of objects, and kinds.
type reported struct {
	mu    sync.Mutex
	texts []string
}

func (t *reported) add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.texts = append(t.texts, text)
}

func (t *reported) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.texts = nil
}

func (t *reported) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.texts)
}

func (s *shelf) tells(text string) {
	s.Helper()
	eventually(s.T, "the store tells of "+text, func(context.Context) error {
		if all := s.reported.all(); !slices.Contains(all, text) {
			return fmt.Errorf("it told of %q", all)
		}
		return nil
	})
}

// bundled returns a Widget of the Bundle default/web.
func bundled(group, name string) manifest.Stored {
	return manifest.Stored{
		Bundle: hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "Bundle", Namespace: "default", Name: "web"}, Labels: map[string]string{"team": "a"}},
		UID:    "bundle", Generation: 1, Manifest: widget(group, name),
	}
}

func exists(u *unstructured.Unstructured) bool { return u.GetDeletionTimestamp() == nil }

func TestTheObjectsOfBundlesAreTemplates(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "stored-life")
	const group = "stored-life.example.com" // the hub does not serve this group
	id, gk := idOf(widget(group, "one")), schema.GroupKind{Group: group, Kind: "Widget"}
	first := s.store(bundled(group, "one"))
	s.begin()

	got := s.shows("a template that was stored before", id, exists)
	if got.GetUID() != "bundle" || got.GetGeneration() != 1 || got.GetResourceVersion() != first.ResourceVersion || !first.CreationTimestamp.Equal(new(got.GetCreationTimestamp())) {
		t.Errorf("its metadata is %v", got.Object["metadata"])
	}
	if diff := cmp.Diff(widget(group, "one").Object, manifest.Of(got).Object); diff != "" {
		t.Errorf("its manifest (-want +got):\n%s", diff)
	}
	if head, ok := s.Head(id); !ok || hubv1.BundleOf(head) == nil || hubv1.BundleOf(head).Labels["team"] != "a" {
		t.Error("its head has no bundle")
	}
	if diff := cmp.Diff([]hubv1.ObjectIdentity{id}, s.List(gk)); diff != "" {
		t.Errorf("its kind lists (-want +got):\n%s", diff)
	}
	if !s.StoredKinds().Equal(sets.New(gk)) {
		t.Errorf("the kinds of bundles are %v", s.StoredKinds())
	}
	if state, known := s.StateOf(id); !known || !state.Synced {
		t.Errorf("its state is %+v, known %t", state, known)
	}
	if _, watched := s.State(gk); watched {
		t.Error("its kind is watched on the hub")
	}
	of := func(name string) []hubv1.ObjectIdentity {
		return s.StoredOf(hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "default", Name: name})
	}
	if len(of("web")) != 1 || len(of("other")) != 0 {
		t.Errorf("bundle web has %v, bundle other %v", of("web"), of("other"))
	}

	content := s.Content(id)
	changed := bundled(group, "one")
	changed.Generation = 2
	changed.Manifest.Object["spec"] = map[string]any{"size": int64(4)}
	s.reported.clear()
	s.become(first, changed)
	s.shows("a changed template", id, func(u *unstructured.Unstructured) bool { return u.GetGeneration() == 2 })
	s.tells(id.String())
	if s.Content(id) == content {
		t.Error("the content is as before")
	}

	relabelled := changed
	relabelled.Bundle.Labels = map[string]string{"team": "b"}
	relabelled.Manifest = manifest.Of(changed.Manifest)
	s.reported.clear()
	s.become(first, relabelled)
	s.shows("the labels of its bundle", id, func(u *unstructured.Unstructured) bool { return hubv1.BundleOf(u).Labels["team"] == "b" })
	s.tells(id.String())

	removed := relabelled
	removed.Removed = time.Now()
	s.reported.clear()
	s.become(first, removed)
	s.shows("a template that is deleted", id, func(u *unstructured.Unstructured) bool { return !exists(u) })
	s.tells(id.String())

	s.reported.clear()
	s.become(first, relabelled)
	s.shows("a template that is in the bundle again", id, exists)
	s.tells(id.String())

	s.reported.clear()
	s.remove(first)
	s.lacks(id)
	s.tells(gk.String())
	if len(s.List(gk)) != 0 || len(s.StoredKinds()) != 0 || len(of("web")) != 0 {
		t.Errorf("left are %v of kinds %v", s.List(gk), s.StoredKinds())
	}
}

func TestAStoredObjectWithTheSameContentIsNoChange(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "stored-same")
	const group = "stored-same.example.com"
	s.begin()
	secret := s.store(bundled(group, "one"))
	id := idOf(widget(group, "one"))
	s.tells(id.String())
	s.reported.clear()
	s.patch(secret, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	s.shows("the version of the Secret", id, func(u *unstructured.Unstructured) bool { return u.GetResourceVersion() == secret.ResourceVersion })
	s.store(bundled(group, "two"))
	s.tells(idOf(widget(group, "two")).String())
	if diff := cmp.Diff([]string{idOf(widget(group, "two")).String()}, s.reported.all()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestLiveReadsTheSecretOfAStoredObject(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "stored-live")
	const group = "stored-live.example.com"
	id := idOf(widget(group, "one"))
	secret := s.store(bundled(group, "one"))
	s.begin()
	s.shows("the template", id, exists)
	if o, gone, err := s.Live(t.Context(), id, time.Time{}); err != nil || gone || !exists(o) || o.GetResourceVersion() != secret.ResourceVersion || hubv1.BundleOf(o) == nil {
		t.Errorf("got %v, gone %t, error %v", o, gone, err)
	}
	// The cache soon has the changed Secret. From here on the test calls live, as Live does while the cache is
	// outdated.
	live := func() (*unstructured.Unstructured, error) {
		t.Helper()
		o, gone, err := s.liveStored(t.Context(), id)
		if gone {
			t.Error("it is gone, and only a removal time deletes it")
		}
		return o, err
	}
	removed := bundled(group, "one")
	removed.Removed = time.Unix(5, 0)
	s.become(secret, removed)
	if o, err := live(); err != nil || exists(o) {
		t.Errorf("a removed object: got %v, %v", o, err)
	}
	s.remove(secret)
	if o, err := live(); o != nil || !isUndecided(err) {
		t.Errorf("a missing Secret: got %v, %v", o, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, gone, err := s.liveStored(ended, id); gone || err == nil || isUndecided(err) {
		t.Errorf("a failed read: gone %t, error %v", gone, err)
	}
}

func TestAStoredObjectHidesTheObjectOfTheHub(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "stored-hides")
	const group = "stored-hides.example.com"
	define(t, s.client, group)
	own := widget(group, "one")
	if err := s.client.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	id, gk := idOf(own), idOf(own).GroupKind()
	s.Want(sets.New(gk))
	s.begin()
	s.shows("the hub's own object", id, func(u *unstructured.Unstructured) bool { return u.GetUID() == own.GetUID() })

	secret := s.store(bundled(group, "one"))
	s.shows("the object of the bundle", id, func(u *unstructured.Unstructured) bool { return u.GetUID() == "bundle" })
	if diff := cmp.Diff([]hubv1.ObjectIdentity{id}, s.List(gk)); diff != "" {
		t.Errorf("the kind lists (-want +got):\n%s", diff)
	}
	if o, gone, err := s.Live(t.Context(), id, time.Time{}); err != nil || gone || o.GetUID() != "bundle" {
		t.Errorf("Live reads %v, gone %t, error %v", o, gone, err)
	}
	s.reported.clear()
	own.SetLabels(map[string]string{"a": "b"})
	if err := s.client.Update(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Create(t.Context(), widget(group, "two")); err != nil {
		t.Fatal(err)
	}
	s.tells(idOf(widget(group, "two")).String()) // after the change of the first object
	if slices.Contains(s.reported.all(), id.String()) {
		t.Errorf("a change of a hidden object is told: %q", s.reported.all())
	}

	s.remove(secret)
	got := s.shows("the hub's own object is back", id, func(u *unstructured.Unstructured) bool { return u.GetUID() == own.GetUID() })
	if got.GetLabels()["a"] != "b" || hubv1.BundleOf(got) != nil {
		t.Errorf("it is %v", got)
	}
	s.tells(gk.String())
}

// A user who may write objects on the hub must not be able to make one look like an object of a bundle. Otherwise a
// placement that selects the bundle would select the user's object.
func TestAnObjectOfTheHubCannotPretendToBeInABundle(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "stored-pretends")
	const group = "stored-pretends.example.com"
	define(t, s.client, group)
	own := widget(group, "one")
	own.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"}}.Annotation(), "team": "a"})
	if err := s.client.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	s.Want(sets.New(idOf(own).GroupKind()))
	s.begin()
	got := s.shows("the object", idOf(own), exists)
	if diff := cmp.Diff(map[string]string{"team": "a"}, got.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if head, _ := s.Head(idOf(own)); hubv1.BundleOf(head) != nil {
		t.Errorf("the head is of %s", hubv1.BundleOf(head))
	}
	live, _, err := s.Live(t.Context(), idOf(own), time.Time{})
	if err != nil || hubv1.BundleOf(live) != nil {
		t.Errorf("Live reads %v, error %v", live, err)
	}
	if all := s.ListStored(func(hubv1.ObjectBundle) bool { return true }); len(all) != 0 {
		t.Errorf("the bundles have %v", all)
	}
}

func TestAnotherSecretIsNoTemplate(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "stored-others")
	const group = "stored-others.example.com"
	elsewhere, err := bundled(group, "elsewhere").Secret("default")
	if err != nil {
		t.Fatal(err)
	}
	unlabelled, err := bundled(group, "unlabelled").Secret(s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	unlabelled.Labels = nil
	misnamed, err := bundled(group, "misnamed").Secret(s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	misnamed.Name = "manifest-of-mine"
	for _, secret := range []*corev1.Secret{elsewhere, unlabelled, misnamed} {
		if err := s.client.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	s.store(bundled(group, "one"))
	s.begin()
	s.shows("the stored object", idOf(widget(group, "one")), exists)
	if got := s.List(schema.GroupKind{Group: group, Kind: "Widget"}); len(got) != 1 {
		t.Errorf("the templates are %v", got)
	}
	if refused := s.StoredState().Refused; refused == "" {
		t.Error("nothing is said of the Secret whose name is wrong")
	}
}

func TestABrokenSecretKeepsTheTemplateThatItHad(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "stored-broken")
	const group = "stored-broken.example.com"
	id := idOf(widget(group, "one"))
	secret := s.store(bundled(group, "one"))
	s.begin()
	s.shows("the template", id, exists)
	s.patch(secret, []byte(`{"data":{"manifest":"AAAA"}}`))
	eventually(t, "the state says which Secret is broken", func(context.Context) error {
		if s.StoredState().Refused == "" {
			return errors.New("it does not")
		}
		return nil
	})
	s.shows("the template stays", id, exists)
	if _, gone, err := s.Live(t.Context(), id, time.Time{}); gone || err == nil {
		t.Errorf("Live: gone %t, error %v", gone, err)
	}
	again := bundled(group, "one")
	again.Generation = 2
	s.become(secret, again)
	s.shows("the template is read again", id, func(u *unstructured.Unstructured) bool { return u.GetGeneration() == 2 })
}
