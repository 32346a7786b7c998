package schedule

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// pending has the objects that an event has queued, and on which no decision has been made since. It leaves out objects
// that were queued because a wait is over, or because the readiness or the taints of a cluster have changed.
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

// begin is called before a decision reads its inputs. It moves the object from the queued objects to those that are
// being decided.
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

// end is called after a decision. If the decision must be repeated (decided is false), the object counts as queued
// again.
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

// until reports whether an object was queued at or before the given time, and no decision has been made on it since. It
// leaves out an object whose decision has failed again and again for maxQuiet (30 s).
func (p *pending) until(then time.Time) bool {
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, all := range []map[key]wake{p.queued, p.running} {
		for _, w := range all {
			if !w.at.After(then) && (w.failed.IsZero() || now.Sub(w.failed) < maxQuiet) {
				return true
			}
		}
	}
	return false
}
