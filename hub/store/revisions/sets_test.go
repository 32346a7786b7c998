package revisions_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/revisions"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/decide"
)

// list stores a list of ConfigMaps with these names, and returns it.
func (s *stored) list(store *revisions.Store, names ...string) (digest string, out decide.SetList) {
	s.t.Helper()
	out = decide.SetList{}
	var parts []decide.Payload
	for _, name := range names {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
		part, err := decide.PackPart(canonical.Key("key"), o)
		if err != nil {
			s.t.Fatal(err)
		}
		parts = append(parts, part)
		out[hubv1.IdentityOf(o)] = part.Digest
	}
	packed, err := out.Pack(canonical.Key("key"))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := store.EnsureSet(s.t.Context(), packed, parts); err != nil {
		s.t.Fatal(err)
	}
	return packed.Digest, out
}

// record creates a SetRollout that names a newest list, and a list of a revision.
func (s *stored) record(newest, revision string) *hubv1.SetRollout {
	s.t.Helper()
	r := &hubv1.SetRollout{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	r.Spec.Bundle, r.Spec.BundleUID = hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "web"}, "uid"
	r.Spec.Newest = hubv1.SetList{List: newest, Time: metav1.Now()}
	r.Spec.Revisions = []hubv1.SetRevision{{Number: 1, List: revision, Time: metav1.Now()}}
	if err := s.client.Create(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// sweepSets calls SweepSets, advances the clock by an hour, and calls SweepSets again.
func (s *stored) sweepSets(store *revisions.Store) error {
	s.t.Helper()
	first := store.SweepSets(s.t.Context())
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	return errors.Join(first, store.SweepSets(s.t.Context()))
}

// sets returns the number of stored lists and parts of bundles.
func (s *stored) sets() int {
	s.t.Helper()
	var secrets corev1.SecretList
	if err := s.client.List(s.t.Context(), &secrets, client.InNamespace(s.namespace), client.HasLabels{hubv1.SetLabel}); err != nil {
		s.t.Fatal(err)
	}
	return len(secrets.Items)
}

func TestAListOfABundleIsReadAsItWasStored(t *testing.T) {
	s := newStored(t)
	digest, want := s.list(s.Store, "a", "b")
	s.list(s.another(), "b", "a") // finds all stored
	if n := s.sets(); n != 3 {
		t.Errorf("%d Secrets are stored", n)
	}
	got, err := s.another().SetList(t.Context(), digest)
	if err != nil || len(got) != len(want) {
		t.Fatalf("the list is %v (%v)", got, err)
	}
	for id, part := range want {
		o, err := s.another().SetPart(t.Context(), part)
		if err != nil || got[id] != part || hubv1.IdentityOf(o) != id {
			t.Errorf("%s is %v (%v)", id, o, err)
		}
	}
	if _, err := s.SetList(t.Context(), "gone"); !errors.Is(err, decide.ErrRevisionMissing) {
		t.Errorf("a list that is not stored: %v", err)
	}
}

func TestTheSweepDeletesWhatNoSetRolloutNames(t *testing.T) {
	s := newStored(t)
	newest, list := s.list(s.Store, "a", "b")
	revision, _ := s.list(s.Store, "b", "c")
	s.list(s.Store, "c", "d")
	record := s.record(newest, revision)
	s.sweep(s.another()) // the sweep of the parts that bindings name leaves them alone
	if n := s.sets(); n != 7 {
		t.Fatalf("%d Secrets are stored before the sweep", n)
	}
	leader := s.another()
	if err := s.sweepSets(leader); err != nil {
		t.Fatal(err)
	}
	if n := s.sets(); n != 5 { // two lists with a, b and c
		t.Errorf("%d Secrets are stored", n)
	}
	t.Run("and finds a newest list that is not stored completely", func(t *testing.T) {
		var told []hubv1.BundleReference
		leader.OnSetLost(func(of ...hubv1.BundleReference) { told = append(told, of...) })
		part := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "set-part-" + list[hubv1.ObjectIdentity{Kind: "ConfigMap", Name: "a"}]}}
		if err := s.client.Delete(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if err := leader.SweepSets(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !leader.SetLost(newest) || leader.SetLost(revision) || len(told) != 1 || told[0] != record.Spec.Bundle {
			t.Errorf("told are %v", told)
		}
		s.list(leader, "a", "b")
		if n := s.sets(); n != 5 || leader.SetLost(newest) {
			t.Errorf("after the list was stored again, %d Secrets are stored", n)
		}
	})
	t.Run("and nothing while a list is lost", func(t *testing.T) {
		lost := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "set-list-" + revision}}
		if err := s.client.Delete(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		if err := s.sweepSets(s.another()); !errors.Is(err, decide.ErrRevisionMissing) {
			t.Errorf("the sweep returns %v", err)
		}
		if n := s.sets(); n != 4 {
			t.Errorf("%d Secrets are stored", n)
		}
	})
	t.Run("and all after the SetRollout", func(t *testing.T) {
		if err := s.client.Delete(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if err := s.sweepSets(s.another()); err != nil {
			t.Fatal(err)
		}
		if n := s.sets(); n != 0 {
			t.Errorf("%d Secrets are stored", n)
		}
	})
}

func TestTheSweepLeavesAListThatWasJustEnsured(t *testing.T) {
	s := newStored(t)
	s.list(s.another(), "a")
	if err := s.SweepSets(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.list(s.Store, "a")
	if err := s.SweepSets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.sets(); n != 2 {
		t.Errorf("%d Secrets are stored", n)
	}
}
