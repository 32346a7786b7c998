package dispatch

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/hanse-dev/hanse/member"
)

// fightRounds is the number of corrections of a copy after which another client counts as fighting with the hub. Only
// corrections within the last fightRounds*calm (two minutes) count. During a fight, the hub corrects the copy at most
// once every 30 s (calm).
const fightRounds = 4

// fights counts how often the hub has restored fields of copies. Without this count, the hub and another controller
// with a different value would overwrite each other at full speed for ever.
type fights struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	rounds map[types.NamespacedName]*fight
}

type fight struct {
	corrected []time.Time
	over      member.FieldDrift
}

func newFights(c clock.PassiveClock) *fights {
	return &fights{clock: c, rounds: map[types.NamespacedName]*fight{}}
}

// corrected records that the hub has restored a field that another client had changed.
func (f *fights) corrected(key types.NamespacedName, over member.FieldDrift) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rounds[key]
	if r == nil {
		r = &fight{}
		f.rounds[key] = r
	}
	r.over = over
	r.corrected = append(recent(r.corrected, f.clock.Now()), f.clock.Now())
}

// of reports whether another client fights with the hub over the copy (yes). It also returns the field that was
// corrected last, and how long the next correction must wait. yes stays true after the wait, while at least fightRounds
// corrections are recent.
func (f *fights) of(key types.NamespacedName) (over member.FieldDrift, wait time.Duration, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, now := f.rounds[key], f.clock.Now()
	if r == nil {
		return over, 0, false
	}
	if r.corrected = recent(r.corrected, now); len(r.corrected) < fightRounds {
		return over, 0, false
	}
	return r.over, max(0, r.corrected[len(r.corrected)-1].Add(calm).Sub(now)), true
}

func (f *fights) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.rounds, key)
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > fightRounds*calm {
		times = times[1:]
	}
	return times
}
