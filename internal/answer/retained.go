package answer

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"
)

const (
	// The data that is kept of one server may take one sixteenth of the process's memory limit, and the data that is kept
	// of all servers one quarter.
	serverPart, processPart = 16, 4
	// assumedLimit is the memory limit of a process without GOMEMLIMIT.
	assumedLimit = 1 << 30
)

// Retained limits the memory of the data that the process keeps of one server after it has read the server's responses,
// for example a summary of each object. A nil Retained has no limit.
type Retained struct {
	pool   *pool
	report func(what string, err error)

	// The lock of pool guards these fields.
	parts int
	bytes int64
}

// NewRetained returns the limit for one server. report is called if a response could not be kept. what names the
// response.
func NewRetained(report func(what string, err error)) *Retained {
	return &Retained{pool: retained(), report: report}
}

// retained has the limits of the process. The memory limit is read once, because a render of a chart lowers it for a
// time.
var retained = sync.OnceValue(func() *pool {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = assumedLimit
	}
	return newPool(limit)
})

// pool has the memory that is kept of all servers.
type pool struct {
	maxPerServer, maxBytes int64

	mu      sync.Mutex
	servers int // servers of which data may be kept: those with a Part
	bytes   int64
}

func newPool(limit int64) *pool {
	return &pool{maxPerServer: limit / serverPart, maxBytes: limit / processPart}
}

// Report says that a response could not be kept. what names the response.
func (r *Retained) Report(what string, err error) {
	if r != nil {
		r.report(what, err)
	}
}

// Part returns a new part of the data of the server, which has no bytes yet. The caller must close it.
func (r *Retained) Part() *Part {
	if r == nil {
		return nil
	}
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	if r.parts++; r.parts == 1 {
		r.pool.servers++
	}
	return &Part{of: r}
}

// SharedPart returns a new part for data that is stored once for all servers that sent it. It counts for the server,
// but not for the process, because it would count for each server.
func (r *Retained) SharedPart() *Part {
	p := r.Part()
	if p != nil {
		p.shared = true
	}
	return p
}

// Part has the memory of a part of the data of one server, such as the objects of one kind. A nil Part has no limit.
type Part struct {
	of     *Retained
	bytes  int64
	shared bool // the part does not count for the process
	closed bool
}

// Add adds a number of bytes to the part. It adds nothing and returns a TooLargeError if the data of the server, or of
// all servers, would become too large. As long as the data of a server is smaller than an equal share of the memory for
// all servers, the data of other servers is not the reason for such an error. A negative number is always added.
func (p *Part) Add(bytes int64) error {
	if p == nil {
		return nil
	}
	pool := p.of.pool
	pool.mu.Lock()
	defer pool.mu.Unlock()
	after := p.of.bytes + bytes
	switch {
	case p.closed:
		return nil
	case bytes > 0 && after > pool.maxPerServer:
		return tooMuchKept("the data that the hub keeps of the cluster", pool.maxPerServer, serverPart)
	case bytes > 0 && !p.shared && pool.bytes+bytes > pool.maxBytes && after > pool.maxBytes/int64(pool.servers):
		return tooMuchKept("the data that the hub keeps of all clusters", pool.maxBytes, processPart)
	}
	p.add(bytes)
	return nil
}

// add changes the size of the part. The caller holds the lock of the pool.
func (p *Part) add(bytes int64) {
	p.bytes += bytes
	p.of.bytes += bytes
	if !p.shared {
		p.of.pool.bytes += bytes
	}
}

// Shrink sets the size of the part to a number of bytes that is not larger than its present size.
func (p *Part) Shrink(bytes int64) {
	if p == nil {
		return
	}
	p.of.pool.mu.Lock()
	defer p.of.pool.mu.Unlock()
	if !p.closed {
		p.add(min(bytes, p.bytes) - p.bytes)
	}
}

// Close says that the data of the part is not kept any more. Later calls of Add and Shrink have no effect.
func (p *Part) Close() {
	if p == nil {
		return
	}
	pool := p.of.pool
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if p.closed {
		return
	}
	p.add(-p.bytes)
	p.closed = true
	if p.of.parts--; p.of.parts == 0 {
		pool.servers--
	}
}

func tooMuchKept(what string, bound, part int64) error {
	return &TooLargeError{What: what, Bound: fmt.Sprintf("%d MiB, which is 1/%d of GOMEMLIMIT", bound>>20, part)}
}
