package dispatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hanse-dev/hanse/member"
)

// wakeFilter holds back events of copies while their keys are at work. The watch often shows a write before its answer
// arrives. Only the answer distinguishes that event from a change by another client.
type wakeFilter struct {
	mu sync.Mutex
	// atWork has the keys at work, each with the last event of its copy since the work began; nil if there was none.
	atWork map[types.NamespacedName]*member.Observation
}

// begin notes that the work on a key has begun.
func (f *wakeFilter) begin(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.atWork == nil {
		f.atWork = map[types.NamespacedName]*member.Observation{}
	}
	f.atWork[key] = nil
}

// hold stores an event until the work on its key ends. It returns false if the key is not at work.
func (f *wakeFilter) hold(key types.NamespacedName, seen member.Observation) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, atWork := f.atWork[key]
	if atWork {
		f.atWork[key] = &seen
	}
	return atWork
}

// end notes that the work on a key has ended, and returns the last event that was held; nil if there is none.
func (f *wakeFilter) end(key types.NamespacedName) *member.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.atWork[key]
	delete(f.atWork, key)
	return seen
}
