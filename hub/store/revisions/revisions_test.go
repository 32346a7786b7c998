package revisions_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/revisions"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var config *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &config)) }

// stored is a Store that keeps the contents of revisions in a namespace of its own.
type stored struct {
	*revisions.Store
	t         *testing.T
	client    client.WithWatch
	clock     *testclock.FakePassiveClock
	namespace string
}

func newStored(t *testing.T) *stored {
	t.Helper()
	apiserver.Needed(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hubv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "revisions-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &stored{t: t, client: c, clock: testclock.NewFakePassiveClock(time.Now()), namespace: ns.Name}
	s.Store = s.another()
	return s
}

// another returns the Store of another replica.
func (s *stored) another() *revisions.Store { return s.withClock(s.clock) }

func (s *stored) withClock(c clock.PassiveClock) *revisions.Store {
	return revisions.New(revisions.Options{Client: s.client, Reader: s.client, Namespace: s.namespace, Key: canonical.Key("key"), Clock: c})
}

// lose deletes the Secret of a part, as a user may do.
func (s *stored) lose(p decide.Payload) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "revision-" + p.Digest}}
	if err := s.client.Delete(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
}

// payload returns the template of an object in the form in which a decision stores it.
func (s *stored) payload(value string) decide.Payload {
	s.t.Helper()
	p, err := decide.Pack("d-"+value, map[string]any{"kind": "ConfigMap", "data": map[string]any{"key": value}})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *stored) ensure(store *revisions.Store, p decide.Payload) {
	s.t.Helper()
	if err := store.Ensure(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

// sweep calls Sweep, calls the functions between, advances the clock by an hour, and calls Sweep again. Sweep deletes
// contents of revisions that no binding has named for a minute.
func (s *stored) sweep(store *revisions.Store, between ...func()) {
	s.t.Helper()
	for i := range 2 {
		if i == 1 {
			for _, f := range between {
				f()
			}
			s.clock.SetTime(s.clock.Now().Add(time.Hour))
		}
		if err := store.Sweep(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// has reports whether the template of a revision is stored. It reads with the Store of a new replica, whose cache is
// empty.
func (s *stored) has(p decide.Payload) bool {
	s.t.Helper()
	_, err := s.another().Template(s.t.Context(), p.Digest)
	if err != nil && !errors.Is(err, decide.ErrRevisionMissing) {
		s.t.Fatal(err)
	}
	return err == nil
}

// name creates a binding with a revision that names this template.
func (s *stored) name(p decide.Payload) {
	s.t.Helper()
	b := hubv1.NewBinding(client.ObjectKey{Namespace: s.namespace, Name: "binding-" + p.Digest}).(*hubv1.ResourceBinding)
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: "uid"}
	b.Spec.Revisions = []hubv1.ObjectRevision{{Number: 1, Template: p.Digest, Policies: "rules", Time: metav1.Now()}}
	if err := s.client.Create(s.t.Context(), b); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.client.Delete(context.WithoutCancel(s.t.Context()), b) })
}

func TestAPartIsReadAsItWasStored(t *testing.T) {
	s := newStored(t)
	p := s.payload("a")
	s.ensure(s.Store, p)
	s.ensure(s.another(), p) // finds the part stored
	got, err := s.another().Template(t.Context(), p.Digest)
	if err != nil || got.Object["data"].(map[string]any)["key"] != "a" {
		t.Errorf("the template is %v (%v)", got, err)
	}
	var secret corev1.Secret
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "revision-" + p.Digest}, &secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != hubv1.RevisionSecretType || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("the Secret is of type %s, immutable %v", secret.Type, secret.Immutable)
	}
}

func TestAPartThatIsGoneIsMissing(t *testing.T) {
	s := newStored(t)
	if _, err := s.Template(t.Context(), "gone"); !errors.Is(err, decide.ErrRevisionMissing) {
		t.Errorf("the template: %v", err)
	}
	if _, err := s.Rules(t.Context(), "gone"); !errors.Is(err, decide.ErrRevisionMissing) {
		t.Errorf("the rules: %v", err)
	}
}

func TestTheSweepDeletesPartsThatNoBindingNames(t *testing.T) {
	tests := map[string]struct {
		before, between func(s *stored, p decide.Payload)
		stays           bool
	}{
		"a part that no binding names goes":                 {},
		"a part that a binding names stays":                 {before: (*stored).name, stays: true},
		"a part that a binding names in the meantime stays": {between: (*stored).name, stays: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStored(t)
			p := s.payload("a")
			s.ensure(s.another(), p)
			if tc.before != nil {
				tc.before(s, p)
			}
			s.sweep(s.Store, func() {
				if tc.between != nil {
					tc.between(s, p)
				}
			})
			if got := s.has(p); got != tc.stays {
				t.Errorf("the part is stored: %t, want %t", got, tc.stays)
			}
		})
	}
}

func TestASweepLeavesAPartThatWasJustEnsured(t *testing.T) {
	s := newStored(t)
	p := s.payload("a")
	s.ensure(s.another(), p)
	if err := s.Sweep(t.Context()); err != nil { // finds for the first time that no binding names the part
		t.Fatal(err)
	}
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.ensure(s.Store, p) // as before a write of the binding that names the part
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.has(p) {
		t.Error("the sweep deleted a part that a binding was about to name")
	}
}

func TestAPartThatAUserDeletesIsLostUntilItIsStoredAgain(t *testing.T) {
	s := newStored(t)
	kept, lost := s.payload("kept"), s.payload("lost")
	var reported []hubv1.ObjectIdentity
	s.OnLost(func(ids ...hubv1.ObjectIdentity) { reported = append(reported, ids...) })
	for _, p := range []decide.Payload{kept, lost} {
		s.ensure(s.Store, p)
		s.name(p)
	}
	s.lose(lost)
	sweep := func() {
		t.Helper()
		s.clock.SetTime(s.clock.Now().Add(time.Second))
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	sweep()
	want := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: s.namespace, Name: "settings"}
	if len(reported) != 1 || reported[0] != want { // the second sweep tells nothing again
		t.Errorf("told %v, want %v", reported, want)
	}
	if s.Lost(kept.Digest) || !s.Lost(lost.Digest) || s.another().Lost(lost.Digest) {
		t.Errorf("lost: %t (kept), %t (deleted), %t (in another replica)", s.Lost(kept.Digest), s.Lost(lost.Digest), s.another().Lost(lost.Digest))
	}
	s.ensure(s.Store, lost)
	if s.Lost(lost.Digest) || !s.has(lost) {
		t.Errorf("after it was stored again: lost %t, stored %t", s.Lost(lost.Digest), s.has(lost))
	}
	sweep()
	if s.Lost(lost.Digest) {
		t.Error("the next sweep loses it again")
	}
}

func TestAPartWithoutItsLabelIsStoredAgain(t *testing.T) {
	s := newStored(t)
	p := s.payload("a")
	s.ensure(s.Store, p)
	s.name(p)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "revision-" + p.Digest}}
	if err := s.client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{true, false} {
		s.clock.SetTime(s.clock.Now().Add(time.Second))
		if err := s.Sweep(t.Context()); err != nil || s.Lost(p.Digest) != lost {
			t.Errorf("lost: %t, want %t (%v)", s.Lost(p.Digest), lost, err)
		}
		s.ensure(s.Store, p)
	}
}

func TestTheLeaderFindsAPartThatIsDeletedWhileItLeads(t *testing.T) {
	s := newStored(t)
	s.Store = s.withClock(clock.RealClock{})
	p := s.payload("a")
	s.ensure(s.Store, p)
	s.name(p)
	reported := make(chan hubv1.ObjectIdentity, 10)
	s.OnLost(func(ids ...hubv1.ObjectIdentity) { reported <- ids[0] })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Lead(ctx) }()
	<-reported // the rules that the binding of the test names: the first list is over
	s.lose(p)
	select {
	case <-reported:
		if !s.Lost(p.Digest) {
			t.Error("another part is lost")
		}
	case <-time.After(time.Minute):
		t.Error("not found within a minute")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRulesThatChangeNothingNeedNoSecret(t *testing.T) {
	s := newStored(t)
	defaults := decide.DefaultRules(canonical.Key("key"))
	if len(defaults) != 3 {
		t.Errorf("there are %d sets of default rules", len(defaults))
	}
	for digest, want := range defaults {
		got, err := s.Rules(t.Context(), digest)
		if err != nil || len(got.Objects) != 0 || got.UnknownFields != want.UnknownFields {
			t.Errorf("%+v (%v), want %+v", got, err, want)
		}
	}
}

func TestAPartThatTheServerRefusesIsAnErrorAndIsTriedAgain(t *testing.T) {
	s := newStored(t)
	p := decide.Payload{Digest: "UPPER CASE", Content: []byte("x")}
	for range 2 {
		if err := s.Ensure(t.Context(), p); !apierrors.IsInvalid(err) {
			t.Errorf("the error is %v, want that the name is invalid", err)
		}
	}
}
