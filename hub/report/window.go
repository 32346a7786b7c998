package report

import (
	"time"

	"github.com/hanse-dev/hanse/hub/pace"
)

const (
	// firstWindow is how long a result waits for the next result after a time without changes. It doubles with each write,
	// up to longestWindow, which is also the longest wait of a first result.
	firstWindow   = 50 * time.Millisecond
	longestWindow = time.Second
)

// urgency is how soon a change must be written.
type urgency int

const (
	// whenIdle: a change happened, and results are likely to follow.
	whenIdle urgency = iota
	// result: one result arrived.
	result
	// lastResult: the last expected result arrived.
	lastResult
	// failure: a copy failed in a new way.
	failure
)

// window collects the changes of one binding for one write. The zero value is for a binding without recent writes.
// hub/pace decides when the write of an ended window happens.
type window struct {
	opened time.Time // zero while no change waits
	due    time.Time
	class  pace.Class // class of the most urgent change since it was opened
	// urgent is true after a change that must not wait for further results. results is the time of the first result, or
	// zero before it.
	urgent  bool
	results time.Time

	wrote time.Time     // time of the last write
	width time.Duration // how long a result waits for the next one
}

func (w *window) open() bool { return !w.opened.IsZero() }

// wake opens the window for a change of the class, or moves the end of an open window. It returns whether it opened the
// window, moved its end forward, or made its class more urgent. Clusters report one after the other, so a further
// result moves the end back, at most to longestWindow after the first result.
func (w *window) wake(now time.Time, u urgency, c pace.Class) bool {
	due := now.Add(w.wait(now, u))
	switch {
	case u > result:
		w.urgent = true
	case u == result && !w.urgent && (!w.open() || now.Before(w.due)):
		if w.results.IsZero() {
			w.results = now
		}
		if last := w.results.Add(longestWindow); due.After(last) {
			due = last
		}
		if w.open() && due.After(w.due) {
			w.due = due
		}
	}
	return w.wakeAt(now, due, c)
}

// wakeAt does the same as wake, with a given time for the end of the window.
func (w *window) wakeAt(now, due time.Time, c pace.Class) bool {
	if !w.open() {
		w.opened, w.due, w.class = now, due, c
		return true
	}
	if !due.Before(w.due) && c >= w.class {
		return false
	}
	if due.Before(w.due) {
		w.due = due
	}
	w.class = min(w.class, c)
	return true
}

func (w *window) wait(now time.Time, u urgency) time.Duration {
	if w.wrote.IsZero() || now.Sub(w.wrote) >= 2*longestWindow {
		w.width = firstWindow // a quiet time has passed
	}
	switch u {
	case result:
		return w.width
	case lastResult, failure:
		if w.width < longestWindow {
			return 0
		}
		// The status of an object whose health changes all the time is written once per longestWindow.
		return max(0, longestWindow-now.Sub(w.wrote))
	}
	return longestWindow
}

// shut ends the window and returns how long it was open.
func (w *window) shut(now time.Time) time.Duration {
	if !w.open() {
		return 0
	}
	waited := now.Sub(w.opened)
	w.opened, w.due, w.urgent, w.results = time.Time{}, time.Time{}, false, time.Time{}
	return waited
}

// written records a write. The next window of a binding with frequent changes is twice as long.
func (w *window) written(now time.Time) {
	w.width = min(2*max(w.width, firstWindow), longestWindow)
	w.wrote = now
}
