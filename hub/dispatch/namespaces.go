package dispatch

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// A namespace that cannot hold objects is tried with one of the objects that wait for it, after pauses that grow from
// the first to the longest.
const (
	namespacePauseFirst = time.Second
	namespacePauseMost  = 10 * time.Second
)

// namespaceWait is one wait for all keys of a namespace that cannot hold objects on the member: it is being deleted, or
// is missing and not made on demand. One key at a time is tried. The first that finds the namespace lets all go on.
type namespaceWait struct {
	waiting
	until time.Time // no trial before
	pause time.Duration
	last  member.Outcome
}

// heed takes the outcome of an apply that tells of its namespace, and says whether the key is held.
func (g *gate) heed(key types.NamespacedName, namespace string, now time.Time, o member.Outcome) (held bool) {
	w := g.namespaces[namespace]
	if o.Reason != hubv1.ReasonNamespaceTerminate && o.Reason != hubv1.ReasonNamespaceMissing {
		if w != nil {
			delete(g.namespaces, namespace)
			g.requeueAll(&w.waiting)
		}
		return false
	}
	if w == nil {
		w = &namespaceWait{}
		g.namespaces[namespace] = w
	}
	if w.pause == 0 || w.isNext(key) {
		w.pause = min(max(2*w.pause, namespacePauseFirst), namespacePauseMost)
		w.until = now.Add(jitter(w.pause))
	}
	w.last = o
	w.hold(heldKey{due: due{key, g.running[key]}})
	return true
}
