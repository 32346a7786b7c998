package report

import (
	"time"

	"github.com/hanse-dev/hanse/hub/pace"
)

const (
	// firstWindow is how long the first result of a calm binding waits for others. The window doubles with each write, up
	// to longestWindow.
	firstWindow   = 50 * time.Millisecond
	longestWindow = time.Second
)

// urgency is how soon a change must be written.
type urgency int

const (
	// whenIdle: something changed, and results are likely to follow.
	whenIdle urgency = iota
	// result: one result came.
	result
	// lastResult: the last expected result came.
	lastResult
	// failure: a copy failed in a new way.
	failure
)

// window is the coalescing window of one binding: changes within it meet in one write. The zero value is that of a
// calm binding. Package pace decides when a window that has ended is written.
type window struct {
	opened time.Time // zero while nothing waits
	due    time.Time
	class  pace.Class // of the most urgent change since it was opened

	wrote time.Time     // the last write
	width time.Duration // of the next window while results keep coming
}

func (w *window) open() bool { return !w.opened.IsZero() }

// wake opens the window for a change of the class, or draws its end nearer. It returns whether it did either, or made
// the class more urgent.
func (w *window) wake(now time.Time, u urgency, c pace.Class) bool {
	return w.wakeAt(now, now.Add(w.wait(now, u)), c)
}

// wakeAt is wake with the time at which the window is to end.
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
		w.width = firstWindow // it is calm
	}
	switch u {
	case result:
		return w.width
	case lastResult, failure:
		if w.width < longestWindow {
			return 0
		}
		// An object that flaps is written once in the longest window.
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
	w.opened, w.due = time.Time{}, time.Time{}
	return waited
}

// written notes a write: the next window of a busy binding is twice as long.
func (w *window) written(now time.Time) {
	w.width = min(2*max(w.width, firstWindow), longestWindow)
	w.wrote = now
}
