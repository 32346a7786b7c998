package dispatch

import "time"

const (
	// slowCall is more than an API server shall take: its own objective for a write is one second, and a call is up to two
	// requests.
	slowCall = 2 * time.Second
	// callsPerSecond and callsAtOnce bound what one member is asked by one hub. A member on a machine of its own takes
	// more; what it does not take it says with 429.
	callsPerSecond = 300
	callsAtOnce    = 600
)

// pace is how many keys of one member may be at work: additive increase, multiplicative decrease (Chiu and Jain,
// "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks", 1989), and at most
// one decrease per round of calls, as TCP does (RFC 5681). A slow or failed call halves it, down to one; a good one
// adds its share of one, up to the number of workers.
type pace struct {
	most, limit float64
	lowered     time.Time
}

func newPace(most int) pace { return pace{most: float64(most), limit: float64(most)} }

// good notes a call that succeeded in time.
func (p *pace) good() { p.limit = min(p.most, p.limit+1/p.limit) }

// bad notes a call that was slow or failed. One that began before the last decrease says nothing of the new limit.
func (p *pace) bad(began, now time.Time) {
	if began.Before(p.lowered) {
		return
	}
	p.limit, p.lowered = max(1, p.limit/2), now
}

func (p *pace) width() int { return int(p.limit) }
