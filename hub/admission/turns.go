package admission

import (
	"context"
	"sync"
)

// turns are how many reviews are made at a time. One author has at most half of them: the others are for others, however much that one
// writes. Within its share everybody waits in the order in which they came.
type turns struct {
	all chan struct{}

	mu    sync.Mutex
	share map[string]*share // by user name, of those who have a turn or wait for one
}

type share struct {
	slots chan struct{}
	used  int // by how many reviews, with those that wait
}

func newTurns(atOnce int) *turns {
	return &turns{all: make(chan struct{}, atOnce), share: map[string]*share{}}
}

// take waits for a turn. It returns what gives it back, or false if the context ended before.
func (t *turns) take(ctx context.Context, user string) (giveBack func(), ok bool) {
	s := t.enter(user)
	if !put(ctx, s.slots) {
		t.leave(user, s)
		return nil, false
	}
	if !put(ctx, t.all) {
		<-s.slots
		t.leave(user, s)
		return nil, false
	}
	return func() {
		<-t.all
		<-s.slots
		t.leave(user, s)
	}, true
}

func put(ctx context.Context, slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *turns) enter(user string) *share {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.share[user]
	if !ok {
		s = &share{slots: make(chan struct{}, max(1, cap(t.all)/2))}
		t.share[user] = s
	}
	s.used++
	return s
}

func (t *turns) leave(user string, s *share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.used--; s.used == 0 {
		delete(t.share, user)
	}
}
