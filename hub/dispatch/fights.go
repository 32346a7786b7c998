package dispatch

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/hanse-dev/hanse/member"
)

// A field that is put back this often within the window is contested; then it is put back at most once in calm.
const (
	fightRounds = 4
	fightWindow = 2 * time.Minute
	fightCalm   = 30 * time.Second
)

// fights counts how often a member object had to be corrected, so that two controllers that want different values do
// not write for ever at full speed.
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

// corrected notes one correction of a drifted field.
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

// wait says how long the next correction has to wait, and over which field the fight is. Zero if there is no fight.
func (f *fights) wait(key types.NamespacedName) (time.Duration, member.FieldDrift) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rounds[key]
	if r == nil {
		return 0, member.FieldDrift{}
	}
	now := f.clock.Now()
	if r.corrected = recent(r.corrected, now); len(r.corrected) == 0 {
		delete(f.rounds, key)
		return 0, member.FieldDrift{}
	}
	if len(r.corrected) < fightRounds {
		return 0, member.FieldDrift{}
	}
	last := r.corrected[len(r.corrected)-1]
	return max(0, last.Add(fightCalm).Sub(now)), r.over
}

// contested says whether there is a fight, and over which field. It holds on while the next correction is not held back
// any more.
func (f *fights) contested(key types.NamespacedName) (over member.FieldDrift, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rounds[key]
	if r == nil {
		return member.FieldDrift{}, false
	}
	r.corrected = recent(r.corrected, f.clock.Now())
	return r.over, len(r.corrected) >= fightRounds
}

func (f *fights) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.rounds, key)
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > fightWindow {
		times = times[1:]
	}
	return times
}
