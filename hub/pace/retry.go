package pace

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	// firstRetry and longestRetry are the pauses before a failed key is tried again: each failure doubles the pause.
	firstRetry   = 200 * time.Millisecond
	longestRetry = time.Minute
)

// Retries returns the pauses after failures of one controller: 200 ms, doubled up to a minute.
func Retries[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, longestRetry)
}
