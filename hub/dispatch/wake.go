package dispatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hanse-dev/hanse/member"
)

// wakeFilter keeps events of copies while a worker processes their keys. The watch often shows a write before the
// response to the write arrives. Only the response shows whether the event is the result of this write, or a change by
// another client.
type wakeFilter struct {
	mu sync.Mutex
	// atWork has the keys that workers process now, each with the last event of its copy since the work began. The event
	// is nil if there was none.
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

// hold stores an event until the work on its key ends. It returns false if no worker processes the key.
func (f *wakeFilter) hold(key types.NamespacedName, seen member.Observation) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, atWork := f.atWork[key]
	if atWork {
		f.atWork[key] = &seen
	}
	return atWork
}

// end records that the work on a key has ended. It returns the last event of the copy that hold has stored, or nil.
func (f *wakeFilter) end(key types.NamespacedName) *member.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.atWork[key]
	delete(f.atWork, key)
	return seen
}
