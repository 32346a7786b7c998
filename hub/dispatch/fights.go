package dispatch

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hanse-dev/hanse/member"
)

// fightRounds is the number of corrections of a copy after which another client counts as fighting with the hub. Only
// corrections within the last fightRounds*calm (two minutes) count. During a fight, the hub corrects the copy at most
// once every 30 s (calm).
const fightRounds = 4

// fight counts how often the hub has restored fields of a copy. Without this count, the hub and another controller with
// a different value would overwrite each other at full speed for ever.
type fight struct {
	corrected []time.Time
	over      member.FieldDrift
}

// corrected records that the hub has restored a field that another client had changed.
func (c *copies) corrected(key types.NamespacedName, over member.FieldDrift) {
	c.update(key, func(x extra) extra {
		now := c.clock.Now()
		var before []time.Time
		if x.fight != nil {
			before = recent(x.fight.corrected, now)
		}
		x.fight = &fight{corrected: append(before, now), over: over}
		return x
	})
}

// fought reports whether another client fights with the hub over the copy (yes). It also returns the field that was
// corrected last, and how long the next correction must wait. yes stays true after the wait, while at least fightRounds
// corrections are recent.
func (c *copies) fought(key types.NamespacedName) (over member.FieldDrift, wait time.Duration, yes bool) {
	c.update(key, func(x extra) extra {
		if x.fight == nil {
			return x
		}
		now := c.clock.Now()
		x.fight.corrected = recent(x.fight.corrected, now)
		switch n := len(x.fight.corrected); {
		case n == 0:
			x.fight = nil
		case n >= fightRounds:
			over, wait, yes = x.fight.over, max(0, x.fight.corrected[n-1].Add(calm).Sub(now)), true
		}
		return x
	})
	return over, wait, yes
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > fightRounds*calm {
		times = times[1:]
	}
	return times
}
