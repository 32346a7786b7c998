package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// limits has the timeouts and pauses of deliveries.
type limits struct {
	within               time.Duration // timeout of one request
	firstPause, maxPause time.Duration // pause after a failed attempt; it doubles with each further failure
	maxAge               time.Duration // maximum age of a message
	greetAgain           time.Duration // pause after a first notification that no replica has sent
	queued               int
	// A group of events is complete when no event was added for groupQuiet, and at the latest after groupMax. groupEvery
	// is how often the hub looks for complete groups.
	groupQuiet, groupMax, groupEvery time.Duration
}

var standard = limits{
	within: 10 * time.Second, firstPause: time.Second, maxPause: time.Minute, maxAge: time.Hour, greetAgain: time.Minute, queued: 500,
	groupQuiet: 3 * time.Second, groupMax: 10 * time.Second, groupEvery: time.Second / 2,
}

// message is a request that waits for its delivery.
type message struct {
	id     string
	at     time.Time
	what   string // subject and reason, for errors
	format hubv1.NotificationFormat
	body   []byte // for PagerDuty, without the routing key
}

// tally counts the results of the delivery attempts since the last write of the sink's status.
type tally struct {
	// generation is the spec's generation at the last attempt. It is 0 before the first attempt.
	generation int64
	// failure is the error of the last attempt, or nil if it was successful. since is the time of the first failure after
	// the last success. lost is the number of messages that were dropped since the first failure.
	failure error
	since   time.Time
	lost    int64
	// waiting is the number of messages that are not delivered yet.
	waiting int

	delivered, dropped        int64
	lastDelivered, lastFailed time.Time
}

// sender sends the messages of one sink in their order.
type sender struct {
	limits limits
	name   string
	uid    types.UID
	target func(ctx context.Context) (target, error)
	client sinkClient
	queue  chan *message
	// changed gets a value when the sink changes. It ends the current pause.
	changed chan struct{}
	stop    context.CancelFunc

	mu      sync.Mutex
	tally   tally
	sending bool // true: one message is being sent and is not in the queue
	// reported is the time of the last write to the status of the sink.
	reported time.Time
}

// push queues a message. If the queue is full, its oldest message is dropped, because newer messages are more useful.
func (s *sender) push(m *message) {
	for {
		select {
		case s.queue <- m:
			return
		default:
		}
		select {
		case <-s.queue:
			s.drop()
		default: // the sender has just taken a message
		}
	}
}

// wake makes the sender use a changed spec at once.
func (s *sender) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run sends messages until ctx ends.
func (s *sender) run(ctx context.Context) {
	defer s.client.close()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-s.queue:
			s.setSending(true)
			s.send(ctx, m)
			s.setSending(false)
		}
	}
}

func (s *sender) setSending(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = is
}

// send repeats the delivery of a message until the receiver accepts or refuses it, or until the message is too old.
func (s *sender) send(ctx context.Context, m *message) {
	pause := s.limits.firstPause
	for {
		if time.Since(m.at) > s.limits.maxAge {
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
			pause = s.limits.firstPause
		} else {
			pause = min(2*pause, s.limits.maxPause)
		}
	}
}

// rest waits for the pause. It returns true if a change of the sink has ended the pause.
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
		return outcome{generation: to.generation, failure: err}
	}
	o := s.client.deliver(ctx, to, m)
	o.generation = to.generation
	if o.refused {
		o.failure = fmt.Errorf("%w to the notification %s, which the hub drops", o.failure, m.what)
	}
	return o
}

// note adds the outcome of a delivery attempt to the counts in the tally.
func (s *sender) note(o outcome) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tally
	if o.generation != t.generation {
		t.generation, t.failure = o.generation, nil // the last failure was with the former spec
	}
	if o.failure == nil {
		t.delivered, t.lastDelivered, t.failure = t.delivered+1, now, nil
		notifications.WithLabelValues(s.name, "delivered").Inc()
		return
	}
	if t.failure == nil {
		t.since, t.lost = now, 0
	}
	t.failure, t.lastFailed = o.failure, now
	if o.refused {
		t.dropped++
		t.lost++
		notifications.WithLabelValues(s.name, "refused").Inc()
		return
	}
	notifications.WithLabelValues(s.name, "failed").Inc()
}

// drop counts a message that is dropped because it is too old or the queue is full.
func (s *sender) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.dropped++
	s.tally.lost++
	notifications.WithLabelValues(s.name, "dropped").Inc()
}

// result returns the counts of deliveries since the last write of the sink's status, and the time of this write.
func (s *sender) result() (tally, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tally
	t.waiting = len(s.queue)
	if s.sending {
		t.waiting++
	}
	return t, s.reported
}

// wrote subtracts the counts of a tally that is now in the status from the sender's counts. at is the time of the
// write.
func (s *sender) wrote(t tally, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.delivered -= t.delivered
	s.tally.dropped -= t.dropped
	s.reported = at
}

// reasonOf returns the reason of the condition Ready for a failed attempt.
func reasonOf(failure error) string {
	switch {
	case errors.Is(failure, errSigningKey):
		return hubv1.ReasonSigningKeyInvalid
	case errors.Is(failure, errSecret):
		return hubv1.ReasonSecretInvalid
	}
	return hubv1.ReasonDeliveryFailed
}
