package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestABundleThatExistsHasCutAnObject(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const exists, ends = "it exists", "its deletion has begun" // the empty text: it does not exist
	held := present("eu")
	held.Removal = &hubv1.HeldRemoval{Reason: hubv1.ReasonObjectDeleted}
	heldFor := func(reason string) hubv1.BindingTarget {
		e := present("eu")
		e.Removal = &hubv1.HeldRemoval{Reason: reason}
		return e
	}
	for name, tc := range map[string]struct {
		bundled      bool
		cached, live string // state of the bundle in the cache, and on the API server
		undecided    bool   // whether no read can tell if the bundle was deleted
		entry        hubv1.BindingTarget
		want         bool
		asked        int // uncached reads of the bundle
	}{
		"an object of the hub":                                    {entry: present("eu")},
		"a bundle that exists":                                    {bundled: true, cached: exists, live: exists, entry: present("eu"), want: true},
		"a bundle that is being deleted":                          {bundled: true, cached: ends, live: ends, entry: present("eu")},
		"a deleted bundle":                                        {bundled: true, entry: present("eu")},
		"a deleted bundle of which a removal is held":             {bundled: true, entry: held, asked: 1},
		"a held removal, and a bundle that is being deleted":      {bundled: true, cached: ends, live: ends, entry: held, asked: 1},
		"a held removal, and a cache that has lost the bundle":    {bundled: true, live: exists, entry: held, want: true, asked: 1},
		"a held removal, and a kind that was deleted":             {bundled: true, undecided: true, entry: held, want: true, asked: 1},
		"a removal that is held for another reason is no such":    {bundled: true, entry: heldFor(hubv1.ReasonNotSelected)},
		"a held removal of a bundle that the cache has as before": {bundled: true, cached: exists, live: exists, entry: held, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "all"}
			known := &hubObjects{live: map[key]*unstructured.Unstructured{}, undecided: sets.New[key](), asked: map[key]int{}}
			if tc.undecided {
				known.undecided.Insert(of.Identity())
			}
			hub, at := fake.NewClientBuilder().WithScheme(scheme), metav1.Now()
			if tc.cached != "" {
				b := of.New()
				if tc.cached == ends {
					b.SetFinalizers([]string{"example.com/test"})
					b.SetDeletionTimestamp(&at)
				}
				hub = hub.WithObjects(b)
			}
			if tc.live != "" {
				u := &unstructured.Unstructured{Object: map[string]any{}}
				if tc.live == ends {
					u.SetDeletionTimestamp(&at)
				}
				known.live[of.Identity()] = u
			}
			object := template("a")
			if tc.bundled {
				object.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: of}.Annotation()})
			}
			s := New(Options{Client: hub.Build(), Templates: known})
			got, err := s.cutFrom(t.Context(), object, bound(tc.entry))
			if err != nil || (got != nil) != tc.want || got != nil && *got != of {
				t.Errorf("the object is cut from %v: %v", got, err)
			}
			if n := known.asked[of.Identity()]; n != tc.asked {
				t.Errorf("the API server was asked %d times, want %d", n, tc.asked)
			}
		})
	}
}

func TestANewLeaderFindsTheHeldRemovalsOfBundles(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme)
	var want []decide.Owner
	for _, of := range []hubv1.BundleReference{
		{Kind: hubv1.BundleKind, Namespace: "shop", Name: "all"}, {Kind: hubv1.ClusterBundleKind, Name: "all"}, {Kind: hubv1.FederatedOperatorKind, Name: "all"},
	} {
		b := of.New()
		b.SetAnnotations(map[string]string{hubv1.ConfirmRemovalAnnotation: of.Kind})
		b.BundleStatus().RemovalHeld = &hubv1.RemovalHeld{ID: of.Kind}
		quiet := of.New()
		quiet.SetName("quiet")
		hub = hub.WithObjects(b, quiet)
		want = append(want, decide.OwnerOfBundle(of))
	}
	s := New(Options{Client: hub.Build()})
	if diff := cmp.Diff(want, s.withHeldRemovals(t.Context())); diff != "" {
		t.Errorf("owners with held removals (-want +got):\n%s", diff)
	}
	for _, o := range want {
		if held, confirms := (ownerReader{s, t.Context()}).shown(o); held == nil || held.ID != o.Kind || confirms != o.Kind {
			t.Errorf("%s shows %+v, and confirms %q", o, held, confirms)
		}
	}
}
