package schedule

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/decide"
)

// answers has, by kind, the time since which decisions wait for clusters to report whether they serve the kind.
type answers struct {
	mu    sync.Mutex
	since map[schema.GroupKind]time.Time
}

// awaited returns how long decisions have waited for reports about a kind. It is 0 if no decision waits.
func (a *answers) awaited(kind schema.GroupKind, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, waits := a.since[kind]
	if !waits {
		return 0
	}
	return now.Sub(since)
}

// claim records whether a decision had to wait for the report of a cluster about its kind.
func (a *answers) claim(kind schema.GroupKind, c decide.Answers, now time.Time) {
	if c == decide.AnswersIrrelevant {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c == decide.AnswersComplete {
		delete(a.since, kind)
		return
	}
	if _, waits := a.since[kind]; !waits {
		if a.since == nil {
			a.since = map[schema.GroupKind]time.Time{}
		}
		a.since[kind] = now
	}
}
