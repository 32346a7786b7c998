package pace

import (
	"container/list"
	"time"
)

// line has the callers that wait for a turn, one queue for each class of writes. It is not safe for concurrent use.
// Start-time fair queueing, an algorithm with weights, decides which class gets the next turn.
type line struct {
	callers  map[any]*caller
	classes  [classes]*list.List // lists of *caller
	reserved []*caller           // sorted by until; may have callers that already took their turn
	// start has a number for the next turn of each class of writes. now is the number of the last turn. The class with the
	// lowest number gets the next turn.
	start [classes]float64
	now   float64
}

// caller waits for a turn of a class, or has a reserved turn of the class.
type caller struct {
	key   any
	class Class
	wake  func()
	place *list.Element // nil while a turn is reserved
	until time.Time     // end of the reservation
}

func newLine() line {
	l := line{callers: map[any]*caller{}}
	for c := range l.classes {
		l.classes[c] = list.New()
	}
	return l
}

func (l *line) waiting(c Class) int { return l.classes[c].Len() }

// claim takes the turn that is reserved for a caller, and returns the class of this turn. ok is false if the caller has
// no reservation.
func (l *line) claim(key any) (c Class, ok bool) {
	w := l.callers[key]
	if w == nil || w.place != nil {
		return 0, false
	}
	delete(l.callers, key)
	return w.class, true
}

// join adds a caller, which wants to write, to the end of the queue of a class of writes. A caller that already waits
// in this class or in a more urgent class keeps its place.
func (l *line) join(c Class, key any, wake func()) {
	if w := l.callers[key]; w != nil && w.class <= c {
		w.wake = wake
		return
	}
	l.leave(key)
	if l.waiting(c) == 0 {
		l.start[c] = max(l.start[c], l.now) // a class saves up no turns while it has no callers
	}
	w := &caller{key: key, class: c, wake: wake}
	w.place = l.classes[c].PushBack(w)
	l.callers[key] = w
}

// leave removes a caller that waits for the permission to write.
func (l *line) leave(key any) {
	if w := l.callers[key]; w != nil && w.place != nil {
		l.classes[w.class].Remove(w.place)
		delete(l.callers, key)
	}
}

// charge counts a turn of a class. A class with a small weight waits longer for its next turn.
func (l *line) charge(c Class) {
	l.now = max(l.now, l.start[c])
	l.start[c] = l.now + 1/weights[c]
}

// next returns the class whose caller gets the next turn. isFree tells whether a class may write now. ok is false if no
// caller waits, or no class with a waiting caller may write.
func (l *line) next(isFree func(Class) bool) (next Class, ok bool) {
	for c := range classes {
		if l.waiting(c) > 0 && (!ok || l.start[c] < l.start[next]) && isFree(c) {
			next, ok = c, true
		}
	}
	return next, ok
}

// reserve reserves a turn for the first caller of a class. It returns the function that wakes this caller.
func (l *line) reserve(c Class, until time.Time) (wake func()) {
	l.charge(c)
	first := l.classes[c].Front()
	w := l.classes[c].Remove(first).(*caller)
	w.place, w.until = nil, until
	l.reserved = append(l.reserved, w)
	return w.wake
}

// lapsed ends the reservations of turns whose time is over. It returns the classes of these reservations.
func (l *line) lapsed(now time.Time) (out []Class) {
	for len(l.reserved) > 0 {
		w := l.reserved[0]
		claimed := l.callers[w.key] != w
		if !claimed && now.Before(w.until) {
			break
		}
		l.reserved = l.reserved[1:]
		if !claimed {
			delete(l.callers, w.key)
			out = append(out, w.class)
		}
	}
	return out
}
