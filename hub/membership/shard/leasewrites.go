package shard

import "sync"

// writesAtATime is the maximum number of concurrent requests for fences (the Leases of members) and for expired Leases
// of other replicas.
const writesAtATime = 16

// leaseWrites are the running writes of Leases. Each write has its own goroutine, and each Lease has at most one write
// at a time.
type leaseWrites struct {
	running sync.WaitGroup
	slots   chan struct{}

	mu    sync.Mutex
	names map[string]bool // names of the Leases
}

func newLeaseWrites() *leaseWrites {
	return &leaseWrites{slots: make(chan struct{}, writesAtATime), names: map[string]bool{}}
}

// underWay reports whether a write of the Lease with this name is running.
func (w *leaseWrites) underWay(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[name]
}

// begin reports whether a write of the Lease may begin, because no other write of this Lease is running. If it returns
// true, the caller must call end after the write.
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
