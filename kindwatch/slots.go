package kindwatch

import (
	"context"
	"sync"
	"time"
)

// slots limits the number of first lists that begin at the same time, because a starting hub lists every kind of every
// member. Each list has two pages of objects in memory, so that the limit also limits the memory. A list that takes
// long loses its slot and continues. A server that hangs therefore delays other lists only for that time.
type slots struct {
	places chan struct{}
	hold   time.Duration
}

func newSlots(places int, hold time.Duration) *slots {
	return &slots{places: make(chan struct{}, places), hold: hold}
}

// lists are the slots of this process.
var lists = newSlots(8, 500*time.Millisecond)

// take waits for a slot. end returns the slot.
func (s *slots) take(ctx context.Context) (end func(), err error) {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var once sync.Once
	free := func() { once.Do(func() { <-s.places }) }
	late := time.AfterFunc(s.hold, free)
	return func() { late.Stop(); free() }, nil
}
