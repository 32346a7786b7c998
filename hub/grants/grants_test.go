package grants_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanse-dev/hanse/hub/grants"
)

// server refuses requests in the namespaces of refused until its rights are not "few" any more.
type server struct {
	mu      sync.Mutex
	refused []string
	rights  string
	fails   bool
	asked   int
	again   []time.Duration // times of tries since the start
	start   time.Time
}

func (s *server) set(edit func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(s)
}

func (s *server) server() grants.Server {
	return grants.Server{
		Refused: func() []string { s.mu.Lock(); defer s.mu.Unlock(); return slices.Clone(s.refused) },
		Rights: func(context.Context, string) (string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.asked++; s.fails {
				return "", errors.New("away")
			}
			return s.rights, nil
		},
		Again: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.again = append(s.again, time.Since(s.start)); s.rights != "few" {
				s.refused = nil
			}
		},
	}
}

// watch asks the server until the test ends. Its steps run at their times.
func watch(t *testing.T, s *server, steps map[time.Duration]func(*server), until time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.start = time.Now()
	w := &grants.Watch{Servers: func() map[string]grants.Server { return map[string]grants.Server{"eu": s.server()} }}
	go func() { _ = w.Start(ctx) }()
	for at, edit := range steps {
		time.AfterFunc(at, func() { s.set(edit) })
	}
	<-time.After(until)
}

func TestRefusedRequestsAreMadeAgainWithinTwoSecondsOfAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{rights: "few", refused: []string{"shop", "shop"}}
		watch(t, s, map[time.Duration]func(*server){time.Minute + 10*time.Millisecond: func(s *server) { s.rights = "more" }}, 2*time.Minute)
		want := []time.Duration{time.Second, time.Minute + time.Second} // once after the first answer
		if !slices.Equal(s.again, want) {
			t.Errorf("tried again at %v, want %v", s.again, want)
		}
		if s.asked != 61 {
			t.Errorf("asked %d times, want once a second until the grant", s.asked)
		}
	})
}

func TestAServerThatRefusesNothingIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{rights: "few"}
		watch(t, s, nil, time.Minute)
		if s.asked != 0 || len(s.again) > 0 {
			t.Errorf("asked %d times, tried again at %v", s.asked, s.again)
		}
	})
}

func TestAServerThatDoesNotAnswerIsAskedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{rights: "few", refused: []string{""}, fails: true}
		watch(t, s, map[time.Duration]func(*server){10*time.Second + time.Millisecond: func(s *server) { s.fails, s.rights = false, "more" }}, time.Minute)
		if want := []time.Duration{11 * time.Second}; !slices.Equal(s.again, want) {
			t.Errorf("tried again at %v, want %v", s.again, want)
		}
	})
}

func TestManyNamespacesAreNotAllAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{rights: "few"}
		for i := range 100 {
			s.refused = append(s.refused, string(rune('a'+i)))
		}
		watch(t, s, nil, 1500*time.Millisecond)
		if s.asked != 8 {
			t.Errorf("asked for %d namespaces, want 8", s.asked)
		}
	})
}
