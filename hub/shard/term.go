package shard

import (
	"sync"
	"time"
)

// term is the time in which one peer Lease of this replica is valid. An expired term never becomes valid again, because
// other replicas may have taken its members. The process then ends.
type term struct {
	id  string
	now func() time.Time // has a monotonic clock, which runs while the process is stopped

	mu      sync.Mutex
	renewed time.Time // when the last renewal was sent: no other replica can have seen it earlier
	over    bool
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
		t.over = true
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
	return true
}

func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
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
	h.mu.Lock()
	released := h.released
	h.mu.Unlock()
	return !released && h.term.valid()
}

func (h *Hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
}
