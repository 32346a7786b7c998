package dispatch

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/hanse-dev/hanse/member"
)

// copies has the state of each copy on one member between two runs, by binding.
type copies struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	states map[types.NamespacedName]*copyState
	// awaited has, for each kind, the time at which a run first compared a copy of the kind. The time is zero after the
	// first list of the kind.
	awaited map[schema.GroupVersionKind]time.Time
}

// copyState has all data about one copy that the queue keeps between two runs. It may be lost at any time, for example
// by a restart.
type copyState struct {
	record packed // the last known state of the copy
	extra  *extra // nil for most copies
}

// extra is the part of a copy's state that most copies do not have: what goes on with the copy, or went wrong. The zero
// value has no data.
type extra struct {
	// changed is the time at which the hub saw a change that the member does not have yet.
	changed time.Time
	// finished is the last state of a copy, such as a Job, that ran to completion and was then deleted on the member.
	finished *member.Observation
	fight    *fight
	altered  alteredCopy
	retries  retries
	failure  failure // the failure that the last span was sent for; empty while tracing is off
}

func newCopies(c clock.PassiveClock) *copies {
	return &copies{clock: c, states: map[types.NamespacedName]*copyState{}, awaited: map[schema.GroupVersionKind]time.Time{}}
}

// update replaces the extra state of a copy by the result of change.
func (c *copies) update(key types.NamespacedName, change func(extra) extra) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var before extra
	s := c.states[key]
	if s != nil && s.extra != nil {
		before = *s.extra
	}
	switch after := change(before); {
	case after == before:
	case after == extra{}:
		if s.extra = nil; s.record.empty() {
			delete(c.states, key)
		}
	default:
		if s == nil {
			s = &copyState{}
			c.states[key] = s
		}
		if s.extra == nil {
			s.extra = new(extra)
		}
		*s.extra = after
	}
}

// get returns the record of a binding: the last known state of its copy on the member. It is empty if the binding has
// no record.
func (c *copies) get(key types.NamespacedName) record {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.states[key]; s != nil {
		return s.record.unpack()
	}
	return record{}
}

func (c *copies) set(key types.NamespacedName, rec record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[key]
	if s == nil {
		s = &copyState{}
		c.states[key] = s
	}
	s.record = rec.pack()
}

// forget drops all data about a copy.
func (c *copies) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, key)
}

// keys returns the bindings for which data about a copy is kept.
func (c *copies) keys() []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.states))
}

// rank returns the rank of a binding's kind, which determines its place among keys that are due together. It is 0 if no
// state of the binding's copy is recorded.
func (c *copies) rank(key types.NamespacedName) int { return Rank(c.get(key).gvk.GroupKind()) }

// setFinished keeps the last state of a copy that ran to completion.
func (c *copies) setFinished(key types.NamespacedName, o member.Observation) {
	c.update(key, func(x extra) extra { x.finished = &o; return x })
}

// finished returns the last state of a copy that ran to completion and was then deleted on the member. It returns nil
// for all other copies.
func (c *copies) finished(key types.NamespacedName) (o *member.Observation) {
	c.update(key, func(x extra) extra { o = x.finished; return x })
	return o
}

// listWait returns the remaining time to wait for the first list of a kind. It is zero or less when the wait is over.
// The wait begins with the first call for the kind. After the wait, each copy is read with a request, and the member's
// answer tells why the kind cannot be listed.
func (c *copies) listWait(gvk schema.GroupVersionKind) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.awaited[gvk]
	if !ok {
		since = c.clock.Now()
		c.awaited[gvk] = since
	}
	return calm - c.clock.Since(since)
}

// listed records that the watch of the kind has delivered its first list. No later run waits for a list of this kind.
func (c *copies) listed(gvk schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited[gvk] = time.Time{}
}
