package dispatch

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

const (
	// failuresInARow open the circuit if the last good answer is more than slowCall ago. Of a member that fails a share of
	// its calls only the pace is lowered.
	failuresInARow = 5
	pauseFirst     = 200 * time.Millisecond
	pauseMost      = 60 * time.Second
)

// circuit keeps calls from a member that fails all of them, or asks for a pause: while it is open, keys are held and
// one call at a time is tried, after growing pauses or when the member said. The first that succeeds closes it and lets
// all go on.
//
// A kind that has not failed yet is tried at once all the same: what fails may be one kind's doing.
type circuit struct {
	failures int       // in a row
	good     time.Time // the last answer that was none
	open     bool
	opened   time.Time // when it was opened, or a trial failed: what began before then says nothing new
	until    time.Time // no trial before
	pause    time.Duration
	last     member.Outcome // that opened it
	kinds    map[schema.GroupKind]bool
	trying   bool // a trial is under way

	waiting
}

// waiting are the keys that wait until one of them, which is tried, succeeds.
type waiting struct {
	held map[types.NamespacedName]heldKey
	turn int
	next *heldKey // queued to be the next trial
}

// heldKey is a key that waits for the circuit to close, or to be tried.
type heldKey struct {
	due
	failed bool // it was tried: others go first
	turn   int
}

// enter says whether a key may call the member now.
func (c *circuit) enter(kind schema.GroupKind, now time.Time) bool {
	if !c.open {
		return true
	}
	if c.trying || (now.Before(c.until) && (c.last.Reason == hubv1.ReasonThrottled || c.kinds[kind])) {
		return false
	}
	c.trying = true
	return true
}

// leave takes the outcome of a call, and says whether the key is to be held and whether those that are held may go on.
func (c *circuit) leave(kind schema.GroupKind, began, now time.Time, o member.Outcome) (hold, release bool) {
	if began.Before(c.opened) {
		return false, false
	}
	if !isFault(o) {
		release = c.open
		c.reset()
		c.good = now
		return false, release
	}
	c.failures++
	if c.kinds == nil {
		c.kinds = map[schema.GroupKind]bool{}
	}
	c.kinds[kind] = true
	switch {
	case o.Reason == hubv1.ReasonThrottled:
		c.until = now.Add(jitter(max(o.After, pauseFirst)))
	case c.open || c.failures >= failuresInARow && now.Sub(c.good) > slowCall:
		c.pause = min(max(2*c.pause, pauseFirst), pauseMost)
		c.until = now.Add(jitter(max(c.pause, o.After)))
	default:
		return false, false
	}
	c.open, c.trying, c.opened, c.last = true, false, now, o
	return true, false
}

// reset closes it.
func (c *circuit) reset() {
	c.failures, c.open, c.trying, c.pause = 0, false, false, 0
	clear(c.kinds)
}

// hold keeps a key until it is taken or released.
func (w *waiting) hold(k heldKey) {
	if h, ok := w.held[k.key]; ok {
		k.priority, k.turn = max(h.priority, k.priority), h.turn
	} else {
		w.turn++
		k.turn = w.turn
	}
	if w.held == nil {
		w.held = map[types.NamespacedName]heldKey{}
	}
	w.held[k.key] = k
}

// take returns the held key that is to be tried next: one that did not fail before one that did, then by priority, then
// the oldest.
func (w *waiting) take() (k heldKey, ok bool) {
	for _, h := range w.held {
		if !ok || sooner(h, k) {
			k, ok = h, true
		}
	}
	delete(w.held, k.key)
	return k, ok
}

func sooner(a, b heldKey) bool {
	switch {
	case a.failed != b.failed:
		return b.failed
	case a.priority != b.priority:
		return a.priority > b.priority
	}
	return a.turn < b.turn
}

// isNext says whether the key is queued to be tried.
func (w *waiting) isNext(key types.NamespacedName) bool { return w.next != nil && w.next.key == key }

// tried notes that the work on a key is done.
func (w *waiting) tried(key types.NamespacedName) {
	if w.isNext(key) {
		w.next = nil
	}
}

// fresh says whether a key is held that was not tried yet.
func (w *waiting) fresh() bool {
	for _, h := range w.held {
		if !h.failed {
			return true
		}
	}
	return false
}

// release returns all that is held, in the order in which it is to go on.
func (w *waiting) release() []due {
	keys := slices.SortedFunc(maps.Values(w.held), func(a, b heldKey) int {
		if sooner(a, b) {
			return -1
		}
		return 1
	})
	w.held, w.next = nil, nil
	out := make([]due, 0, len(keys))
	for _, k := range keys {
		out = append(out, k.due)
	}
	return inOrder(out)
}

// isFault says that an outcome tells of the member rather than of the object: no answer, a server error, or too many
// requests. A webhook that fails is no fault of the member's: it is called for some objects only.
func isFault(o member.Outcome) bool {
	switch o.Reason {
	case hubv1.ReasonUnreachable, hubv1.ReasonThrottled:
		return true
	case hubv1.ReasonServerError:
		return !strings.Contains(o.Message, "webhook")
	}
	return false
}

// heldMessage is the same for as long as the circuit is open: each try would change it otherwise, and with it every
// row.
func (c *circuit) heldMessage() string {
	if c.last.Reason == hubv1.ReasonThrottled {
		return "waits with all writes to the cluster until it takes requests again: " + c.last.Message
	}
	return "waits with all writes to the cluster, of which the last ones failed; one is tried at a time, the next within 60 s: " + c.last.Message
}
