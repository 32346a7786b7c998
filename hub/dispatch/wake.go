package dispatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hanse-dev/hanse/member"
)

// wakeFilter keeps events of a copy while a worker processes the key of the copy. The watch often shows a write before
// the response to the write arrives. Only the response shows whether the event is the result of this write, or a change
// by another client.
type wakeFilter struct {
	mu sync.Mutex
	// atWork has the keys that workers process now. The value is the last event of the copy since the worker began, or nil
	// if there was no event.
	atWork map[types.NamespacedName]*member.Observation
}

// begin records that a worker processes a key.
func (f *wakeFilter) begin(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.atWork == nil {
		f.atWork = map[types.NamespacedName]*member.Observation{}
	}
	f.atWork[key] = nil
}

// hold stores an event until the worker has finished the key. It returns false, and stores nothing, if no worker
// processes the key.
func (f *wakeFilter) hold(key types.NamespacedName, seen member.Observation) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, atWork := f.atWork[key]
	if atWork {
		f.atWork[key] = &seen
	}
	return atWork
}

// end records that the worker has finished a key. It returns the event that hold stored last, or nil.
func (f *wakeFilter) end(key types.NamespacedName) *member.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.atWork[key]
	delete(f.atWork, key)
	return seen
}
