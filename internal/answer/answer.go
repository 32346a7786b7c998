// Package answer limits the size of each response from an API server. It also limits the memory for the responses that
// are read at the same time.
//
// A member cluster may be hostile: three KiB of gzip can become gigabytes of JSON, and three bytes of JSON can become a
// KiB of Go values. This package therefore limits the bytes before and after unpacking, and counts JSON values while
// they are read. A list that may be long is read object by object. A response that exceeds one of its bounds fails with
// a TooLargeError. A part of a response is never used as if it were the whole.
//
// The package estimates the memory of each response. It charges this amount to the budget of the server: the amount
// counts as used until the reader has finished. If a response is larger than a usual page of a list, the part beyond
// that size is also charged to one budget of the whole process. A response of usual size therefore never waits for
// another server.
package answer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Timeout is the maximum time for one response of an API server, including its body.
const Timeout = 10 * time.Second

// MaxPause is the longest pause that an API server may request by the header Retry-After.
const MaxPause = 5 * time.Minute

// Bounds are the maximum sizes of one response, or of one event of a watch.
type Bounds struct {
	Bytes  int64 // after decompression; the compressed size has the same limit
	Values int64 // approximate number of JSON values: objects, lists, and the items between commas
}

// These are the default bounds of responses.
var (
	// Whole has the bounds of a response that is decoded as a whole, such as an object or a page of a list.
	Whole = Bounds{Bytes: 16 << 20, Values: 1 << 18}
	// Event has the bounds of each event of a watch. API servers accept no object of more than 3 MiB. A
	// CustomResourceDefinition of that size has about 200,000 values.
	Event = Bounds{Bytes: 4 << 20, Values: 1 << 18}
)

// TooLargeError means that a response exceeds one of its bounds.
type TooLargeError struct {
	What  string // what is too large, such as "the answer"
	Bound string // the limit, such as "16 MiB"
}

// Error implements error.
func (e *TooLargeError) Error() string { return fmt.Sprintf("%s is larger than %s", e.What, e.Bound) }

// IsTooLarge reports whether an error means that a response exceeded one of its bounds.
func IsTooLarge(err error) bool {
	var large *TooLargeError
	return errors.As(err, &large)
}

func tooManyBytes(what string, bound int64) error {
	text := fmt.Sprintf("%d bytes", bound)
	switch {
	case bound >= 1<<20:
		text = fmt.Sprintf("%d MiB", bound>>20)
	case bound >= 1<<10:
		text = fmt.Sprintf("%d KiB", bound>>10)
	}
	return &TooLargeError{What: what, Bound: text}
}

func tooManyValues(what string, bound int64) error {
	return &TooLargeError{What: what, Bound: fmt.Sprintf("%d JSON values", bound)}
}

type contextKey int

const (
	boundsKey contextKey = iota
	accountKey
)

// Streamed returns a context for requests whose responses are read object by object, so that no object stays in memory.
// bytes is the maximum size of such a response. Its JSON values are not counted, and its memory is not charged to a
// budget.
func Streamed(ctx context.Context, bytes int64) context.Context {
	return Within(ctx, Bounds{Bytes: bytes})
}

// Within returns a context for requests whose responses must not exceed the given bounds. If bounds.Values is 0, JSON
// values are not counted, and no memory is charged to a budget.
func Within(ctx context.Context, bounds Bounds) context.Context {
	return context.WithValue(ctx, boundsKey, bounds)
}

// Keep returns a context for requests whose decoded responses the caller keeps in memory. The memory of these responses
// is charged to the budgets until the caller calls done. Without Keep, the charge ends when the body of a response is
// closed. Clients close the body before they decode it.
func Keep(ctx context.Context) (kept context.Context, done func()) {
	a := &account{}
	return context.WithValue(ctx, accountKey, a), a.done
}
