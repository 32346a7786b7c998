package shard

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// term is the time in which one peer Lease of this replica is valid. An expired term never becomes valid again, because
// other replicas may have taken its members. The process then ends.
//
// A term needs a renewal after a connection to the hub's API server was lost. It needs none after a renewal that was
// sent later succeeds. In the meantime the hub may have been restored from a backup. The renewal shows that it was not:
// the API server accepts a renewal only of the version of the Lease that this replica knows.
type term struct {
	id  string
	now func() time.Time // has a monotonic clock, which runs while the process is stopped

	mu         sync.Mutex
	renewed    time.Time     // when the last renewal was sent: no other replica can have seen it earlier
	requiredAt time.Time     // when a renewal was last required
	settled    chan struct{} // is closed by the renewal or the end of the term; nil if no renewal is required
	over       bool
}

func newTerm(id string, now func() time.Time, began time.Time) *term {
	return &term{id: id, now: now, renewed: began}
}

func (t *term) valid() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.validLocked()
}

func (t *term) validLocked() bool {
	if t.now().Sub(t.renewed) >= leaseLasts {
		t.endLocked()
	}
	return !t.over
}

// renew records that a renewal of the peer Lease was sent at the time sent. It returns false if the response came after
// the Lease had expired.
func (t *term) renew(sent time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.validLocked() {
		return false
	}
	t.renewed = sent
	if sent.After(t.requiredAt) {
		t.settleLocked()
	}
	return true
}

func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked()
}

func (t *term) endLocked() {
	t.over = true
	t.settleLocked()
}

func (t *term) settleLocked() {
	if t.settled != nil {
		close(t.settled)
		t.settled = nil
	}
}

// requireRenewal makes writes wait for a renewal that is sent later. It returns false if they wait already, or if the
// term is over.
func (t *term) requireRenewal() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requiredAt = t.now()
	if t.settled != nil || t.over {
		return false
	}
	t.settled = make(chan struct{})
	return true
}

func (t *term) needsRenewal() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.settled != nil
}

// sure waits until the term needs no renewal. It returns ErrUnsure if the term is over, or if ctx ends first.
func (t *term) sure(ctx context.Context) error {
	for {
		t.mu.Lock()
		valid, settled := t.validLocked(), t.settled
		t.mu.Unlock()
		switch {
		case !valid:
			return ErrUnsure
		case settled == nil:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnsure, context.Cause(ctx))
		case <-settled:
		}
	}
}

// Hold is the right of this replica to work on one member. It lasts from the time when the replica takes the member
// until the replica releases the member, or until the replica's Lease expires. A Hold that has ended never becomes
// valid again. If the replica takes the member again, there is a new Hold.
type Hold struct {
	term *term

	mu       sync.Mutex
	released bool
}

// Valid reports whether the replica may still write to the member.
func (h *Hold) Valid() bool {
	return !h.over() && h.term.valid()
}

// Guard wraps the transport of a client of the member. It refuses writes after the hold has ended. While the term of
// the replica needs a renewal, a write waits.
func (h *Hold) Guard(next http.RoundTripper) http.RoundTripper {
	return guarded(next, func(ctx context.Context) error {
		if err := h.term.sure(ctx); err != nil {
			return err
		}
		if h.over() {
			return ErrUnsure
		}
		return nil
	})
}

func (h *Hold) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released
}

func (h *Hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
}
