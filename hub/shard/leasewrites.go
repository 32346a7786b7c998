package shard

import "sync"

// writesAtATime bounds the fences that are written at a time.
const writesAtATime = 16

// leaseWrites are the writes of Leases that are under way. Each has a goroutine of its own, and a Lease has one at a
// time.
type leaseWrites struct {
	running sync.WaitGroup
	slots   chan struct{}

	mu    sync.Mutex
	names map[string]bool // of the Leases
}

func newLeaseWrites() *leaseWrites {
	return &leaseWrites{slots: make(chan struct{}, writesAtATime), names: map[string]bool{}}
}

// underWay reports whether a write of the Lease is under way.
func (w *leaseWrites) underWay(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[name]
}

// begin reports whether a write of the Lease may begin: none is under way. A write that began has to end.
func (w *leaseWrites) begin(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names[name] {
		return false
	}
	w.names[name] = true
	return true
}

func (w *leaseWrites) end(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.names, name)
}
