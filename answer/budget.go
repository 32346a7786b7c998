package answer

import (
	"context"
	"fmt"
	"sync"
)

const (
	// valueCost is the estimated size of a decoded JSON value in bytes: the size of a map with one entry.
	valueCost = 320
	// freeCost is the part of each response that is not charged, so that small responses never wait for large ones.
	freeCost = 1 << 20
	// ordinaryCost is the cost of a page of a list. Any cost beyond it is also charged to the process.
	ordinaryCost = 16 << 20
	// shareCost is the budget of one server. processCost is the budget of the process for the large responses of all
	// servers.
	shareCost   = 64 << 20
	processCost = 128 << 20
)

// Budget limits the memory of concurrent responses. One call at a time may exceed it. Calls that wait for each other
// therefore come to an end.
type Budget struct {
	most   int64
	beyond chan struct{} // held by the one call that exceeds it

	mu    sync.Mutex
	taken int64
}

func newBudget(most int64) *Budget { return &Budget{most: most, beyond: make(chan struct{}, 1)} }

// NewShare returns the budget of one server.
func NewShare() *Budget { return newBudget(shareCost) }

// process is the budget for large responses of all servers.
var process = newBudget(processCost)

// take charges an amount if the budget has room for it. It returns false if the budget does not.
func (b *Budget) take(cost int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cost > 0 && b.taken+cost > b.most {
		return false
	}
	b.taken += cost
	return true
}

// charge is the part of a budget that one call has taken.
type charge struct {
	budget *Budget
	taken  int64
	beyond bool // it has the turn to exceed the budget
}

// fits charges a further amount, unless the call may exceed the budget. It returns false if the budget has no room.
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

// exceed waits for the turn to exceed the budget.
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

// account has the charges of all responses of one call. A call that may exceed a budget may do so with all its
// responses. A call therefore never waits for itself.
type account struct {
	mu             sync.Mutex
	share, process *charge // nil before the first response
	ended          bool
}

// open prepares the account for responses of this server.
func (a *account) open(share *Budget) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.share == nil {
		a.share, a.process = &charge{budget: share}, &charge{budget: process}
	}
}

// take charges an amount to the server, and a part of it to the process. All calls take from the budget of the server
// first, so that two calls never wait for each other.
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

// closed records that the body of a response was read. The charges of the call end, unless the call reads more or keeps
// the response.
func (a *account) closed(kept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !kept || a.ended {
		a.giveBackLocked()
	}
}

// done ends the call.
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
