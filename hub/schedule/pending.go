package schedule

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// pending are the objects that were woken and not decided on since. Time alone wakes none of them: objects that are
// decided on again because a wait is over, or one after the other because a cluster moved by itself, do not count.
type pending struct {
	clock clock.PassiveClock

	mu              sync.Mutex
	queued, running map[key]wake
}

// wake is when an object was first woken, and when it was first decided on without a result.
type wake struct {
	at, failed time.Time
	// single is true if the object itself changed, false for one of many objects that one event woke.
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

// begin is called before a decision reads anything.
func (p *pending) begin(id key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, queued := p.queued[id]; queued {
		delete(p.queued, id)
		p.running[id] = w
	}
}

// single reports whether the object that is being decided on was woken by a change of its own.
func (p *pending) single(id key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[id].single
}

// end is called after a decision; decided is false if it has to be made again.
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

// until is true if an object that was woken until then has not been decided on.
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
