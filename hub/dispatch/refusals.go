package dispatch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// learn records the outcome of a try. It returns the outcome with the time of the next try. A copy for which the hub
// lacks a right on the member is tried again as pace.Refusals says, and a copy of a kind that the member does not
// serve, too. An outcome without a retry, or with one at a given time, shows that an event tells when the member serves
// the kind.
func (q *queue) learn(key types.NamespacedName, kind schema.GroupKind, o member.Outcome) member.Outcome {
	if o.Reason == hubv1.ReasonForbidden || o.Reason == hubv1.ReasonKindNotServed && o.Retry == member.RetrySlowly {
		if q.refusals.Refused(key, kind) {
			o.Retry, o.After = member.RetryAfter, pace.ProbeEvery
		}
		return o
	}
	q.tryAgain(q.refusals.Settled(key, o.Applied == metav1.ConditionTrue))
	return o
}

// Refused returns the namespaces of copies for which the hub lacks a right on a member, one copy of each kind.
func (d *Dispatcher) Refused(cluster string) []string {
	var out []string
	if q := d.queue(cluster); q != nil {
		for _, key := range q.refusals.Probes() {
			out = append(out, key.Namespace)
		}
	}
	return out
}

// TryRefused tries one copy of each refused kind again at once, because the rights of the hub on the member have
// changed. If the member accepts it, all refused copies are tried.
func (d *Dispatcher) TryRefused(cluster string) {
	if q := d.queue(cluster); q != nil {
		q.tryAgain(q.refusals.Probes())
	}
}

func (q *queue) tryAgain(keys []types.NamespacedName) {
	for _, key := range keys {
		q.gate.add(due{key, lowPriority + q.copies.rank(key)})
	}
}
