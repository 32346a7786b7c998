package shard

import (
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// book has the last known state of every Lease of this package, from the watch or from the response to a write.
type book struct {
	now func() time.Time

	mu     sync.Mutex
	leases map[string]entry
}

type entry struct {
	lease *coordinationv1.Lease // must not be changed
	seen  time.Time             // local time of the last change; clocks of replicas are not compared
}

// note stores a Lease and returns true. If the same or a newer state is stored already, it returns false.
func (b *book) note(l *coordinationv1.Lease) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.leases[l.Name]; ok {
		if c, err := resourceversion.CompareResourceVersion(l.ResourceVersion, known.lease.ResourceVersion); err == nil && c <= 0 {
			return false
		}
	}
	b.leases[l.Name] = entry{l, b.now()}
	return true
}

// strike removes a deleted Lease. A new Lease of the same name stays.
func (b *book) strike(l *coordinationv1.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.leases[l.Name]; ok && known.lease.UID == l.UID {
		delete(b.leases, l.Name)
	}
}

// get returns a copy of a Lease. It returns nil if the book does not have the Lease.
func (b *book) get(name string) *coordinationv1.Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leases[name].lease.DeepCopy()
}

// all reports whether the book has the Lease of at least one replica, and check returns true for all of them.
func (b *book) all(check func(*coordinationv1.Lease) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := false
	for _, e := range b.leases {
		if e.lease.Labels[leaseLabel] != peerLease {
			continue
		}
		if found = true; !check(e.lease) {
			return false
		}
	}
	return found
}

// read returns the replicas that have a Lease (peers), and the expired Leases of replicas. It also returns the holder
// of each member's fence, which is the Lease that names the replica that works on the member. next is the time until
// the next Lease expires.
func (b *book) read() (peers []peer, lapsed []*coordinationv1.Lease, fences map[string]string, next time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fences, next = map[string]string{}, leaseLasts
	for name, e := range b.leases {
		if e.lease.Labels[leaseLabel] == fenceLease {
			fences[strings.TrimPrefix(name, fencePrefix)] = holderOf(e.lease)
			continue
		}
		left := leaseLasts - b.now().Sub(e.seen)
		if left > 0 {
			next = min(next, left)
		} else {
			lapsed = append(lapsed, e.lease)
		}
		peers = append(peers, peer{id: holderOf(e.lease), seat: e.lease.Labels[seatLabel], live: left > 0})
	}
	return peers, lapsed, fences, next
}
