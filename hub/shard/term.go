package shard

import (
	"sync"
	"time"
)

// term is the time from the first to the last renewal of one peer Lease. An expired term does not begin again: other
// replicas may have taken its members, and the process ends.
type term struct {
	id  string
	now func() time.Time // has a monotonic clock, which goes on while the process is stopped

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

// renew takes up a renewal that was sent at that time. It is false if the answer came too late.
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

// Hold is one replica's hold on one member, from when it took it until it lets go or its Lease runs out. It does not
// come back: a member that is taken again is another hold.
type Hold struct {
	term *term

	mu       sync.Mutex
	released bool
}

// Valid says whether the member may still be written.
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
