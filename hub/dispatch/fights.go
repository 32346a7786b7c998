package dispatch

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/hanse-dev/hanse/member"
)

// fightRounds corrections of a field are a fight, if they came faster than once in calm. Then the field is put back at
// most once in calm.
const fightRounds = 4

// fights counts how often a copy had to be corrected, so that two controllers that want different values do not write
// for ever at full speed.
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

// wait returns how long the next correction has to wait, and the field of the fight. It is zero if there is no fight.
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
	return max(0, last.Add(calm).Sub(now)), r.over
}

// contested reports whether there is a fight, and over which field. A fight lasts until its corrections are old, also
// when the next correction need not wait any more.
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
	for len(times) > 0 && now.Sub(times[0]) > fightRounds*calm {
		times = times[1:]
	}
	return times
}
