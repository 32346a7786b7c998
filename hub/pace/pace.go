// Package pace decides when the hub writes to its own API server.
//
// A Pacer limits the number of writes in flight, and divides them among classes of writes. It does not limit the writes
// per second, because the possible number depends on the API server's speed and other load.
//
//   - The width is the number of writes that may be in flight. It grows by one for each round of writes. It shrinks by
//     a third while binding-status writes take twice as long as usual (additive increase, multiplicative decrease; Chiu
//     and Jain 1989). A 429 of any write halves it.
//   - While more writes wait than the width allows, each class gets a share by its weight (start-time fair queueing;
//     Goyal, Vin and Cheng 1996): a lost cluster with thousands of objects does not hold up a single change, and no
//     class starves.
//   - Decisions are written before reports about copies. While first decisions on objects are written, all later
//     classes together have one write in flight.
//   - A kind whose hub objects take long to write, because a webhook of a user is slow, has a limit (TryKind).
//   - A turn is the permission for one write. Try never blocks: it returns a Turn, or nil if no turn is free. After a
//     nil, the Pacer reserves a turn for the caller later, and wakes the caller.
//
// The width is the number of writes that may be in flight. Apart from responses 429, it depends only on the duration of
// writes of binding statuses. The hub makes many of them, and no webhook or conversion of a user can slow them down.
//
// Some writes need no turn, so that load cannot delay them. They include writes of Leases, decisions that remove
// copies, and the deletion of a binding with the removal of its finalizer. Writes for a member cluster, a bundle or a
// hub process need no turn either, because they are few.
package pace

import (
	"math"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// Class is the purpose of a write. A class with a smaller value is more urgent.
type Class int

const (
	// Failure is a write that reports a new failure.
	Failure Class = iota
	// FirstDecision is a write of the decision on a new or changed object. The copies of the object wait for this write.
	FirstDecision
	// FirstResult is a write that first reports the result of a change of an object.
	FirstResult
	// MergedStatus is a write of a hub object's status, after the status on members has changed.
	MergedStatus
	// Rows is a write of a binding's rows after the merged status of its object was written.
	Rows
	// Many is a write for one of many objects affected by one event, such as a lost cluster or an edited policy.
	Many
	classes
)

// weights are the shares of the turns that the classes get while every class has waiting writes. The class Rows then
// gets 6 % of the turns, and Many 3 %.
var weights = [classes]float64{Failure: 8, FirstDecision: 12, FirstResult: 6, MergedStatus: 3, Rows: 2, Many: 1}

// Priority returns the priority of a class in a priority queue. It is 0 for FirstResult, positive for more urgent
// classes and negative for less urgent ones.
func (c Class) Priority() int { return 10 * int(FirstResult-c) }

const (
	// maxWidth is the maximum number of writes in flight. It is the number of workers of hub/report and hub/schedule
	// together.
	maxWidth = 8
	// reservedFor is how long a turn is reserved for a woken caller. If the caller has not taken the turn by then, another
	// caller gets it.
	reservedFor = time.Second
	// AskAgain is how long a waiting caller waits before it calls Try again. It is a safeguard in case that the call of
	// wake had no effect.
	AskAgain = AnswerWithin
)

// Pacer gives turns to the writers of one process. It is safe for concurrent use.
type Pacer struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	width    float64 // number of writes that may be in flight: from 1 to maxWidth
	inFlight [classes]int
	latency  latency
	skip     int       // samples of writes that began before the last cut of the width
	throttle time.Time // time of the last cut by a 429
	line     line
	kinds    map[schema.GroupKind]*kind
}

// New returns a Pacer that allows the maximum number of writes in flight. A nil clock stands for the real clock.
func New(c clock.PassiveClock) *Pacer {
	if c == nil {
		c = clock.RealClock{}
	}
	return &Pacer{clock: c, width: maxWidth, line: newLine(), kinds: map[schema.GroupKind]*kind{}}
}

// Turn is the permission to have one write in flight. Done ends it.
type Turn struct {
	pacer *Pacer
	class Class
	once  sync.Once
}

// Try returns a turn of a class, or nil. key identifies the caller. A caller that gets nil waits. When a turn becomes
// free, the Pacer reserves it for the caller and calls wake, which must queue the caller for another Try. A caller that
// is not woken calls Try again after AskAgain.
func (p *Pacer) Try(c Class, key any, wake func()) *Turn {
	now := p.clock.Now()
	p.mu.Lock()
	if class, ok := p.line.claim(key); ok {
		p.mu.Unlock()
		return &Turn{pacer: p, class: class}
	}
	defer p.grant(now)
	defer p.mu.Unlock()
	if p.isFree(c) && p.line.waiting(c) == 0 {
		p.line.leave(key)
		p.line.charge(c)
		p.inFlight[c]++
		return &Turn{pacer: p, class: c}
	}
	p.line.join(c, key, wake)
	return nil
}

// grant reserves the free turns for waiting callers, and wakes these callers.
func (p *Pacer) grant(now time.Time) {
	p.mu.Lock()
	for _, c := range p.line.lapsed(now) {
		p.inFlight[c]--
	}
	var woken []func()
	for {
		c, ok := p.line.next(p.isFree)
		if !ok {
			break
		}
		p.inFlight[c]++
		woken = append(woken, p.line.reserve(c, now.Add(reservedFor)))
	}
	p.mu.Unlock()
	for _, wake := range woken {
		wake()
	}
}

// isFree reports whether a write of the class may start now. Writes of the class Rows may use at most half of the
// allowed writes in flight, and Many a quarter. A write for a single change then finds a free turn.
func (p *Pacer) isFree(c Class) bool {
	width, deciding := int(p.width), p.inFlight[FirstDecision]+p.line.waiting(FirstDecision) > 0
	switch {
	case c == Failure:
		return p.from(Failure) <= width
	case p.from(Failure) >= width:
		return false
	case c > FirstDecision && deciding && p.from(FirstResult) > 0:
		return false
	case c == Many && p.inFlight[Many] >= max(1, width/4):
		return false
	case c >= Rows:
		return p.from(Rows) < max(1, width/2)
	}
	return true
}

// from returns the number of writes in flight of this class and of all less urgent classes.
func (p *Pacer) from(c Class) (n int) {
	for _, of := range p.inFlight[c:] {
		n += of
	}
	return n
}

// Done ends the turn. Further calls, and calls on nil, have no effect.
func (t *Turn) Done() {
	if t == nil {
		return
	}
	t.once.Do(func() {
		t.pacer.mu.Lock()
		t.pacer.inFlight[t.class]--
		t.pacer.mu.Unlock()
		t.pacer.grant(t.pacer.clock.Now())
	})
}

// Steer adapts the number of allowed writes in flight after each write of a binding's status. The number rises a
// little, or becomes smaller if writes take much longer than usual. took is the duration of this write.
func (p *Pacer) Steer(took time.Duration) {
	defer p.grant(p.clock.Now())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency.add(max(took, 1))
	switch {
	case p.skip > 0:
		p.skip--
	case p.latency.rises():
		p.cut(p.width * 2 / 3)
	default:
		p.width = math.Min(p.width+1/p.width, maxWidth)
	}
	width.Set(p.width)
}

// cut reduces the number of allowed writes in flight. Writes that are in flight now began before the cut, so their
// results do not change the number again.
func (p *Pacer) cut(to float64) {
	p.skip = p.from(Failure)
	p.width = math.Max(to, 1)
}

// Wrap returns a transport that halves the number of allowed writes in flight after each response 429. It is for
// rest.Config.Wrap, because client-go repeats such requests itself and hides the response.
func (p *Pacer) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusTooManyRequests {
			p.throttled()
		}
		return resp, err
	})
}

// throttled halves the number of allowed writes in flight. Several responses 429 within the duration of one write count
// as one.
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
