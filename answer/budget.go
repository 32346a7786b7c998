package answer

import (
	"context"
	"sync"
)

const (
	// valueCost is what a JSON value takes once it is decoded, in bytes, at most: a map with one entry.
	valueCost = 320
	// freeCost of each answer is not charged, so that small requests never wait for large ones.
	freeCost = 1 << 20
	// ordinaryCost is what a page of a list takes. What an answer takes beyond that is charged to the process, too.
	ordinaryCost = 16 << 20
	// shareCost is what the answers of one server may take at a time, and processCost the large ones of all together.
	shareCost   = 64 << 20
	processCost = 128 << 20
)

// Budget is how much may be in memory at a time. One answer may exceed it, so that those that wait for each other come to an end.
type Budget struct {
	most   int64
	beyond chan struct{} // held by the one answer that exceeds it

	mu    sync.Mutex
	taken int64
}

func newBudget(most int64) *Budget { return &Budget{most: most, beyond: make(chan struct{}, 1)} }

// NewShare returns the budget of one server.
func NewShare() *Budget { return newBudget(shareCost) }

// process is the budget of large answers of all servers.
var process = newBudget(processCost)

// charge is what one answer has taken of a budget.
type charge struct {
	budget *Budget
	taken  int64
	beyond bool
}

// upTo charges the answer so much in all; it waits for its turn if there is no room.
func (c *charge) upTo(ctx context.Context, cost int64) error {
	if more := cost - c.taken; more <= 0 || c.beyond {
		return nil
	} else if c.budget.take(more) {
		c.taken += more
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

func (b *Budget) take(cost int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cost > 0 && b.taken+cost > b.most {
		return false
	}
	b.taken += cost
	return true
}

// keeper has what is charged for answers whose bodies were read but that are still in use.
type keeper struct {
	mu    sync.Mutex
	held  []charge
	ended bool
}

func (k *keeper) hold(charges ...charge) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = append(k.held, charges...)
	if k.ended {
		k.giveBackLocked()
	}
}

func (k *keeper) done() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.giveBackLocked()
}

func (k *keeper) giveBackLocked() {
	for i := range k.held {
		k.held[i].giveBack()
	}
	k.held = nil
}
