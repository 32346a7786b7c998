package access

import (
	"context"
	"sync"
)

// Slots limits the number of concurrent requests: each running request occupies one slot. Waiting requests get slots in
// the order of their arrival.
type Slots struct {
	all chan struct{}

	mu     sync.Mutex
	shares map[Party]*share // shares of parties that have a slot or wait for one
}

// Party is a user, a namespace or a peer that makes requests.
type Party struct {
	Name string
	// Max is the maximum number of slots that the party's requests may occupy.
	Max int
}

type share struct {
	slots chan struct{}
	used  int // number of callers that have or await a slot
}

// New returns Slots for this number of concurrent requests.
func New(atOnce int) *Slots {
	return &Slots{all: make(chan struct{}, atOnce), shares: map[Party]*share{}}
}

// Take waits for a slot, which counts against the limit of each party. giveBack returns the slot. ok is false if ctx
// ended first. Take waits for one party after the other, in the order of the list. While it waits for a later party, it
// occupies a slot of each earlier one. Name the user before the namespace, because other users share the namespace.
func (a *Slots) Take(ctx context.Context, parties ...Party) (giveBack func(), ok bool) {
	var taken []func()
	giveBack = func() {
		for i := len(taken) - 1; i >= 0; i-- {
			taken[i]()
		}
	}
	for _, party := range parties {
		s := a.enter(party)
		if !put(ctx, s.slots) {
			a.leave(party, s)
			giveBack()
			return nil, false
		}
		taken = append(taken, func() {
			<-s.slots
			a.leave(party, s)
		})
	}
	if !put(ctx, a.all) {
		giveBack()
		return nil, false
	}
	taken = append(taken, func() { <-a.all })
	return giveBack, true
}

func put(ctx context.Context, slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *Slots) enter(party Party) *share {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.shares[party]
	if !ok {
		s = &share{slots: make(chan struct{}, party.Max)}
		a.shares[party] = s
	}
	s.used++
	return s
}

func (a *Slots) leave(party Party, s *share) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.used--; s.used == 0 {
		delete(a.shares, party)
	}
}
