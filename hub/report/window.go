package report

import "time"

const (
	// firstWindow is how long the first result of a calm binding waits for others, and longestWindow what the wait grows to
	// while they keep coming.
	firstWindow   = 50 * time.Millisecond
	longestWindow = time.Second
	// calmAfter is how long a binding must have been left unwritten for its window to be short again.
	calmAfter = 2 * longestWindow

	// idleWindow is how long a change that has brought no result yet waits for one, and longestIdle what it grows to with load.
	idleWindow  = time.Second
	longestIdle = 5 * time.Second

	// throttledWindow holds for every binding while the hub's API server asks for fewer requests.
	throttledWindow = 5 * time.Second

	// Every binding that waits adds this much to the windows of those that follow, so that under load results meet in one write.
	perWaiting     = 2 * time.Millisecond
	perWaitingIdle = 10 * time.Millisecond
)

// urgency says how much a wake-up matters.
type urgency int

const (
	// whenIdle: something changed, and results are likely to follow.
	whenIdle urgency = iota
	// soon: there is a result.
	soon
	// atOnce: the last result is there, or something failed.
	atOnce
)

// load is what the bindings share.
type load struct {
	waiting   int // bindings with an open window
	throttled bool
}

// window says when the next write of one binding is due. The zero value is a calm binding.
type window struct {
	opened time.Time // zero while nothing waits
	due    time.Time
	wrote  time.Time     // the last write
	width  time.Duration // of the next window while results keep coming
}

func (w *window) open() bool { return !w.opened.IsZero() }

// wake opens the window or draws its end nearer, and says whether it did either.
func (w *window) wake(now time.Time, u urgency, l load) bool {
	due := now.Add(w.wait(now, u, l))
	if w.open() && !due.Before(w.due) {
		return false
	}
	if !w.open() {
		w.opened = now
	}
	w.due = due
	return true
}

func (w *window) wait(now time.Time, u urgency, l load) time.Duration {
	calm := w.wrote.IsZero() || now.Sub(w.wrote) >= calmAfter
	if calm {
		w.width = firstWindow
	}
	var wait time.Duration
	switch u {
	case whenIdle:
		wait = min(max(idleWindow, time.Duration(l.waiting)*perWaitingIdle), longestIdle)
	case soon:
		wait = max(w.width, min(time.Duration(l.waiting)*perWaiting, longestWindow))
	case atOnce:
		// An object that flaps has used up its right to be written at once.
		if w.width >= longestWindow {
			wait = max(0, longestWindow-now.Sub(w.wrote))
		}
	}
	if l.throttled {
		wait = max(wait, throttledWindow)
	}
	return wait
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

// written notes that something was written: the next window of a busy binding is twice as long.
func (w *window) written(now time.Time) {
	if w.width == 0 {
		w.width = firstWindow
	}
	w.width = min(2*w.width, longestWindow)
	w.wrote = now
}
