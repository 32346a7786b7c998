package informer

import (
	"context"
	"sync"
	"time"
)

// slots limits the number of lists that begin at the same time. A starting hub lists every kind of every member, and
// each list has two pages of objects in memory. A list takes a slot when it begins. After the duration hold, the list
// loses the slot and continues without a slot. A server that hangs therefore delays other lists only for this duration.
type slots struct {
	places chan struct{}
	hold   time.Duration
}

func newSlots(places int, hold time.Duration) *slots {
	return &slots{places: make(chan struct{}, places), hold: hold}
}

// lists are the slots of this process: at most 8 lists begin at the same time, and each keeps its slot for at most 500
// ms.
var lists = newSlots(8, 500*time.Millisecond)

// take waits until a slot is free, and takes it. The caller calls end to give the slot back.
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
