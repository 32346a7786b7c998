package report

import (
	"time"

	"github.com/hanse-dev/hanse/hub/pace"
)

const (
	// firstWindow is how long the first result after a quiet time waits for further results, so that one write covers
	// them. Each write doubles the wait of the next results, up to maxWindow. A first result never waits for longer
	// than maxWindow.
	firstWindow = 50 * time.Millisecond
	maxWindow   = time.Second
)

// urgency says how soon a change must be written.
type urgency int

const (
	// whenIdle means that something has changed, and results are expected soon. The write waits for these results, but at
	// most for maxWindow.
	whenIdle urgency = iota
	// result means that a cluster has reported its result, and results of other clusters are still expected. The write
	// waits a little for them.
	result
	// lastResult means that the last expected result of a cluster has arrived, so that the write need not wait for
	// results.
	lastResult
	// failure means that a copy has a new problem. The write does not wait for further results.
	failure
)

// window collects the changes of one binding into one write. It opens with the first unwritten change. When it has
// ended, hub/pace decides when the status is written. The zero value is a closed window.
type window struct {
	opened time.Time // when the first unwritten change came; zero if there is none
	due    time.Time
	class  pace.Class // class of the most urgent change since the window was opened
	// urgent is true after a change that must not wait for further results of clusters. results is the time of the first
	// such result since the first unwritten change, or zero.
	urgent  bool
	results time.Time

	wrote time.Time     // time of the last write
	width time.Duration // how long a result waits for the next result
}

func (w *window) open() bool { return !w.opened.IsZero() }

// wake opens the window, or moves the end of the window. It returns true if the window is new, ends earlier, or has a
// more urgent class. Clusters report one after the other. Each further result therefore makes the window end later, but
// at most maxWindow after the first result.
func (w *window) wake(now time.Time, u urgency, c pace.Class) bool {
	due := now.Add(w.wait(now, u))
	switch {
	case u > result:
		w.urgent = true
	case u == result && !w.urgent && (!w.open() || now.Before(w.due)):
		if w.results.IsZero() {
			w.results = now
		}
		if last := w.results.Add(maxWindow); due.After(last) {
			due = last
		}
		if w.open() && due.After(w.due) {
			w.due = due
		}
	}
	return w.wakeAt(now, due, c)
}

// wakeAt opens the window. Unlike for wake, the caller sets the end of the window (due).
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
	if w.wrote.IsZero() || now.Sub(w.wrote) >= 2*maxWindow {
		w.width = firstWindow // the binding was quiet for a while
	}
	switch u {
	case result:
		return w.width
	case lastResult, failure:
		if w.width < maxWindow {
			return 0
		}
		// If the state of copies changes again and again, the status of the object is written at most once in maxWindow.
		return max(0, maxWindow-now.Sub(w.wrote))
	}
	return maxWindow
}

// shut closes the window. It returns how long the window was open.
func (w *window) shut(now time.Time) time.Duration {
	if !w.open() {
		return 0
	}
	waited := now.Sub(w.opened)
	w.opened, w.due, w.urgent, w.results = time.Time{}, time.Time{}, false, time.Time{}
	return waited
}

// written records a write. It doubles how long the next results wait, so that the status of a busy binding is written
// less often.
func (w *window) written(now time.Time) {
	w.width = min(2*max(w.width, firstWindow), maxWindow)
	w.wrote = now
}
