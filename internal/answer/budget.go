package answer

import (
	"context"
	"fmt"
	"sync"
)

const (
	// valueCost is the estimated memory of a decoded JSON value in bytes. It is the size of a Go map with one entry.
	valueCost = 320
	// freeCost is the part of each response that is not charged to any budget, so that small responses never wait for
	// large ones.
	freeCost = 1 << 20
	// ordinaryCost is the memory of a usual page of a list. If a response has a higher cost, the part beyond it is also
	// charged to the budget of the process.
	ordinaryCost = 16 << 20
	// shareCost is the size of the budget of one server. processCost is the size of the budget of the process, to which
	// the large responses of all servers are charged.
	shareCost   = 64 << 20
	processCost = 128 << 20
)

// Budget limits the memory of responses that are read at the same time. A call is one request, or all requests with one
// context of Keep. If the budget is used up, one call may go on and exceed it, and other calls wait for their turn.
// This prevents a deadlock of calls that wait for each other's memory.
type Budget struct {
	limit  int64
	beyond chan struct{} // has a value while a call exceeds the budget

	mu    sync.Mutex
	taken int64
}

func newBudget(limit int64) *Budget { return &Budget{limit: limit, beyond: make(chan struct{}, 1)} }

// NewShare returns the budget for the responses of one server.
func NewShare() *Budget { return newBudget(shareCost) }

// process is the budget of the process, for the large responses of all servers.
var process = newBudget(processCost)

// take charges an amount to the budget and returns true. If the budget has no room for the amount, take charges nothing
// and returns false.
func (b *Budget) take(cost int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cost > 0 && b.taken+cost > b.limit {
		return false
	}
	b.taken += cost
	return true
}

// charge is the memory that one call has charged to one budget.
type charge struct {
	budget *Budget
	taken  int64
	beyond bool // this charge may exceed the budget
}

// fits charges a further amount to the budget and returns true. It returns false if the budget has no room for the
// amount. If the call may exceed the budget, fits charges nothing and returns true.
func (c *charge) fits(more int64) bool {
	if c.beyond {
		return true
	}
	if !c.budget.take(more) {
		return false
	}
	c.taken += more
	return true
}

// exceed waits until the call may exceed the budget. Only one call at a time may do so.
func (c *charge) exceed(ctx context.Context) error {
	if c.beyond {
		return nil
	}
	select {
	case c.budget.beyond <- struct{}{}:
		c.beyond = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *charge) giveBack() {
	c.budget.take(-c.taken)
	c.taken = 0
	if c.beyond {
		c.beyond = false
		<-c.budget.beyond
	}
}

// account has the charges of all responses of one call, which is one request or all requests with one context of Keep.
// If a call may exceed a budget, all its responses may do so, so that a call never waits for itself.
type account struct {
	mu             sync.Mutex
	share, process *charge // charges to the cluster's share and to the process; nil before the first response
	ended          bool
}

// open sets the budgets of the account: share, the budget of the server, and the budget of the process. It does nothing
// if they are already set.
func (a *account) open(share *Budget) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.share == nil {
		a.share, a.process = &charge{budget: share}, &charge{budget: process}
	}
}

// take charges one amount to the budget of the server, and another to the budget of the process. It waits if a budget
// has no room. Every call waits for the server's budget before it waits for the process's budget, so that two calls
// never wait for each other.
func (a *account) take(ctx context.Context, toShare, toProcess int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if toShare > 0 && !a.share.fits(toShare) {
		if err := a.share.exceed(ctx); err != nil {
			return fmt.Errorf("waiting for room for a large answer of this server: %w", err)
		}
	}
	if toProcess <= 0 || a.process.fits(toProcess) {
		return nil
	}
	err := a.share.exceed(ctx)
	if err == nil {
		err = a.process.exceed(ctx)
	}
	if err != nil {
		return fmt.Errorf("waiting for room for a large answer: %w", err)
	}
	return nil
}

// closed records that the body of one response was closed. If kept is false, the charges of the call end. If kept is
// true, they last until done is called, see Keep.
func (a *account) closed(kept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !kept || a.ended {
		a.giveBackLocked()
	}
}

// done returns to the budgets all memory that the call has charged.
func (a *account) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.giveBackLocked()
}

func (a *account) giveBackLocked() {
	if a.share != nil {
		a.share.giveBack()
		a.process.giveBack()
	}
}
