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

// A new webhook configuration or APIService of a bundle is not created on a cluster before the other objects of the
// bundle are ready there: API servers refuse requests while the pods behind it do not answer.

// waiting are the keys of copies that wait on one cluster: for an operator, for the other objects of their bundle, or
// for an object that they need.
type waiting struct {
	mu   sync.Mutex
	keys sets.Set[types.NamespacedName]
	// calls are the keys of webhook configurations and APIServices, each with the objects that it waits for. A nil set
	// means all objects.
	calls map[types.NamespacedName]sets.Set[hubv1.ObjectIdentity]
	// needed are the keys that wait for an object that they need, by this object.
	needed map[hubv1.ObjectIdentity]sets.Set[types.NamespacedName]
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

// addCall notes that the webhook configuration or APIService may wait for the objects.
func (w *waiting) addCall(key types.NamespacedName, objects sets.Set[hubv1.ObjectIdentity]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = map[types.NamespacedName]sets.Set[hubv1.ObjectIdentity]{}
	}
	w.calls[key] = objects
}

// takeCalls returns and forgets the webhook configurations and APIServices that wait for an object.
func (w *waiting) takeCalls(id hubv1.ObjectIdentity) (out []types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, objects := range w.calls {
		if objects == nil || objects.Has(id) {
			out = append(out, key)
			delete(w.calls, key)
		}
	}
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
	delete(w.calls, key)
}

// take returns and forgets all keys.
func (w *waiting) take() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.keys.UnsortedList()
	w.keys = nil
	return out
}

// HealthSeen is called for every change of a copy on a cluster. It queues the copies that may wait for this one, if it
// is healthy now or if its existence is enough.
func (d *Dispatcher) HealthSeen(cluster string, seen member.Observation) {
	q := d.queue(cluster)
	if q == nil {
		return
	}
	keys := q.waiting.takeFor(seen.Owner)
	needed, healthy := operator.Needs(seen.Owner), seen.Health == hubv1.HealthHealthy
	if operator.CallsWaitFor(seen.Owner) && (healthy || !needed) {
		keys = append(keys, q.waiting.takeCalls(seen.Owner)...)
	}
	if needed && healthy {
		keys = append(keys, q.waiting.take()...)
	}
	for _, key := range keys {
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

// notReady returns the outcome for a new copy that waits for an operator, or for the other objects of its bundle; nil
// if it waits for none.
func (r *run) notReady(ctx context.Context, w *wanted) (*member.Outcome, error) {
	if !w.unknown {
		return nil, nil
	}
	if of := r.binding.BindingSpec().ObjectRef.Bundle; of != nil && operator.CallsPods(r.object.GroupKind()) {
		return r.bundleNotReady(ctx, *of)
	}
	r.queue.waiting.add(r.key)
	o, err := r.firstNotReady(ctx)
	if o == nil {
		r.queue.waiting.drop(r.key)
	}
	return o, err
}

// bundleNotReady returns the outcome for a webhook configuration or APIService that waits for other objects of its
// bundle; nil if it does not.
func (r *run) bundleNotReady(ctx context.Context, of hubv1.BundleReference) (*member.Outcome, error) {
	r.queue.waiting.addCall(r.key, nil)
	objects, err := r.objectsHere(ctx, of, operator.CallsWaitFor)
	if err != nil {
		return nil, err
	}
	waits, awaited := operator.CallsWait(objects)
	if waits == "" {
		r.queue.waiting.drop(r.key)
		return nil, nil
	}
	r.queue.waiting.addCall(r.key, sets.New(awaited...))
	out := outcome(metav1.ConditionFalse, hubv1.ReasonBundleNotReady, "the copy is created after the other objects of %s are ready on the cluster: %s", of, waits)
	out.Retry = member.RetrySlowly // an object may also leave the bundle or the cluster
	return &out, nil
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
		objects, err := r.objectsHere(ctx, hubv1.ReferenceTo(o), operator.Needs)
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

// objectsHere returns the counted objects of a bundle, as this cluster's watches show them. It leaves out objects that
// are being removed.
func (r *run) objectsHere(ctx context.Context, of hubv1.BundleReference, counts func(hubv1.ObjectIdentity) bool) ([]operator.Object, error) {
	var out []operator.Object
	templates := r.queue.opts.Templates
	for _, id := range templates.ListStored(func(b hubv1.ObjectBundle) bool { return b.BundleReference == of }) {
		if !counts(id) {
			continue
		}
		if template, ok := templates.Get(id); !ok || template.GetDeletionTimestamp() != nil {
			continue
		}
		o, err := r.objectHere(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// objectHere returns an object of a bundle, as this cluster's watches show it.
func (r *run) objectHere(ctx context.Context, id hubv1.ObjectIdentity) (operator.Object, error) {
	o := operator.Object{ObjectIdentity: id}
	b := hubv1.NewBinding(id.BindingKey())
	found, err := get(ctx, r.queue.opts.Client, id.BindingKey(), b)
	if err != nil {
		return o, err
	}
	target := b.BindingSpec().Target(r.target.Name)
	o.Placed = found && target != nil && target.State != hubv1.TargetAbsent
	o.LeftOut = found && !o.Placed
	if o.Placed {
		gvk := r.queue.records.get(id.BindingKey()).gvk
		if seen, ok, _ := r.cluster.Observation(gvk, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}); ok && seen.Owner == id && !seen.Deleting {
			o.Health, o.Message = seen.Health, seen.HealthMessage
		}
	}
	return o, nil
}
