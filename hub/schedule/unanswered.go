package schedule

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

const (
	// answersWithin is how long a first choice or division waits for clusters to say whether they serve the kind.
	answersWithin = 10 * time.Second
	// askAgain is how often it looks.
	askAgain = 500 * time.Millisecond
)

// unanswered remembers since when some cluster has not said whether it serves a kind. When a kind is placed for the first time, the answers come
// one after the other: a division that did not wait would give everything to the first cluster, and take most of it away again; a choice among
// clusters would fall on the first one, and stay. One that never answers holds nothing up for longer than answersWithin. A nil value never waits.
type unanswered struct {
	mu    sync.Mutex
	since map[schema.GroupKind]time.Time
}

// wait returns for how long a first choice or division is still to wait; 0 if it need not.
func (u *unanswered) wait(f facts, d placement.Decision, spec *hubv1.PlacementSpec) time.Duration {
	divides := spec.Replicas.Divides() && f.spec().Division == nil
	chooses := spec.Spread != nil && len(f.spec().Clusters) == 0
	if u == nil || (!divides && !chooses) {
		return 0
	}
	kind := f.id.GroupKind()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !f.awaits(d) {
		delete(u.since, kind)
		return 0
	}
	since, ok := u.since[kind]
	if !ok {
		if u.since == nil {
			u.since = map[schema.GroupKind]time.Time{}
		}
		since = f.now
		u.since[kind] = since
	}
	if left := answersWithin - f.now.Sub(since); left > 0 {
		return min(left, askAgain)
	}
	return 0
}

// awaits is true if a cluster is left out only because it has not answered.
func (f facts) awaits(d placement.Decision) bool {
	for _, r := range d.Rejected {
		if r.Reason != hubv1.ReasonKindNotServed {
			continue
		}
		if m := f.world.cluster(r.Cluster); m != nil {
			if _, answered := f.memory.see(m).Served[f.id.GroupKind()]; !answered {
				return true
			}
		}
	}
	return false
}
