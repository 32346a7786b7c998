// Package answer bounds what an API server may answer, and what the answers of all API servers may take together.
//
// A member cluster may be hostile: three KiB of gzip can become gigabytes of JSON, and three bytes of JSON can become a
// KiB of Go values. So bytes are bounded before and after they are unpacked, the values of JSON are counted while they
// are read, and a list that may be long is read object by object. An answer that is larger than its bounds fails with a
// TooLargeError. Half of an answer is never taken for the whole.
//
// The memory of an answer is estimated, and charged until its reader is done with it. It is charged to its server,
// whose share is bounded. The part beyond an ordinary answer is also charged to a budget of the process. So ordinary
// answers of one server never wait for another server.
package answer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Timeout is how long the hub waits for one answer of an API server, its body included.
const Timeout = 10 * time.Second

// LongestPause is the longest pause that an API server may ask for by Retry-After.
const LongestPause = 5 * time.Minute

// Bounds of one answer, or of one event of a watch.
type Bounds struct {
	Bytes  int64 // unpacked; packed it has no more either
	Values int64 // of JSON, roughly: objects, lists, and what commas separate
}

// Bounds of answers by default.
var (
	// Whole holds for an answer that is read as a whole, an object or a page of a list.
	Whole = Bounds{Bytes: 16 << 20, Values: 1 << 18}
	// Event holds for each event of a watch. API servers take no object of more than 3 MiB; a definition of that size has
	// some 200,000 values.
	Event = Bounds{Bytes: 4 << 20, Values: 1 << 18}
)

// TooLargeError says that an answer is larger than it may be.
type TooLargeError struct {
	What  string // what is too large, as in "the answer"
	Bound string // as in "16 MiB"
}

// Error implements error.
func (e *TooLargeError) Error() string { return fmt.Sprintf("%s is larger than %s", e.What, e.Bound) }

// IsTooLarge is true if the answer was larger than its bounds.
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

// Streamed lets answers to this context be larger, because their reader reads them object by object and keeps none.
// Values are not counted and nothing is charged.
func Streamed(ctx context.Context, bytes int64) context.Context {
	return Within(ctx, Bounds{Bytes: bytes})
}

// Within sets other bounds for answers to this context. Without a bound of values, answers are read as a stream.
func Within(ctx context.Context, bounds Bounds) context.Context {
	return context.WithValue(ctx, boundsKey, bounds)
}

// Keep charges answers to this context until done is called, for a reader that keeps them decoded. Otherwise an answer
// is charged until its body is closed, which clients do before they decode it.
func Keep(ctx context.Context) (kept context.Context, done func()) {
	a := &account{}
	return context.WithValue(ctx, accountKey, a), a.done
}
