package pace

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/hanse-dev/hanse/answer"
)

// FirstRetry and LongestRetry limit the pauses before a failed key is tried again. Each failure doubles the pause.
const (
	FirstRetry   = 200 * time.Millisecond
	LongestRetry = time.Minute
)

// AnswerWithin is the timeout of one request to an API server.
const AnswerWithin = answer.Timeout

// FreshFor is the maximum age of an uncached read for a withdrawal. Withdrawals at the same time share a read.
const FreshFor = time.Second

// Retries returns the pauses after failures of one controller: 200 ms, doubled up to a minute.
func Retries[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](FirstRetry, LongestRetry)
}
