package pace

import (
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// slowFactor makes a kind slow: its last write took so many times as long as binding-status writes take.
	slowFactor = 10
	// slowWrites is how many writes of slow kinds may be in flight together: half of report's workers.
	slowWrites = 2
)

// kind has the writes to the hub objects of one kind. These writes pass webhooks and conversions of users.
type kind struct {
	took  time.Duration // by the last write
	began []time.Time   // of the writes in flight
	place time.Time     // when the last refused caller asks again
}

// isSlow reports whether the kind's last write took longer than a limit, or one in flight already has.
func (k *kind) isSlow(now time.Time, limit time.Duration) bool {
	return k.took > limit || slices.ContainsFunc(k.began, func(began time.Time) bool { return now.Sub(began) > limit })
}

// KindTurn is the right to one write to a hub object.
type KindTurn struct {
	pacer *Pacer
	kind  *kind
	began time.Time
}

// TryKind returns a turn for a write to a hub object of a kind, or nil and the time after which the caller asks again.
// A slow webhook of one kind must not hold up the others. So a slow kind has one write in flight, and all slow kinds
// together have two. Other kinds have no limit here. Refused callers ask again one after the other, within 10 s.
func (p *Pacer) TryKind(of schema.GroupKind) (*KindTurn, time.Duration) {
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[of]
	if k == nil {
		k = &kind{}
		p.kinds[of] = k
	}
	limit := slowFactor * p.latency.mean()
	if k.isSlow(now, limit) && (len(k.began) > 0 || p.slowInFlight(now, limit) >= slowWrites) {
		wait := max(k.place.Sub(now), 0) + max(k.took, limit)
		if wait > AnswerWithin {
			wait = AnswerWithin/2 + rand.N(AnswerWithin/2) // many wait: they must not ask together
		}
		k.place = now.Add(wait)
		return nil, wait
	}
	k.began = append(k.began, now)
	return &KindTurn{pacer: p, kind: k, began: now}, 0
}

// slowInFlight is the number of writes of slow kinds in flight.
func (p *Pacer) slowInFlight(now time.Time, limit time.Duration) int {
	n := 0
	for _, k := range p.kinds {
		if k.isSlow(now, limit) {
			n += len(k.began)
		}
	}
	return n
}

// Done gives the turn back.
func (t *KindTurn) Done() {
	now := t.pacer.clock.Now()
	t.pacer.mu.Lock()
	defer t.pacer.mu.Unlock()
	i := slices.Index(t.kind.began, t.began)
	t.kind.began = slices.Delete(t.kind.began, i, i+1)
	t.kind.took = now.Sub(t.began)
}
