package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// limits bound how long and how often the messages of a sink are tried.
type limits struct {
	within                time.Duration // for one request
	firstPause, mostPause time.Duration // after a failed try; it doubles with each further one
	mostAge               time.Duration // of a message
	queued                int
}

var standard = limits{within: 10 * time.Second, firstPause: time.Second, mostPause: time.Minute, mostAge: time.Hour, queued: 500}

// errSigningKey is the error for a sink without a key.
var errSigningKey = errors.New("no signing key")

// tally is the result of the tries since the last report.
type tally struct {
	// tried is false until the receiver has answered under the current spec, or failed to.
	tried bool
	// failure of the last try; nil if it succeeded. since is the time of the first failure after the last success.
	failure error
	since   time.Time

	delivered, dropped        int64
	lastDelivered, lastFailed time.Time
}

// sender sends the messages of one sink, in their order.
type sender struct {
	limits
	name    string
	target  func(ctx context.Context) (target, error)
	courier courier
	queue   *queue
	// changed holds a value after a change of the sink: a pause ends.
	changed chan struct{}
	stop    context.CancelFunc

	mu    sync.Mutex
	tally tally
	// reported is the time of the last write to the status.
	reported time.Time
}

// push queues a message.
func (s *sender) push(m *message) {
	if s.queue.push(m) {
		s.drop()
	}
}

// wake makes the sender use a changed sink at once.
func (s *sender) wake() {
	s.mu.Lock()
	s.tally.tried = false // the last result is about the former spec
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run sends messages until ctx ends.
func (s *sender) run(ctx context.Context) {
	defer s.courier.close()
	for {
		m := s.queue.first(ctx)
		if m == nil {
			return
		}
		s.send(ctx, m)
		if ctx.Err() != nil {
			return
		}
		s.queue.pop()
	}
}

// send tries to send a message until the receiver takes or refuses it, or it is too old.
func (s *sender) send(ctx context.Context, m *message) {
	pause := s.firstPause
	for {
		if time.Since(m.at) > s.mostAge {
			s.drop()
			return
		}
		o := s.try(ctx, m)
		if ctx.Err() != nil {
			return
		}
		s.note(o)
		if o.failure == nil || o.refused {
			return
		}
		if s.rest(ctx, max(o.after, pause/2+rand.N(pause/2))) {
			pause = s.firstPause
		} else {
			pause = min(2*pause, s.mostPause)
		}
	}
}

// rest waits, and returns true if a change of the sink has ended the pause.
func (s *sender) rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.changed:
		return true
	}
	return false
}

func (s *sender) try(ctx context.Context, m *message) outcome {
	to, err := s.target(ctx)
	if err != nil {
		return outcome{failure: err}
	}
	o := s.courier.deliver(ctx, to, m)
	if o.refused {
		o.failure = fmt.Errorf("%w to %s, which is dropped", o.failure, m.what)
	}
	return o
}

// note records the outcome of a try.
func (s *sender) note(o outcome) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tally
	t.tried = true
	if o.failure == nil {
		t.delivered, t.lastDelivered, t.failure = t.delivered+1, now, nil
		notifications.WithLabelValues(s.name, "delivered").Inc()
		return
	}
	if t.failure == nil {
		t.since = now
	}
	t.failure, t.lastFailed = o.failure, now
	if o.refused {
		t.dropped++
		notifications.WithLabelValues(s.name, "refused").Inc()
		return
	}
	notifications.WithLabelValues(s.name, "failed").Inc()
}

// drop counts a message that is not sent.
func (s *sender) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.dropped++
	notifications.WithLabelValues(s.name, "dropped").Inc()
}

// result returns the tally, and the time of the last report.
func (s *sender) result() (tally, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally, s.reported
}

// wrote records that the status has the counts of a tally.
func (s *sender) wrote(t tally, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.delivered -= t.delivered
	s.tally.dropped -= t.dropped
	s.reported = at
}

// reasonOf returns the reason of the condition Ready for the failure of a try.
func reasonOf(failure error) string {
	if errors.Is(failure, errSigningKey) {
		return hubv1.ReasonSigningKeyInvalid
	}
	return hubv1.ReasonDeliveryFailed
}
