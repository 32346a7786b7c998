package pace

import (
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// slowFactor defines a slow kind. A write of an object of a slow kind takes more than slowFactor times as long as a
	// write of a binding's status.
	slowFactor = 10
	// slowWrites is the maximum number of writes in flight for all slow kinds together. It is half of the number of
	// workers of hub/report.
	slowWrites = 2
)

// kind has the state of the writes to hub objects of one kind. Webhooks and conversions of users can make these writes
// slow.
type kind struct {
	took  time.Duration // duration of the last write
	began []time.Time   // start times of the writes in flight
	place time.Time     // the time at which the last refused caller tries again
}

// isSlow reports whether the kind's last write took longer than a limit, or whether a write in flight has already taken
// longer.
func (k *kind) isSlow(now time.Time, limit time.Duration) bool {
	return k.took > limit || slices.ContainsFunc(k.began, func(began time.Time) bool { return now.Sub(began) > limit })
}

// KindTurn is the permission for one write to a hub object. It ends with Done.
type KindTurn struct {
	pacer *Pacer
	kind  *kind
	began time.Time
}

// TryKind returns a turn for one write to a hub object of a kind. If the turn is nil, the caller must ask again after
// the returned time. A slow webhook of one kind must not delay the objects of other kinds. A slow kind therefore has at
// most one write in flight, and all slow kinds together have at most two. For all other kinds, TryKind always returns a
// turn. The returned times are spread over up to 10 s, so that the callers do not ask at the same time.
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
			wait = AnswerWithin/2 + rand.N(AnswerWithin/2) // at random, so that the many waiting callers do not try together
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
