package events

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// quick has limits with short pauses.
var quick = limits{
	within: 10 * time.Second, firstPause: time.Millisecond, maxPause: 8 * time.Millisecond, maxAge: time.Hour, greetAgain: time.Hour, queued: 4,
	groupQuiet: 200 * time.Millisecond, groupMax: time.Second, groupEvery: 10 * time.Millisecond,
}

// start runs a sender until the test ends.
func start(t *testing.T, l limits, to target) *sender {
	t.Helper()
	return startWith(t, l, func(context.Context) (target, error) { return to, nil })
}

func startWith(t *testing.T, l limits, to func(context.Context) (target, error)) *sender {
	t.Helper()
	s := &sender{
		limits: l, name: t.Name(), queue: make(chan *message, l.queued), changed: make(chan struct{}, 1), client: sinkClient{within: l.within}, target: to,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatalf("after 30s, not yet: %s", what)
		case <-tick.C:
		}
	}
}

func numbered(i int) *message {
	return &message{format: hubv1.FormatCloudEvents, id: fmt.Sprint(i), at: time.Now(), body: []byte("{}")}
}

func (s *sender) counts() (delivered, dropped int64, failing bool) {
	t, _ := s.result()
	return t.delivered, t.dropped, t.failure != nil
}

func TestMessagesArriveInOrderAfterFailures(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	var tries atomic.Int32
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Webhook-Id")
		if n := tries.Add(1); n == 1 || n == 3 || n == 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	s := start(t, quick, targetOf(t, server))
	s.push(numbered(1))
	s.push(numbered(2))
	for i, want := range []string{"1", "1", "2", "2", "2"} {
		if id := <-got; id != want {
			t.Fatalf("request %d has id %s, want %s", i, id, want)
		}
	}
	eventually(t, "two messages are delivered", func() bool {
		delivered, dropped, failing := s.counts()
		return delivered == 2 && dropped == 0 && !failing
	})
}

func TestAMessageThatIsRefusedIsDroppedAndTheNextOneSent(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Webhook-Id") == "1" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	s := start(t, quick, targetOf(t, server))
	s.push(numbered(1))
	s.push(numbered(2))
	eventually(t, "one message is dropped, and one delivered", func() bool {
		delivered, dropped, failing := s.counts()
		return delivered == 1 && dropped == 1 && !failing
	})
}

func TestAFullQueueLosesItsOldestMessages(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	release := make(chan struct{})
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Webhook-Id")
		<-release
	})
	s := start(t, quick, targetOf(t, server))
	s.push(numbered(0))
	if id := <-got; id != "0" { // the message that is being sent is not dropped
		t.Fatalf("got %s", id)
	}
	for i := 1; i <= 10; i++ {
		s.push(numbered(i))
	}
	if is, _ := s.result(); is.dropped != 6 || is.waiting != 5 {
		t.Errorf("%d messages were dropped, want 6; %d wait, want 5", is.dropped, is.waiting)
	}
	close(release)
	for _, want := range []string{"7", "8", "9", "10"} {
		if id := <-got; id != want {
			t.Errorf("got %s, want %s", id, want)
		}
	}
}

func TestAMessageIsDroppedWhenItIsTooOld(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Webhook-Id") == "1" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	l := quick
	l.maxAge = time.Minute
	s := start(t, l, targetOf(t, server))
	m := numbered(1)
	m.at = m.at.Add(-l.maxAge + 200*time.Millisecond)
	s.push(m)
	s.push(numbered(2))
	eventually(t, "the first one is dropped, and the second one delivered", func() bool {
		delivered, dropped, failing := s.counts()
		return delivered == 1 && dropped == 1 && !failing
	})
}

func TestAChangedSinkEndsAPause(t *testing.T) {
	t.Parallel()
	var works atomic.Bool
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !works.Load() {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	s := start(t, quick, targetOf(t, server))
	s.push(numbered(1))
	eventually(t, "it fails", func() bool { _, _, failing := s.counts(); return failing })
	works.Store(true)
	s.wake()
	eventually(t, "it is delivered", func() bool { delivered, _, _ := s.counts(); return delivered == 1 })
}

// The response to a request may arrive after a change of the spec with which the request was sent.
func TestAnAnswerByAFormerSpecIsNoResultOfTheNewOne(t *testing.T) {
	t.Parallel()
	asked, answers := make(chan struct{}), make(chan int)
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.WriteHeader(<-answers)
	})
	to := targetOf(t, server)
	var generation atomic.Int64
	generation.Store(1)
	s := startWith(t, quick, func(context.Context) (target, error) {
		to := to
		to.generation = generation.Load()
		return to, nil
	})
	s.push(numbered(1))
	<-asked
	generation.Store(2)
	s.wake()
	answers <- http.StatusServiceUnavailable
	<-asked // the second attempt
	was, _ := s.result()
	if was.generation != 1 || was.failure == nil {
		t.Errorf("the result of the first try is of generation %d: %v", was.generation, was.failure)
	}
	answers <- http.StatusServiceUnavailable
	<-asked
	if is, _ := s.result(); is.generation != 2 || !is.since.After(was.since) {
		t.Errorf("the result of the second try is of generation %d, since %s", is.generation, is.since)
	}
	answers <- http.StatusOK
	eventually(t, "it is delivered", func() bool { delivered, _, failing := s.counts(); return delivered == 1 && !failing })
}

func TestAReceiverThatHangsDelaysNoOtherOneAndNoEnd(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{}, 1)
	hangs := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		hanging <- struct{}{}
		<-r.Context().Done()
	})
	answers := serve(t, status(http.StatusOK))
	l := quick
	l.within = time.Hour
	slow, fast := start(t, l, targetOf(t, hangs)), start(t, l, targetOf(t, answers))
	slow.push(numbered(1))
	<-hanging
	for i := range 3 {
		slow.push(numbered(i))
		fast.push(numbered(i))
	}
	eventually(t, "the other one is done", func() bool { delivered, _, _ := fast.counts(); return delivered == 3 })
	// The cleanup also ends the slow sender, although its request would last for an hour.
}
