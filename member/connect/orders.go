package connect

import (
	"context"
	"sync"

	"github.com/hanse-dev/hanse/member"
)

// want is the last input of Ensure.
type want struct {
	to         member.Connection
	fault      *fault // then to is empty
	expectedID string
}

func (w want) equal(other want) bool {
	if (w.fault == nil) != (other.fault == nil) || (w.fault != nil && *w.fault != *other.fault) {
		return false
	}
	return w.to == other.to && w.expectedID == other.expectedID
}

// orders are what callers ask of the goroutine of a link.
type orders struct {
	wake chan struct{} // one token: there are new orders

	mu        sync.Mutex
	want      want
	interrupt context.CancelFunc // ends the attempt under way, if there is one
	looks     int                // how often somebody asked to look which kinds are served
}

// setWant interrupts an attempt for an earlier input.
func (o *orders) setWant(w want) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.equal(o.want) {
		return
	}
	o.want = w
	if o.interrupt != nil {
		o.interrupt()
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// begin returns the current input, and a context that ends when the input changes.
func (o *orders) begin(ctx context.Context) (context.Context, context.CancelFunc, want) {
	ctx, cancel := context.WithCancel(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.interrupt = cancel
	return ctx, cancel, o.want
}

func (o *orders) askToLook(times int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks = max(o.looks, times)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *orders) takeLooks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.looks
	o.looks = 0
	return asked
}
