package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/operator"
)

// A copy of a kind that a FederatedOperator provides is not created on a cluster before the operator is ready there, if
// the operator is placed on that cluster. A copy that exists is written and withdrawn as all others: the readiness of
// an operator keeps copies away and never removes one. So it needs no memory of an earlier readiness.

// waiting are the keys of copies that wait for an operator or a needed object on one cluster.
type waiting struct {
	mu     sync.Mutex
	keys   sets.Set[types.NamespacedName]                          // those that wait for an operator
	needed map[hubv1.ObjectIdentity]sets.Set[types.NamespacedName] // those that wait for an object
}

// addFor notes that a key may wait for an object.
func (w *waiting) addFor(id hubv1.ObjectIdentity, key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.needed == nil {
		w.needed = map[hubv1.ObjectIdentity]sets.Set[types.NamespacedName]{}
	}
	if w.needed[id] == nil {
		w.needed[id] = sets.New[types.NamespacedName]()
	}
	w.needed[id].Insert(key)
}

// dropFor notes that a key does not wait for an object.
func (w *waiting) dropFor(id hubv1.ObjectIdentity, key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.needed[id].Delete(key); w.needed[id].Len() == 0 {
		delete(w.needed, id)
	}
}

// takeFor returns and forgets the keys that wait for an object.
func (w *waiting) takeFor(id hubv1.ObjectIdentity) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.needed[id].UnsortedList()
	delete(w.needed, id)
	return out
}

// add notes that a key may wait. It comes before the look at the operator, so that no event between them is lost.
func (w *waiting) add(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys = sets.New[types.NamespacedName]()
	}
	w.keys.Insert(key)
}

// drop notes that a key does not wait.
func (w *waiting) drop(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys.Delete(key)
}

// take returns and forgets all keys.
func (w *waiting) take() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.keys.UnsortedList()
	w.keys = nil
	return out
}

// HealthSeen is called for every change of a copy on a cluster. It queues the copies that wait for this copy there. If
// an operator needs the copy and it is healthy now, it also queues the copies that wait for an operator there.
func (d *Dispatcher) HealthSeen(cluster string, seen member.Observation) {
	q := d.queue(cluster)
	if q == nil {
		return
	}
	for _, key := range q.waiting.takeFor(seen.Owner) {
		q.gate.add(due{key, normalPriority + q.records.rank(key)})
	}
	if seen.Health != hubv1.HealthHealthy || !operator.Needs(seen.Owner) {
		return
	}
	for _, key := range q.waiting.take() {
		q.gate.add(due{key, normalPriority + q.records.rank(key)})
	}
}

// operatorVersion returns the version of the operator whose workload the manifest is; empty if it is none.
func (r *run) operatorVersion(manifest *unstructured.Unstructured) string {
	if of := r.binding.BindingSpec().ObjectRef.Bundle; of == nil || of.Kind != hubv1.FederatedOperatorKind {
		return ""
	}
	return operator.Version(manifest)
}

// operatorNotReady returns the outcome for a copy that waits for an operator; nil if it waits for none.
func (r *run) operatorNotReady(ctx context.Context, w *wanted) (*member.Outcome, error) {
	if !w.unknown {
		return nil, nil
	}
	r.queue.waiting.add(r.key)
	o, err := r.firstNotReady(ctx)
	if o == nil {
		r.queue.waiting.drop(r.key)
	}
	return o, err
}

// firstNotReady returns the outcome for a copy that waits for the first operator that is not ready; nil if none is.
func (r *run) firstNotReady(ctx context.Context) (*member.Outcome, error) {
	var operators hubv1.FederatedOperatorList
	if err := r.queue.opts.Client.List(ctx, &operators, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing FederatedOperators: %w", err)
	}
	kind := r.object.GroupKind()
	for i := range operators.Items {
		o := &operators.Items[i]
		if !slices.Contains(o.Status.Provides, kind.String()) {
			continue
		}
		objects, err := r.operatorHere(ctx, hubv1.ReferenceTo(o))
		if err != nil {
			return nil, err
		}
		if !operator.IsPlaced(objects) {
			continue
		}
		if waits := operator.WaitsFor(objects); waits != "" {
			out := outcome(metav1.ConditionFalse, hubv1.ReasonOperatorNotReady, "the copy is created after operator %s is ready on the cluster: %s", o.Name, waits)
			out.Retry = member.RetrySlowly // the operator may also leave the cluster
			return &out, nil
		}
	}
	return nil, nil
}

// operatorHere returns the needed objects of an operator, as this cluster's watches show them.
func (r *run) operatorHere(ctx context.Context, of hubv1.BundleReference) ([]operator.Object, error) {
	var out []operator.Object
	for _, id := range r.queue.opts.Templates.ListStored(func(b hubv1.ObjectBundle) bool { return b.BundleReference == of }) {
		if !operator.Needs(id) {
			continue
		}
		o := operator.Object{ObjectIdentity: id}
		b := hubv1.NewBinding(id.BindingKey())
		found, err := get(ctx, r.queue.opts.Client, id.BindingKey(), b)
		if err != nil {
			return nil, err
		}
		if target := b.BindingSpec().Target(r.target.Name); found && target != nil && target.State != hubv1.TargetAbsent {
			o.Placed = true
			gvk := r.queue.records.get(id.BindingKey()).gvk
			if seen, ok, _ := r.cluster.Observation(gvk, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}); ok && seen.Owner == id && !seen.Deleting {
				o.Health, o.Message = seen.Health, seen.HealthMessage
			}
		}
		out = append(out, o)
	}
	return out, nil
}
