package pace

import "time"

// latency has two moving averages of the duration of writes: one adapts fast, the other slowly. Both are zero before
// the first write.
type latency struct{ recent, usual time.Duration }

const (
	// recentWrites and usualWrites tell how slowly the two averages adapt. Each write moves the fast average by
	// 1/recentWrites of the difference between the write's duration and the average, and the slow one by 1/usualWrites.
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

// mean returns the average of the recent writes, or a default before the first write.
func (l *latency) mean() time.Duration {
	if l.recent == 0 {
		return FirstRetry
	}
	return l.recent
}

// rises reports whether recent writes take more than twice as long as usual. On a machine that stays slow, the usual
// duration rises too, and rises becomes false after some time. Fewer writes in flight would not make such a machine
// faster.
func (l *latency) rises() bool { return l.recent > 2*l.usual }
