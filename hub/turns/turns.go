// Package turns bounds how much is done at a time, and how much of that is done for one party: a user, a namespace or a
// peer. So no party keeps the others waiting.
//
// Not decided here: who the parties are, and how long a caller waits.
package turns

import (
	"context"
	"sync"
)

// Turns are a number of turns that are taken at a time. Waiting parties get theirs in the order in which they came.
type Turns struct {
	all chan struct{}

	mu     sync.Mutex
	shares map[Party]*share // of those that have a turn or wait for one
}

// Party is one of those that share turns.
type Party struct {
	Name string
	// Most is how many turns it has at a time.
	Most int
}

type share struct {
	slots chan struct{}
	used  int // by how many callers, with those that wait
}

// New returns so many turns.
func New(atOnce int) *Turns {
	return &Turns{all: make(chan struct{}, atOnce), shares: map[Party]*share{}}
}

// Take waits for a turn, which counts as one of each of the parties, and returns what gives it back. ok is false if ctx
// ended before. A caller that waits for one party has its turn of the parties before: the one that suffers from waiting
// stands first, such as a user before a namespace that others use, too.
func (t *Turns) Take(ctx context.Context, parties ...Party) (giveBack func(), ok bool) {
	var taken []func()
	giveBack = func() {
		for i := len(taken) - 1; i >= 0; i-- {
			taken[i]()
		}
	}
	for _, party := range parties {
		s := t.enter(party)
		if !put(ctx, s.slots) {
			t.leave(party, s)
			giveBack()
			return nil, false
		}
		taken = append(taken, func() {
			<-s.slots
			t.leave(party, s)
		})
	}
	if !put(ctx, t.all) {
		giveBack()
		return nil, false
	}
	taken = append(taken, func() { <-t.all })
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

func (t *Turns) enter(party Party) *share {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.shares[party]
	if !ok {
		s = &share{slots: make(chan struct{}, party.Most)}
		t.shares[party] = s
	}
	s.used++
	return s
}

func (t *Turns) leave(party Party, s *share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.used--; s.used == 0 {
		delete(t.shares, party)
	}
}
