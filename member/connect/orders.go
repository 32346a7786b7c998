package connect

import (
	"context"
	"sync"

	"github.com/hanse-dev/hanse/member"
)

// want is the connection that the last call of Ensure has requested.
type want struct {
	to         member.Connection
	fault      *fault // set if the kubeconfig is invalid or refused; then to is empty
	expectedID string
}

func (w want) equal(other want) bool {
	if (w.fault == nil) != (other.fault == nil) || (w.fault != nil && *w.fault != *other.fault) {
		return false
	}
	return w.to == other.to && w.expectedID == other.expectedID
}

// orders has what other goroutines want from the goroutine of a link, such as another connection.
type orders struct {
	wake chan struct{} // has one token if there is a new request

	mu        sync.Mutex
	want      want
	interrupt context.CancelFunc // cancels the current attempt; nil before the first one
	looks     int                // number of reads that Look or LookAgain has requested
	probe     bool               // true if an agent has opened a lane since the last probe
}

// setWant stores the wanted connection. If it has changed, setWant cancels the current attempt and wakes the goroutine.
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

// begin returns the wanted connection, and a context that ends when the wanted connection changes.
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

// askToProbe lets the goroutine of the link probe without the pause after earlier failures.
func (o *orders) askToProbe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.probe = true
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *orders) takeProbe() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.probe
	o.probe = false
	return asked
}

func (o *orders) takeLooks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.looks
	o.looks = 0
	return asked
}
