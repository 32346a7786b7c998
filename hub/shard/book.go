package shard

import (
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// book is every Lease of this package as this replica last saw it, by its watch or in the answer to a write.
type book struct {
	now func() time.Time

	mu     sync.Mutex
	leases map[string]entry
}

type entry struct {
	lease *coordinationv1.Lease // not to be changed
	seen  time.Time             // when it was seen to change; clocks of replicas are not compared
}

// note takes up a Lease unless a newer one is known, and says whether it did.
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

// strike removes a Lease that was deleted, unless another one of its name is known.
func (b *book) strike(l *coordinationv1.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.leases[l.Name]; ok && known.lease.UID == l.UID {
		delete(b.leases, l.Name)
	}
}

// get returns a copy, or nil.
func (b *book) get(name string) *coordinationv1.Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leases[name].lease.DeepCopy()
}

// read returns the peers, those among them whose Lease has run out, the holders of the fences, and when the next Lease
// runs out.
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
