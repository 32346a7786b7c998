package dispatch

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// refusals has the keys of copies that the member refuses until it changes: the hub lacks a right, or the member
// answers that it does not serve the kind. No event tells the hub about the change. Therefore one copy of each kind,
// its probe, is tried again every 30 s, and not ever more slowly. When the member accepts a copy that it refused
// before, all refused copies are tried again at once, because a member often grants rights on several kinds together.
type refusals struct {
	mu     sync.Mutex
	kinds  map[types.NamespacedName]schema.GroupKind
	probes map[schema.GroupKind]types.NamespacedName
}

// learn records the outcome of a try. It returns the outcome with the time of the next try.
func (q *queue) learn(key types.NamespacedName, kind schema.GroupKind, o member.Outcome) member.Outcome {
	// The hub asks for a kind without a retry, or at a given time, if an event tells when the member serves it.
	if o.Reason == hubv1.ReasonForbidden || o.Reason == hubv1.ReasonKindNotServed && o.Retry == member.RetrySlowly {
		if q.refusals.add(key, kind) {
			o.Retry, o.After = member.RetryAfter, calm
		}
		return o
	}
	q.tryAgain(q.refusals.settled(key, o.Applied == metav1.ConditionTrue))
	return o
}

// tryAgain queues copies that the member refused before.
func (q *queue) tryAgain(keys []types.NamespacedName) {
	for _, key := range keys {
		q.gate.add(due{key, lowPriority + q.records.rank(key)})
	}
}

// add adds a copy. It returns true if the copy is the probe of its kind.
func (r *refusals) add(key types.NamespacedName, kind schema.GroupKind) (probe bool) {
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

// settled forgets a copy that is not refused any more, and returns the copies to try now. These are all refused copies
// if the member has accepted the copy. Otherwise, and if the copy was the probe of its kind, it is another copy of the
// kind, which becomes the probe when it is refused again.
func (r *refusals) settled(key types.NamespacedName, accepted bool) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind, found := r.kinds[key]
	delete(r.kinds, key)
	if found && accepted {
		all := slices.Collect(maps.Keys(r.kinds))
		r.kinds, r.probes = nil, nil
		return all
	}
	if !found || r.probes[kind] != key {
		return nil
	}
	delete(r.probes, kind)
	for other, k := range r.kinds {
		if k == kind {
			return []types.NamespacedName{other}
		}
	}
	return nil
}
