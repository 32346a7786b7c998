package dispatch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

// servedBinding is an API server with one binding.
type servedBinding struct {
	client.Reader
	hold chan struct{} // if set, each answer waits for a value

	mu         sync.Mutex
	generation int64
	uid        types.UID
	err        error
	asked      int
}

func (s *servedBinding) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	s.asked++
	into.SetUID(s.uid)
	into.SetGeneration(s.generation)
	err := s.err
	s.mu.Unlock()
	if s.hold != nil {
		<-s.hold
	}
	return err
}

func (s *servedBinding) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func cachedBinding(uid types.UID, generation int64) hubv1.BindingObject {
	b := hubv1.NewBinding(types.NamespacedName{Namespace: "ns", Name: "web"})
	b.SetUID(uid)
	b.SetGeneration(generation)
	return b
}

func TestAnUncachedReadIsShared(t *testing.T) {
	tests := map[string]struct {
		later  time.Duration          // time between the two reads
		change func(s *servedBinding) // runs before the second read
		cached hubv1.BindingObject    // the binding in the cache at the second read
		asked  int
	}{
		"by the members of one decision":           {cached: cachedBinding("a", 2), asked: 1},
		"not for long":                             {later: pace.FreshFor, cached: cachedBinding("a", 2), asked: 2},
		"not by who knows of a newer decision":     {change: func(s *servedBinding) { s.generation = 3 }, cached: cachedBinding("a", 3), asked: 2},
		"not by who means another binding":         {change: func(s *servedBinding) { s.uid = "b" }, cached: cachedBinding("b", 1), asked: 2},
		"by who has not seen the newest one, too":  {cached: cachedBinding("a", 1), asked: 1},
		"and what comes after shows what was read": {later: pace.FreshFor / 2, change: func(s *servedBinding) { s.generation = 3 }, cached: cachedBinding("a", 2), asked: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			clock := testclock.NewFakePassiveClock(now)
			s := &servedBinding{generation: 2, uid: "a"}
			f := &freshBindings{reader: s, clock: clock}
			if _, err := f.get(t.Context(), cachedBinding("a", 2)); err != nil {
				t.Fatal(err)
			}
			clock.SetTime(now.Add(tc.later))
			if tc.change != nil {
				tc.change(s)
			}
			b, err := f.get(t.Context(), tc.cached)
			if err != nil || b.GetUID() != tc.cached.GetUID() || b.GetGeneration() < tc.cached.GetGeneration() {
				t.Errorf("got uid %s, generation %d, error %v", b.GetUID(), b.GetGeneration(), err)
			}
			if s.times() != tc.asked {
				t.Errorf("asked %d times, want %d", s.times(), tc.asked)
			}
		})
	}
}

func TestAReadThatFailedIsNotShared(t *testing.T) {
	s := &servedBinding{generation: 1, uid: "a", hold: make(chan struct{}), err: errors.New("away")}
	f := &freshBindings{reader: s, clock: testclock.NewFakePassiveClock(time.Now())}
	ended := make(chan error, 2)
	get := func() {
		_, err := f.get(t.Context(), cachedBinding("a", 1))
		ended <- err
	}
	go get()
	go get()
	for range 2 {
		s.hold <- struct{}{}
		if err := <-ended; err == nil {
			t.Error("a read that failed is an answer")
		}
	}
	if s.times() != 2 {
		t.Errorf("asked %d times, want 2", s.times())
	}
}

func TestOutdatedReadsAreForgotten(t *testing.T) {
	now := time.Now()
	clock := testclock.NewFakePassiveClock(now)
	f := &freshBindings{reader: &servedBinding{uid: "a"}, clock: clock}
	for i := range 3 {
		clock.SetTime(now.Add(time.Duration(i) * pace.FreshFor))
		b := cachedBinding("a", 0)
		b.SetName(string(rune('a' + i)))
		if _, err := f.get(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.reads) != 1 {
		t.Errorf("%d reads are kept", len(f.reads))
	}
}
