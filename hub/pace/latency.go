package pace

import "time"

// latency has two moving means of the duration of writes. The zero value has seen no write.
type latency struct{ recent, usual time.Duration }

const (
	// recentWrites and usualWrites are the numbers of writes over which the two means adapt.
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

// mean returns the mean of the recent writes, or a default before the first one.
func (l *latency) mean() time.Duration {
	if l.recent == 0 {
		return FirstRetry
	}
	return l.recent
}

// rises reports whether recent writes take more than twice as long as usual. If a machine stays slow, slow writes
// become usual, because fewer writes in flight would not make the machine faster.
func (l *latency) rises() bool { return l.recent > 2*l.usual }
