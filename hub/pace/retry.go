package pace

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/hanse-dev/hanse/internal/answer"
)

// These are the pauses before a failed attempt is repeated. Each further failure doubles the pause.
const (
	// FirstRetry and MaxRetry are the shortest and the longest pause of most loops.
	FirstRetry = 200 * time.Millisecond
	MaxRetry   = time.Minute
	// FirstSlowRetry and MaxSlowRetry are the shortest and the longest pause if only a change outside of the hub can
	// help, such as a change on a member.
	FirstSlowRetry = 30 * time.Second
	MaxSlowRetry   = 5 * time.Minute
)

// RetryAfter is the pause of a loop over one object of the hub, such as a Lease, after a failed request.
const RetryAfter = time.Second

// LookEvery is the interval at which the hub reads what it does not watch, such as ConfigMaps and the list of kinds of
// an API group.
const LookEvery = 30 * time.Second

// RepeatAfter is the minimum time between two similar events, log lines or writes of a status.
const RepeatAfter = time.Minute

// AnswerWithin is the timeout of one request to an API server.
const AnswerWithin = answer.Timeout

// FreshFor is the maximum age of an uncached read that confirms a withdrawal. Several withdrawals within this time
// share a read.
const FreshFor = time.Second

// Retries returns a rate limiter with the pauses of one controller after failures: first 200 ms, doubled by each
// failure, up to a minute.
func Retries[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](FirstRetry, MaxRetry)
}

// Doubled returns the pause after so many earlier failures: first, doubled by each of them, up to the maximum.
func Doubled(first, maximum time.Duration, failures int) time.Duration {
	pause := first
	for ; failures > 0 && pause < maximum; failures-- {
		pause *= 2
	}
	return min(pause, maximum)
}
