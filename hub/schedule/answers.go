package schedule

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/placement/decide"
)

// answers has, for each kind, the time since which decisions wait because clusters have not reported yet whether they
// serve the kind.
type answers struct {
	mu    sync.Mutex
	since map[schema.GroupKind]time.Time
}

// awaited returns how long decisions have waited for clusters to report whether they serve a kind. It returns 0 if no
// decision waits.
func (a *answers) awaited(kind schema.GroupKind, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, waits := a.since[kind]
	if !waits {
		return 0
	}
	return now.Sub(since)
}

// claim records whether a decision had to wait because a cluster has not reported yet whether it serves the kind.
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
