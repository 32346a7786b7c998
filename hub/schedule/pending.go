package schedule

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// pending are the objects that an event has queued, and that have not been decided since. An object does not count if
// it was queued because a wait is over, or because the readiness or the taints of a cluster have changed.
type pending struct {
	clock clock.PassiveClock

	mu              sync.Mutex
	queued, running map[key]wake
}

// wake records when an object was first queued, and when a decision on it first had to be repeated.
type wake struct {
	at, failed time.Time
	// single is true if the object was queued because it has changed itself. It is false if one event has queued many
	// objects.
	single bool
}

func (p *pending) add(single bool, ids ...key) {
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queued == nil {
		p.queued, p.running = map[key]wake{}, map[key]wake{}
	}
	for _, id := range ids {
		w, queued := p.queued[id]
		if !queued {
			w.at = now
		}
		w.single = w.single || single
		p.queued[id] = w
	}
}

// begin is called before a decision reads its inputs.
func (p *pending) begin(id key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, queued := p.queued[id]; queued {
		delete(p.queued, id)
		p.running[id] = w
	}
}

// single reports whether the object of the current decision was queued by its own change.
func (p *pending) single(id key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[id].single
}

// end is called after a decision. decided is false if the decision must be repeated.
func (p *pending) end(id key, decided bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, running := p.running[id]
	delete(p.running, id)
	if _, queued := p.queued[id]; !running || decided || queued {
		return
	}
	if w.failed.IsZero() {
		w.failed = p.clock.Now()
	}
	p.queued[id] = w
}

// until reports whether an object was queued before the time then and has not been decided yet.
func (p *pending) until(then time.Time) bool {
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, all := range []map[key]wake{p.queued, p.running} {
		for _, w := range all {
			if !w.at.After(then) && (w.failed.IsZero() || now.Sub(w.failed) < longestQuiet) {
				return true
			}
		}
	}
	return false
}
