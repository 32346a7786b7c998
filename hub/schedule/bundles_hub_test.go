package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
)

// stores puts the scene's object into a bundle of its namespace, and returns the object.
func (s *scene) stores(bundle string) *unstructured.Unstructured {
	u := template(uuid.NewUUID())
	u.SetNamespace(s.id.Namespace)
	u.SetCreationTimestamp(metav1.Now())
	u.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: s.id.Namespace, Name: bundle}, Labels: map[string]string{"team": "a"}}.Annotation()})
	objects.set(s.id, u)
	return u
}

// placeBundles returns a placement that selects Bundles.
func (s *scene) placeBundles(name string, selector hubv1.ResourceSelector, clusters ...string) *hubv1.Placement {
	s.t.Helper()
	selector.APIGroup, selector.Kind = hubv1.GroupVersion.Group, hubv1.BundleKind
	p := s.place(name, clusters...)
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{selector}
	return p
}

func TestPlacementsSelectTheBundleOfAnObject(t *testing.T) {
	t.Parallel()
	s := newScene(t, "bundle", "eu", "sg", "us")
	s.stores("web")
	s.create(s.place("kind", "us"))
	p := s.placeBundles("bundles", hubv1.ResourceSelector{Name: "web"}, "eu", "sg")
	s.create(p)
	s.becomes("eu", "sg")
	ref := s.binding().Spec.ObjectRef
	if diff := cmp.Diff(&hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: s.id.Namespace, Name: "web"}, ref.Bundle); diff != "" {
		t.Errorf("bundle of the binding (-want +got):\n%s", diff)
	}
	if got := s.binding().Spec.PlacementRef; got == nil || got.Name != "bundles" {
		t.Errorf("it follows %v", got)
	}

	s.edit(p, func() { p.Spec.Clusters = s.only("sg") })
	s.becomes("-eu NotSelected Delete", "sg")
	s.edit(p, func() {
		p.Spec.Clusters = s.only("eu", "sg")
		p.Spec.ResourceSelectors[0].Name, p.Spec.ResourceSelectors[0].LabelSelector = "", &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	})
	s.becomes("eu", "sg")
}

func TestTheHubRunsNoObjectOfABundle(t *testing.T) {
	t.Parallel()
	s := newScene(t, "bundlerole", "eu")
	s.id.Group, s.id.Kind = "rbac.authorization.k8s.io", "Role"
	u := s.stores("web").DeepCopy()
	u.SetAPIVersion("rbac.authorization.k8s.io/v1")
	u.SetKind("Role")
	objects.set(s.id, u)
	s.create(s.placeBundles("web", hubv1.ResourceSelector{}, "eu")) // the placement does not set hubExecution
	s.becomes("eu")
}

func TestAnObjectThatIsNotStoredKeepsItsCopies(t *testing.T) {
	t.Parallel()
	s := newScene(t, "unstored", "eu", "sg")
	u := s.stores("web")
	p := s.placeBundles("web", hubv1.ResourceSelector{}, "eu", "sg")
	s.create(p)
	s.becomes("eu", "sg")
	objects.remove(s.id)
	s.eventually("the decision says what is missing", func() error {
		c, _, _, _ := scheduler.Decision(s.id.BindingKey())
		if !strings.Contains(c.Message, "the hub has not stored the object for the Bundle "+s.id.Namespace+"/web") {
			return fmt.Errorf("it is %s: %s", c.Reason, c.Message)
		}
		return nil
	})
	s.becomes("eu", "sg")

	objects.set(s.id, u)
	s.decides(hubv1.ReasonScheduled)
	deleted := u.DeepCopy()
	at := metav1.Now()
	deleted.SetDeletionTimestamp(&at)
	// In the cache, the object is being deleted. The API server has already deleted its Secret.
	objects.change(s.id, func() { objects.cached[s.id] = deleted; delete(objects.live, s.id) })
	s.eventually("the decision says what is missing", func() error {
		if c, _, _, _ := scheduler.Decision(s.id.BindingKey()); !strings.Contains(c.Message, "the hub has not stored the object") {
			return fmt.Errorf("it is %s: %s", c.Reason, c.Message)
		}
		return nil
	})
	s.becomes("eu", "sg")

	objects.set(s.id, deleted)
	s.becomes("-eu ObjectDeleted Delete", "-sg ObjectDeleted Delete")
	s.withdraws()
	s.becomes("no binding")
}

// bundles creates a Bundle and this number of its objects on the clusters.
func (s *scene) bundles(bundle string, n int, clusters ...string) *hubv1.Bundle {
	s.t.Helper()
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.id.Namespace, Name: bundle}}
	b.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}}
	s.create(b)
	s.create(s.placeBundles(bundle, hubv1.ResourceSelector{Name: bundle}, clusters...))
	for i := range n {
		s.contains(bundle, i)
	}
	s.counting("all clusters have all objects", n*len(clusters), 0, 0)
	return b
}

// contains stores the object with this number as an object of the bundle.
func (s *scene) contains(bundle string, i int) {
	u := template(types.UID(s.id.Namespace))
	u.SetNamespace(s.id.Namespace)
	u.SetName(s.nth(i).Name)
	u.SetCreationTimestamp(metav1.Now())
	of := hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: s.id.Namespace, Name: bundle}
	u.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: of}.Annotation()})
	objects.set(s.nth(i), u)
}

// cuts gives the stored objects from the number `from` to the number before `to` a removal time.
func (s *scene) cuts(from, to int) {
	s.t.Helper()
	at := metav1.Now()
	for i := from; i < to; i++ {
		u, _ := objects.Get(s.nth(i))
		u = u.DeepCopy()
		u.SetDeletionTimestamp(&at)
		objects.set(s.nth(i), u)
	}
}

func TestABundleThatLosesMostObjectsLosesNoCopyUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	const all, left = 40, 2
	s := newScene(t, "cut", "eu", "sg", "us")
	b := s.bundles("web", all, "eu", "sg", "us")
	off := s.neverAbsent()
	s.cuts(left, all)
	s.counting("all copies of the lost objects are held", 3*left, 3*(all-left), 0)
	held := s.holdsOf(hubv1.BundleKind, "web")
	if held.Copies != 3*(all-left) || len(held.Clusters) != 3 || len(held.Causes) != 1 || held.Causes[0] != "ObjectDeleted: the bundle no longer contains the object" {
		t.Errorf("held is %+v", held)
	}
	if held, _ := scheduler.Removal("Placement", s.id.Namespace, "web", nil); held != nil {
		t.Errorf("the placement holds %+v", held)
	}
	for i := left; i < all; i++ {
		s.contains("web", i)
	}
	s.counting("content that comes back is held no more", 3*all, 0, 0)
	s.eventually("the bundle says so", func() error {
		if held, c := scheduler.Removal(hubv1.BundleKind, s.id.Namespace, "web", held); held != nil || c == nil || c.Reason != hubv1.ReasonRemovalCancelled {
			return fmt.Errorf("held are %+v, the condition is %+v", held, c)
		}
		return nil
	})

	s.cuts(left, all)
	s.counting("all copies are held again", 3*left, 3*(all-left), 0)
	again := s.holdsOf(hubv1.BundleKind, "web")
	if again.ID == held.ID {
		t.Error("another removal has the id of the one before")
	}
	off()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ConfirmRemovalAnnotation, again.ID)
	if err := hubClient.Patch(t.Context(), b, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	s.counting("confirmed copies go", 3*left, 0, 3*(all-left))
	for _, want := range []string{hubv1.ReasonRemovalHeld, hubv1.ReasonRemovalCancelled, hubv1.ReasonRemovalConfirmed} {
		s.eventually("there is an event "+want, func() error {
			if got := observed.of(s.id.Namespace); !slices.Contains(got, want) {
				return fmt.Errorf("there are %v", got)
			}
			return nil
		})
	}
}

func TestTheDeletionOfABundleEndsItsHold(t *testing.T) {
	t.Parallel()
	const all, left = 10, 1
	s := newScene(t, "cutdeleted", "eu", "sg")
	b := s.bundles("web", all, "eu", "sg")
	objects.change(s.nth(0), func() { objects.live[hubv1.ReferenceTo(b).Identity()] = &unstructured.Unstructured{} })
	s.cuts(left, all)
	s.counting("the copies of the lost objects are held", 2*left, 2*(all-left), 0)
	if err := hubClient.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s.eventually("an uncached read must prove the deletion", func() error {
		objects.mu.Lock()
		defer objects.mu.Unlock()
		if objects.asked[hubv1.ReferenceTo(b).Identity()] < all-left {
			return errors.New("it has not been asked for")
		}
		return nil
	})
	s.counting("a cache that lost the bundle withdraws nothing", 2*left, 2*(all-left), 0)
	objects.remove(hubv1.ReferenceTo(b).Identity())
	scheduler.BundleChanged(t.Context(), changes.Bundle{Before: b})
	s.counting("the copies of a deleted bundle go", 2*left, 0, 2*(all-left))
}

func TestAKindThatOnlyBundlesUseIsWantedOfMembersAlone(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bundled, own := schema.GroupKind{Group: "example.com", Kind: "Bundled"}, schema.GroupKind{Group: "example.com", Kind: "Own"}
	bound := func(gk schema.GroupKind, bundle *hubv1.BundleReference) *hubv1.ResourceBinding {
		id := hubv1.ObjectIdentity{Group: gk.Group, Kind: gk.Kind, Namespace: "shop", Name: "x"}
		b := hubv1.NewBinding(id.BindingKey()).(*hubv1.ResourceBinding)
		b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: gk.Group + "/v1", Kind: gk.Kind, Name: "x", UID: "u", Bundle: bundle}
		return b
	}
	tests := map[string]struct {
		bindings []*hubv1.ResourceBinding
		stored   bool // whether an object of a bundle is stored
		want     []schema.GroupKind
		watched  []schema.GroupKind
	}{
		"a stored object":                   {stored: true, want: []schema.GroupKind{bundled}},
		"a binding of an object of bundles": {bindings: []*hubv1.ResourceBinding{bound(bundled, &hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"})}, want: []schema.GroupKind{bundled}},
		"a binding of an object of the hub": {bindings: []*hubv1.ResourceBinding{bound(own, nil)}, want: []schema.GroupKind{own}, watched: []schema.GroupKind{own}},
		"both": {
			stored: true, bindings: []*hubv1.ResourceBinding{bound(own, nil)}, want: []schema.GroupKind{bundled, own}, watched: []schema.GroupKind{own},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := fake.NewClientBuilder().WithScheme(scheme).Build()
			for _, b := range tc.bindings {
				if err := hub.Create(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			known := &hubObjects{cached: map[key]*unstructured.Unstructured{}}
			if tc.stored {
				u := &unstructured.Unstructured{Object: map[string]any{}}
				u.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"}}.Annotation()})
				known.cached[key{Group: bundled.Group, Kind: bundled.Kind, Namespace: "shop", Name: "x"}] = u
			}
			w := newWants(hub, known, nil)
			if err := w.collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := w.current(); !got.Equal(sets.New(tc.want...)) {
				t.Errorf("wanted are %v", got)
			}
			if !known.wanted.Equal(sets.New(tc.watched...)) {
				t.Errorf("watched on the hub are %v", known.wanted)
			}
		})
	}
}
