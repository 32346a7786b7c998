package pace

import (
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// slowFactor is how many times longer than a write of a binding's status a write of a kind must take to make the kind
	// slow.
	slowFactor = 10
	// slowWrites is the maximum number of writes of all slow kinds in flight. It is half of the workers of hub/report.
	slowWrites = 2
)

// kind has the state of the writes to hub objects of one kind. Webhooks and conversions of users can make these writes
// slow.
type kind struct {
	took  time.Duration // by the last write
	began []time.Time   // of the writes in flight
	place time.Time     // when the last refused caller asks again
}

// isSlow reports whether the kind's last write took longer than a limit, or whether a write in flight has already taken
// longer.
func (k *kind) isSlow(now time.Time, limit time.Duration) bool {
	return k.took > limit || slices.ContainsFunc(k.began, func(began time.Time) bool { return now.Sub(began) > limit })
}

// KindTurn is the right to one write to a hub object.
type KindTurn struct {
	pacer *Pacer
	kind  *kind
	began time.Time
}

// TryKind returns a turn for a write to a hub object of a kind. If it returns nil, the caller must ask again after the
// returned time. A slow webhook of one kind must not delay the objects of other kinds. A slow kind therefore has at
// most one write in flight, and all slow kinds together have two. Other kinds have no limit here. The times for callers
// that must ask again follow one after the other, within 10 s.
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

// slowInFlight returns the number of writes of slow kinds in flight.
func (p *Pacer) slowInFlight(now time.Time, limit time.Duration) int {
	n := 0
	for _, k := range p.kinds {
		if k.isSlow(now, limit) {
			n += len(k.began)
		}
	}
	return n
}

// Done ends the turn.
func (t *KindTurn) Done() {
	now := t.pacer.clock.Now()
	t.pacer.mu.Lock()
	defer t.pacer.mu.Unlock()
	i := slices.Index(t.kind.began, t.began)
	t.kind.began = slices.Delete(t.kind.began, i, i+1)
	t.kind.took = now.Sub(t.began)
}
