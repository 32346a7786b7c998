// Package answer limits the size of responses from API servers, and the memory of the responses of all API servers
// together.
//
// A member cluster may be hostile: three KiB of gzip can become gigabytes of JSON, and three bytes of JSON can become a
// KiB of Go values. This package therefore limits bytes before and after unpacking, counts JSON values while it reads,
// and reads a list that may be long object by object. A response that exceeds its bounds fails with a TooLargeError. A
// part of a response is never used as if it were the whole.
//
// The memory of a response is estimated, and charged to the budget of its server until its reader has finished. Only
// the part beyond an ordinary response is also charged to a budget of the process. An ordinary response of one server
// therefore never waits for another server.
package answer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Timeout limits the time for one response of an API server, including its body.
const Timeout = 10 * time.Second

// LongestPause is the longest pause that an API server may request by Retry-After.
const LongestPause = 5 * time.Minute

// Bounds are the limits of one response, or of one event of a watch.
type Bounds struct {
	Bytes  int64 // unpacked; the packed size has the same limit
	Values int64 // JSON values, approximately: objects, lists, and the items between commas
}

// Default bounds of responses.
var (
	// Whole has the bounds of a response that is read as a whole, such as an object or a page of a list.
	Whole = Bounds{Bytes: 16 << 20, Values: 1 << 18}
	// Event has the bounds of each event of a watch. API servers accept no object of more than 3 MiB. A definition of that
	// size has about 200,000 values.
	Event = Bounds{Bytes: 4 << 20, Values: 1 << 18}
)

// TooLargeError means that a response exceeds a bound.
type TooLargeError struct {
	What  string // what is too large, as in "the answer"
	Bound string // as in "16 MiB"
}

// Error implements error.
func (e *TooLargeError) Error() string { return fmt.Sprintf("%s is larger than %s", e.What, e.Bound) }

// IsTooLarge reports whether a response exceeded a bound.
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

// Streamed allows larger responses in this context, because their reader reads them object by object and keeps no
// object. JSON values are not counted, and no memory is charged.
func Streamed(ctx context.Context, bytes int64) context.Context {
	return Within(ctx, Bounds{Bytes: bytes})
}

// Within sets other bounds for responses in this context. If the bounds have no limit of values, responses are read as
// a stream.
func Within(ctx context.Context, bounds Bounds) context.Context {
	return context.WithValue(ctx, boundsKey, bounds)
}

// Keep charges responses in this context until done is called, for a reader that keeps the decoded objects. Without
// Keep, a response is charged until its body is closed, which clients do before they decode it.
func Keep(ctx context.Context) (kept context.Context, done func()) {
	a := &account{}
	return context.WithValue(ctx, accountKey, a), a.done
}
