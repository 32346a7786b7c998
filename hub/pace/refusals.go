package pace

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ProbeEvery is the pause between two tries of a write that the server refuses until it is changed.
const ProbeEvery = 30 * time.Second

// Refusals has the writes that one API server refuses until it is changed, by the keys of their bindings: the hub lacks
// a right, or the server does not serve the kind. No event tells the hub about the change. Therefore one write of each
// kind, its probe, is tried again every ProbeEvery, and not ever more slowly. When the server accepts a write that it
// refused before, all refused writes are tried again at once, because an administrator often grants rights on several
// kinds together. The zero value has no writes.
type Refusals struct {
	mu     sync.Mutex
	kinds  map[types.NamespacedName]schema.GroupKind
	probes map[schema.GroupKind]types.NamespacedName
}

// Refused adds a refused write. It returns true if the write is the probe of its kind.
func (r *Refusals) Refused(key types.NamespacedName, kind schema.GroupKind) (probe bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kinds == nil {
		r.kinds, r.probes = map[types.NamespacedName]schema.GroupKind{}, map[schema.GroupKind]types.NamespacedName{}
	}
	r.kinds[key] = kind
	if _, found := r.probes[kind]; !found {
		r.probes[kind] = key
	}
	return r.probes[kind] == key
}

// Probes returns the probes of all kinds: the writes to try first after the rights of the hub have changed.
func (r *Refusals) Probes() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.probes))
}

// Settled forgets a write that is not refused any more, and returns the writes to try now. These are all refused writes
// if the server has accepted the write. Otherwise, and if the write was the probe of its kind, it is another write of
// the kind, which becomes the probe.
func (r *Refusals) Settled(key types.NamespacedName, accepted bool) (again []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind, found := r.kinds[key]
	if !found {
		return nil
	}
	delete(r.kinds, key)
	if accepted {
		for other := range r.kinds {
			again = append(again, other)
		}
		r.kinds, r.probes = nil, nil
		return again
	}
	if r.probes[kind] != key {
		return nil
	}
	delete(r.probes, kind)
	for other, of := range r.kinds {
		if of == kind {
			r.probes[kind] = other
			return []types.NamespacedName{other}
		}
	}
	return nil
}
