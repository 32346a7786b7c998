package dispatch

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

const (
	// slowCall is the duration above which a call counts as slow. API servers aim at one second for a write, and a call
	// makes up to two requests.
	slowCall = 2 * time.Second
	// failuresInARow is the number of consecutive failed calls after which the limit becomes zero (closed), if no call
	// succeeded within the last slowCall. If a member fails only some calls, its limit becomes lower, but not zero.
	failuresInARow = 5
)

// limit is the maximum number of concurrent calls of one member. It uses additive increase and multiplicative decrease
// (Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks",
// 1989). A slow or failed call halves the limit. Calls that began before the limit was halved do not halve it again, as
// in TCP (RFC 5681). A good call adds 1/limit, up to the number of workers.
//
// A limit of zero is called closed: the member fails all calls, or has asked for a pause. The hub then makes only
// trials: single calls, with a pause before each. The first success sets the limit to one.
type limit struct {
	maxWidth, width float64
	lowered         time.Time // time of the last cut of width; slow calls that began earlier do not cut again
	failures        int       // consecutive failures
	good            time.Time // time of the last answer without a fault
	failing         map[schema.GroupKind]bool
}

func newLimit(maxWidth int) limit {
	return limit{maxWidth: float64(maxWidth), width: float64(maxWidth), failing: map[schema.GroupKind]bool{}}
}

// open raises the limit of concurrent calls to at least one, and forgets all failures so far.
func (l *limit) open(now time.Time) {
	l.failures, l.width, l.lowered = 0, max(1, l.width), now
	clear(l.failing)
}

// succeeded records a call that the member answered without a fault.
func (l *limit) succeeded(began, now time.Time) {
	l.good, l.failures = now, 0
	clear(l.failing)
	switch {
	case now.Sub(began) > slowCall:
		l.lower(began, now)
	case l.width < 1:
		l.width = 1
	default:
		l.width = min(l.maxWidth, l.width+1/l.width)
	}
}

// failed records a call that failed because of the member. It reports whether the limit is now zero (closed).
func (l *limit) failed(kind schema.GroupKind, began, now time.Time, throttled bool) bool {
	l.failures++
	l.failing[kind] = true
	if throttled || l.width < 1 || (l.failures >= failuresInARow && now.Sub(l.good) > slowCall) {
		l.width, l.lowered = 0, now
		return true
	}
	l.lower(began, now)
	return false
}

func (l *limit) lower(began, now time.Time) {
	if began.Before(l.lowered) {
		return
	}
	l.width, l.lowered = max(1, l.width/2), now
}

// isFault reports whether the member is the cause of a failed call, and not the object. The member has not answered, or
// has answered with a server error or 429. A failing webhook does not count, because API servers call it only for some
// objects.
func isFault(o member.Outcome) bool {
	switch o.Reason {
	case hubv1.ReasonUnreachable, hubv1.ReasonThrottled:
		return true
	case hubv1.ReasonServerError:
		return !strings.Contains(o.Message, "webhook")
	}
	return false
}
