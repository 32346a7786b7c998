package pace

import "time"

// latency are two moving means of how long writes take. The zero value has seen no write.
type latency struct{ recent, usual time.Duration }

const (
	// recentWrites and usualWrites are the numbers of writes in which the means follow.
	recentWrites = 8
	usualWrites  = 64
)

func (l *latency) add(took time.Duration) {
	if l.recent == 0 {
		l.recent, l.usual = took, took
	}
	l.recent += (took - l.recent) / recentWrites
	l.usual += (took - l.usual) / usualWrites
}

// mean is that of the recent writes, and a guess before the first one.
func (l *latency) mean() time.Duration {
	if l.recent == 0 {
		return FirstRetry
	}
	return l.recent
}

// rises reports whether recent writes take twice as long as usual. A machine that stays slow becomes usual: fewer
// writes in flight would not make it faster.
func (l *latency) rises() bool { return l.recent > 2*l.usual }
