package dispatch

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// hold keeps keys of a member until a trial, which is a call for one of these keys, succeeds. Only one trial runs at a
// time. The pauses between trials double, unless the member asks for a certain pause. A member has one hold while its
// limit is closed, and one for each namespace that cannot hold objects now.
type hold struct {
	last  member.Outcome // the outcome that caused the hold
	pause time.Duration
	until time.Time // time of the next trial at the earliest
	keys  map[types.NamespacedName]heldKey
	turn  int
	trial types.NamespacedName // key of the queued or running trial; empty if there is none
	timer *time.Timer          // starts the next trial; nil if none is planned
}

type heldKey struct {
	due
	failed bool // the last trial of the key failed, so untried keys come first
	turn   int
}

func newHold() *hold { return &hold{keys: map[types.NamespacedName]heldKey{}} }

// keep adds a key to the hold, until take or release returns the key. failed is true if a call for the key has just
// failed. Such a key is tried last.
func (h *hold) keep(d due, failed bool) {
	k := heldKey{due: d, failed: failed}
	if before, ok := h.keys[d.key]; ok {
		k.priority, k.turn = max(before.priority, d.priority), before.turn
	} else {
		h.turn++
		k.turn = h.turn
	}
	h.keys[d.key] = k
}

// lengthen doubles the pause between trials, up to maxPause, and returns the new pause. A trial is a call that tests
// whether the waiting keys can be written now.
func (h *hold) lengthen(maxPause time.Duration) time.Duration {
	h.pause = min(max(2*h.pause, pace.FirstRetry), maxPause)
	return h.pause
}

// take removes and returns the next key for a trial call. Keys whose trial has not failed come first. Among them, keys
// of higher priority come first, and among equal priorities the oldest key.
func (h *hold) take() (d due, ok bool) {
	var next heldKey
	for _, k := range h.keys {
		if !ok || sooner(k, next) < 0 {
			next, ok = k, true
		}
	}
	delete(h.keys, next.key)
	return next.due, ok
}

// release removes and returns all held keys, in the order in which they are processed.
func (h *hold) release() []due {
	if h.timer != nil {
		h.timer.Stop()
	}
	var out []due
	for _, k := range slices.SortedFunc(maps.Values(h.keys), sooner) {
		out = append(out, k.due)
	}
	clear(h.keys)
	return inOrder(out)
}

func sooner(a, b heldKey) int {
	switch {
	case a.failed != b.failed && b.failed:
		return -1
	case a.failed != b.failed:
		return 1
	case a.priority != b.priority:
		return b.priority - a.priority
	}
	return a.turn - b.turn
}
