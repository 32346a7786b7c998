package kindwatch

import (
	"context"
	"sync"
	"time"
)

// turns limits the number of first lists that begin at the same time: a starting hub lists every kind of every member.
// Each list has two pages of whole objects in memory, so few at a time bound the peak. A list that takes long loses its
// turn but goes on: a server that hangs holds up nobody for longer than that.
type turns struct {
	places chan struct{}
	hold   time.Duration
}

func newTurns(places int, hold time.Duration) *turns {
	return &turns{places: make(chan struct{}, places), hold: hold}
}

// lists are those of this process.
var lists = newTurns(8, 500*time.Millisecond)

// take waits for a turn; end gives it back.
func (t *turns) take(ctx context.Context) (end func(), err error) {
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var once sync.Once
	free := func() { once.Do(func() { <-t.places }) }
	late := time.AfterFunc(t.hold, free)
	return func() { late.Stop(); free() }, nil
}
