package dispatch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// The hub may send a copy to a cluster together with the objects that the copy needs. It then creates the copy after
// these objects. The hub writes and withdraws an existing copy as usual. A copy does not wait for a needed object that
// itself needs other objects. Two objects therefore never wait for each other.

// waitsFor returns the outcome for a copy that must wait. The copy may wait for an operator, for objects of its bundle,
// for a needed object, or for ConfigMaps and Secrets that its pods read. The outcome is nil if the copy does not wait.
func (r *run) waitsFor(ctx context.Context, w *wanted) (*member.Outcome, error) {
	r.queue.needs.waiting.drop(r.key)
	waits, err := r.notReady(ctx, w)
	if waits == nil && err == nil {
		waits, err = r.objectOnTheWay(ctx, w)
	}
	if waits == nil && err == nil {
		r.queue.needs.waiting.drop(r.key)
		waits = r.contentOnTheWay() // queue.readers wakes the key
	}
	return waits, err
}

// objectOnTheWay returns the outcome for a copy that waits until a needed object is on the cluster. It is nil if the
// copy does not wait.
func (r *run) objectOnTheWay(ctx context.Context, w *wanted) (*member.Outcome, error) {
	if !w.unknown {
		return nil, nil
	}
	for _, ref := range r.binding.BindingSpec().References {
		if ref.Former {
			continue
		}
		needed := ref.In(r.in.object.Namespace)
		r.queue.needs.waiting.add(r.key, needed) // add before the check, so that no event is lost
		why, err := r.notHereYet(ctx, needed)
		if err != nil {
			return nil, err
		}
		if why == "" {
			continue
		}
		out := outcome(metav1.ConditionFalse, hubv1.ReasonReferenceNotReady, "the copy is created after %s, which it needs, is on the cluster: %s", needed, why)
		out.Retry = member.RetrySlowly // a new decision may also remove the needed object
		return &out, nil
	}
	return nil, nil
}

// notHereYet returns why a needed object is not on the cluster yet. It is empty if the object is there, or if the hub
// does not send it to the cluster.
func (r *run) notHereYet(ctx context.Context, id hubv1.ObjectIdentity) (string, error) {
	b := hubv1.NewBinding(id.BindingKey())
	found, err := get(ctx, r.queue.opts.Client, id.BindingKey(), b)
	if err != nil || !found {
		return "", err
	}
	target := b.BindingSpec().Target(r.target.Name)
	if target == nil || target.State == hubv1.TargetAbsent || len(b.BindingSpec().References) > 0 {
		return "", nil
	}
	known := r.queue.copies.get(id.BindingKey())
	if seen, ok, _ := r.cluster.Observation(known.gvk, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}); ok && seen.Owner == id && !seen.Deleting {
		return "", nil
	}
	if known.last.Applied == metav1.ConditionTrue {
		return "", nil
	}
	other, why := failed(b.BindingStatus().Row(r.target.Name))
	switch {
	case other:
		return "", nil
	case why != "":
		return why, nil
	}
	return "the hub has not written this object yet", nil
}

// failed reads the row of a copy, and returns why the last write of the copy failed. why is empty if the row shows no
// failed write. other is true if the cluster has an object of this name that the hub does not manage.
func failed(row *hubv1.ClusterRow) (other bool, why string) {
	switch {
	case row == nil || row.Applied != metav1.ConditionFalse:
		return false, ""
	case row.Reason == hubv1.ReasonAlreadyExists, row.Reason == hubv1.ReasonOwnedByOther:
		return true, ""
	}
	return false, row.Reason + ": " + row.Message
}
