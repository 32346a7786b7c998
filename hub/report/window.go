package report

import "time"

const (
	// firstWindow is how long the first result of a calm binding waits for others, and longestWindow what the wait grows
	// to while they keep coming.
	firstWindow   = 50 * time.Millisecond
	longestWindow = time.Second
	// calmAfter is how long a binding must have been left unwritten for its window to be short again.
	calmAfter = 2 * longestWindow

	// idleWindow is how long a change that has brought no result yet waits for one, and longestIdle what it grows to with
	// load.
	idleWindow  = time.Second
	longestIdle = 5 * time.Second

	// throttledWindow holds for every binding while the hub's API server asks for fewer requests.
	throttledWindow = 5 * time.Second

	// While the copies of an object change on one cluster after the other, each of them puts off the end of the window
	// until nothing has come for this long, but not beyond longestWindow and perFollower for each cluster, nor
	// longestFollowing: what thirty clusters say takes longer to come.
	followingWindow  = 200 * time.Millisecond
	perFollower      = 100 * time.Millisecond
	longestFollowing = 5 * time.Second

	// Every binding that waits adds this much to the windows of those that follow, perWaiting for each of their clusters,
	// so that under load results meet in one write.
	perWaiting     = time.Millisecond
	perWaitingIdle = 10 * time.Millisecond

	// One event may concern all bindings of a cluster: its link is lost, or back, and scheduling says something else of
	// each. So that their rows take little from whoever works on single objects meanwhile, and those of clusters that are
	// lost together meet in one write, they take turns, perTurn apart, or less if the last would wait for more than
	// longestTurns. That the cluster is away is said at once by its MemberCluster, by rows of objects that change, and by
	// all merged statuses that are written.
	perTurn      = 500 * time.Millisecond
	longestTurns = 10 * time.Minute

	// When a member stops answering, all objects that were on their way to it learn at one moment that nobody knows what
	// became of them. Those of which nothing else is to be told take turns of their own: their users wait.
	perUnsure      = 100 * time.Millisecond
	longestUnsures = 10 * time.Second

	// A window that would end while more than this many changes wait to be brought to members is held: the copies go
	// first, and rows that are written later tell more. So are the rows of an object whose status was written while more
	// than this many other objects wait for theirs. heldAtMost is for all that leads to one write.
	smallBacklog = 32
	heldAtMost   = 10 * time.Second
)

// urgency says how much a wake-up matters.
type urgency int

const (
	// whenIdle: something changed, and results are likely to follow.
	whenIdle urgency = iota
	// soon: there is a result.
	soon
	// following: there is one more of several results that come together.
	following
	// lastResult: the last result is there.
	lastResult
	// atOnce: something failed. This is never held.
	atOnce
)

// load is what the bindings share.
type load struct {
	waiting   int // bindings that wait for their window to end
	backlog   int // changes that wait to be brought to members
	throttled bool
	clusters  int // of the binding itself
}

// room is how long a result waits for others, so that each of the bindings that wait gets its turn.
func (l load) room() time.Duration {
	return min(time.Duration(l.waiting*l.clusters)*perWaiting, longestWindow)
}

// window says when the next write of one binding is due. The zero value is a calm binding.
type window struct {
	opened time.Time // zero while nothing waits
	due    time.Time
	wrote  time.Time     // the last write
	width  time.Duration // of the next window while results keep coming

	urgent    bool      // something failed since it was opened
	complete  bool      // the last result is there
	extended  bool      // its end was put off
	inTurn    bool      // nothing but an event of many bindings opened it: it is no load that others make room for
	held      bool      // until due, or until it is released
	heldUntil time.Time // zero if nothing was held since that was last told
	released  bool      // it was held, and nothing was told since
}

func (w *window) open() bool { return !w.opened.IsZero() }

func (w *window) waits() bool { return w.open() && !w.inTurn }

// wake opens the window or draws its end nearer, and says whether it did either.
func (w *window) wake(now time.Time, u urgency, l load) bool {
	w.urgent = w.urgent || u == atOnce
	w.complete = w.complete || u == lastResult
	if w.held && !w.urgent {
		return false
	}
	w.inTurn = false
	if u == following && w.open() {
		w.extend(now, l)
		return false
	}
	return w.dueBy(now, now.Add(w.wait(now, u, l)))
}

// extend puts off the end of the window, because more is likely to come of other clusters.
func (w *window) extend(now time.Time, l load) {
	due := now.Add(max(followingWindow, l.room()))
	if latest := w.opened.Add(min(longestWindow+time.Duration(l.clusters)*perFollower, longestFollowing)); due.After(latest) {
		due = latest
	}
	if due.After(w.due) && !w.urgent && !w.complete {
		w.due, w.extended = due, true
	}
}

// wakeAfter is wake for one of many bindings that one event concerns, when it is its turn.
func (w *window) wakeAfter(now time.Time, d time.Duration) bool {
	alone := !w.waits()
	if w.held || !w.dueBy(now, now.Add(d)) {
		return false
	}
	w.inTurn = alone
	return true
}

// turns are when bindings are written that one event woke: per apart, but none later than longest from now. The zero
// value has them all at once.
type turns struct {
	per, longest time.Duration
	last         time.Time // that was given
}

// after is the next one: at once if the last is long past. When it would be too far away they begin anew, between those
// that were given.
func (t turns) after(now time.Time) time.Time {
	next := t.last.Add(t.per)
	if next.Before(now) || next.Sub(now) > t.longest {
		return now
	}
	return next
}

// dueBy opens the window or draws its end nearer, and says whether it did either.
func (w *window) dueBy(now, due time.Time) bool {
	if w.open() && !due.Before(w.due) {
		return false
	}
	if !w.open() {
		w.opened = now
	}
	w.due, w.held, w.extended = due, false, false
	return true
}

// hold puts off the end of a window that is due, and says whether it did.
func (w *window) hold(now time.Time, l load) bool {
	return w.open() && !w.released && l.backlog > smallBacklog && w.postpone(now)
}

// postpone opens the window, if it is not, for as long as it may be held, and says whether it did.
func (w *window) postpone(now time.Time) bool {
	if w.urgent {
		return false
	}
	if w.heldUntil.IsZero() {
		w.heldUntil = now.Add(heldAtMost)
	}
	if !now.Before(w.heldUntil) {
		return false
	}
	if !w.open() {
		w.opened = now
	}
	w.due, w.held, w.inTurn = w.heldUntil, true, false
	return true
}

// release ends the wait of a window that is held. It is not held for a backlog again before all has been told.
func (w *window) release(now time.Time) {
	if w.held {
		w.due, w.held, w.released = now, false, true
	}
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
	case soon, following:
		wait = max(w.width, l.room())
	case lastResult, atOnce:
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

// ended notes that all that was known has been told: what comes now may be held anew.
func (w *window) ended() { w.heldUntil, w.released = time.Time{}, false }

// shut ends the window and returns how long it was open.
func (w *window) shut(now time.Time) time.Duration {
	if !w.open() {
		return 0
	}
	waited := now.Sub(w.opened)
	w.opened, w.due = time.Time{}, time.Time{}
	w.urgent, w.held, w.complete, w.extended, w.inTurn = false, false, false, false, false
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
