package report

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The rows of objects are made by the same process and taken by the same API server as the copies that they tell of. In
// a large fan-out whoever waits for the copies waits longer for each row that is written before. So windows that end
// are held while dispatch has a backlog (window.go says how long). In the same way the rows of an object whose status
// was written are held while other objects wait for theirs: that is what people look at. What failed is told at once
// all the same.

// releaseEvery is how often it is looked whether the backlog is gone.
const releaseEvery = 50 * time.Millisecond

// hold says whether the window of a binding, which is due, is held.
func (r *Reporter) hold(key types.NamespacedName) bool {
	backlog := r.opts.Backlog()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil {
		return false
	}
	waited := e.window.waits()
	held := e.window.hold(r.opts.Clock.Now(), load{backlog: backlog})
	r.recountWaiting(waited, e.window.waits())
	if !held {
		return false
	}
	r.keep(key, e)
	return true
}

// postponeRows puts off the write of the binding, if the status of its object has just been written and others wait for
// theirs.
func (r *run) postponeRows() bool {
	if !r.wrote || fails(r.binding.BindingStatus(), &r.after) {
		return false
	}
	e, unlock := r.entry()
	defer unlock()
	if r.reporter.entries[r.key] != e || r.reporter.queue.Len()+len(r.reporter.held) <= smallBacklog {
		return false
	}
	waited := e.window.waits()
	if !e.window.postpone(r.reporter.opts.Clock.Now()) {
		return false
	}
	r.reporter.recountWaiting(waited, e.window.waits())
	e.merged, e.refusal, e.rowsLeft = r.merged, r.refusal, true
	r.reporter.keep(r.key, e)
	return true
}

// keep queues a binding whose window is held. It is called with the lock held.
func (r *Reporter) keep(key types.NamespacedName, e *entry) {
	if len(r.held) == 0 {
		time.AfterFunc(releaseEvery, r.release)
	}
	r.held[key] = e
	r.enqueue(key, e, normalPriority)
}

// release ends what is held while the backlog is small, objects before rows and no more at a time than that the queue
// stays short, and looks again later.
func (r *Reporter) release() {
	backlog := r.opts.Backlog()
	r.mu.Lock()
	defer r.mu.Unlock()
	room := smallBacklog - max(backlog, r.queue.Len())
	for _, rows := range []bool{false, true} {
		for key, e := range r.held {
			if room <= 0 {
				break // thousands may be held, and are looked through only when some can go
			}
			switch {
			case r.entries[key] != e || !e.window.held:
				delete(r.held, key)
			case e.rowsLeft == rows:
				room--
				delete(r.held, key)
				e.window.release(r.opts.Clock.Now())
				r.enqueue(key, e, normalPriority)
			}
		}
	}
	if len(r.held) > 0 && r.ctx.Err() == nil {
		time.AfterFunc(releaseEvery, r.release)
	}
}
