// Package pace decides when the hub writes to its own API server.
//
// A Pacer limits the number of writes in flight, and shares them between classes of writes. It knows no rate: a fast
// API server takes more writes a second than a slow one, and more when nothing else loads it.
//
//   - The width is the number of writes that may be in flight. It grows by one for each round of writes. It shrinks by
//     a third while binding-status writes take twice as long as usual (additive increase, multiplicative decrease; Chiu
//     and Jain 1989). A 429 of any write halves it.
//   - While more writes wait than the width allows, each class gets a share by its weight (weighted fair queueing): a
//     lost cluster with thousands of objects does not hold up a single change, and no class starves.
//   - A kind whose hub objects take long to write, because a webhook of a user is slow, has a limit (TryKind).
//   - No caller blocks. Try gives a Turn, or the time after which the caller asks again. A caller that waits goes
//     before one that comes.
//
// Only binding-status writes steer the width: the hub makes many of them, and no webhook or conversion of a user can
// slow them down. Exempt are Leases, finalizers, removals, and the few writes for each cluster or process: they take no
// turn, so that load cannot hold them up.
package pace

import (
	"math"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// Class is the purpose of a write. Smaller classes go first.
type Class int

const (
	// Failure is a write about a new failure.
	Failure Class = iota
	// FirstResult is a write of the first decision on an object, or of the result of its change.
	FirstResult
	// MergedStatus is a write of a hub object's status, after the status on members has changed.
	MergedStatus
	// Rows is a write of a binding's rows after its merged status was written.
	Rows
	// Many is a write for one of many objects affected by one event, such as a lost cluster.
	Many
	classes
)

// weights are the shares of the classes while all of them have waiting writes: Rows has 10 %, Many has 5 %.
var weights = [classes]int{Failure: 8, FirstResult: 6, MergedStatus: 3, Rows: 2, Many: 1}

// Priority returns the priority of a class in a priority queue: the highest for failures, 0 for first results.
func (c Class) Priority() int { return 10 * int(FirstResult-c) }

const (
	// widest is the largest width. hub/report and hub/schedule have the same number of workers in total.
	widest = 8
	// longestWait is the longest time until a caller asks again, so that callers soon find free turns.
	longestWait = time.Second
)

// Pacer gives turns to the writers of one process. It is safe for concurrent use.
type Pacer struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	width    float64 // 1 to widest
	inFlight int
	latency  latency
	skip     int       // samples of writes that began before the last cut of the width
	throttle time.Time // time of the last cut by a 429
	swept    time.Time
	waiting  [classes]callers
	kinds    map[schema.GroupKind]*kind
}

// callers are the waiting callers of one class.
type callers struct {
	places map[any]time.Time // when each caller asks again
	// next is a caller whose place came up while all turns were taken. The next free turn is reserved for it until it
	// asks again.
	next  any
	until time.Time
}

// New returns a Pacer at its full width. A nil clock is the real clock.
func New(c clock.PassiveClock) *Pacer {
	if c == nil {
		c = clock.RealClock{}
	}
	p := &Pacer{clock: c, width: widest, kinds: map[schema.GroupKind]*kind{}}
	for c := range classes {
		p.waiting[c].places = map[any]time.Time{}
	}
	return p
}

// Turn is the right to one write at a time.
type Turn struct {
	pacer *Pacer
	once  sync.Once
}

// Try returns a turn for a write of a class, or nil and the time after which the caller must ask again. key identifies
// the caller: waiting callers go before new ones.
func (p *Pacer) Try(c Class, key any) (*Turn, time.Duration) {
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.waiting[c]
	place, waits := q.places[key]
	if waits && now.Before(place) {
		return nil, place.Sub(now)
	}
	if !waits && now.Sub(p.swept) > longestWait {
		p.sweep(now)
	}
	if p.isFree(c, key, now) && (waits || len(q.places) == 0) {
		q.leave(key)
		p.inFlight++
		return &Turn{pacer: p}, 0
	}
	wait := min(p.share(c)*time.Duration(len(q.places)+1), longestWait)
	if waits && (q.next == nil || q.next == key || now.After(q.until)) {
		wait = p.service() / 4 // it asks often, so that the turn is used soon
		q.next, q.until = key, now.Add(wait+FirstRetry)
	}
	q.places[key] = now.Add(wait)
	return nil, wait
}

// isFree reports whether a caller of a class may have a turn now. Turns reserved for callers of other classes are not
// free, unless one is reserved for this caller, too.
func (p *Pacer) isFree(c Class, key any, now time.Time) bool {
	free := p.room(c) - p.inFlight
	if p.waiting[c].next == key {
		return free > 0
	}
	for i := range p.waiting {
		if q := &p.waiting[i]; q.next != nil && now.Before(q.until) {
			free--
		}
	}
	return free > 0
}

// leave ends the wait of a caller.
func (q *callers) leave(key any) {
	delete(q.places, key)
	if q.next == key {
		q.next = nil
	}
}

// sweep removes the callers that have not asked again in time.
func (p *Pacer) sweep(now time.Time) {
	p.swept = now
	for i := range p.waiting {
		q := &p.waiting[i]
		for key, place := range q.places {
			if now.Sub(place) > 10*longestWait {
				q.leave(key)
			}
		}
	}
}

// service returns the time between two turns while all turns are taken.
func (p *Pacer) service() time.Duration { return time.Duration(float64(p.latency.mean()) / p.width) }

// share returns the time between two turns of a class while all turns are taken.
func (p *Pacer) share(c Class) time.Duration {
	sum := weights[c]
	for other := range classes {
		if other != c && len(p.waiting[other].places) > 0 {
			sum += weights[other]
		}
	}
	return p.service() * time.Duration(sum) / time.Duration(weights[c])
}

// room returns the maximum number of writes in flight when a write of the class begins. Less urgent classes leave half
// of the width free for single changes.
func (p *Pacer) room(c Class) int {
	switch c {
	case Failure:
		return int(p.width) + 1
	case Rows, Many:
		return max(1, int(p.width/2))
	default:
		return int(p.width)
	}
}

// Done returns the turn. Further calls, and calls on nil, do nothing.
func (t *Turn) Done() {
	if t == nil {
		return
	}
	t.once.Do(func() {
		t.pacer.mu.Lock()
		defer t.pacer.mu.Unlock()
		t.pacer.inFlight--
	})
}

// Steer records the duration of a binding-status write.
func (p *Pacer) Steer(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency.add(max(took, 1))
	switch {
	case p.skip > 0:
		p.skip--
	case p.latency.rises():
		p.cut(p.width * 2 / 3)
	default:
		p.width = math.Min(p.width+1/p.width, widest)
	}
	width.Set(p.width)
}

// cut reduces the width. The samples of the writes in flight do not cut it again.
func (p *Pacer) cut(to float64) {
	p.skip = p.inFlight
	p.width = math.Max(to, 1)
}

// Wrap returns a transport in which each 429 halves the width, for rest.Config.Wrap. client-go retries such requests
// itself and would hide the response.
func (p *Pacer) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusTooManyRequests {
			p.throttled()
		}
		return resp, err
	})
}

// throttled halves the width, once for all 429 responses within the duration of one write.
func (p *Pacer) throttled() {
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.throttle) < p.latency.mean() {
		return
	}
	p.throttle = now
	p.cut(p.width / 2)
	width.Set(p.width)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
