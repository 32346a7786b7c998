package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/system"
)

// Some kinds are provided by a FederatedOperator. If the operator is placed on a cluster, the hub creates copies of its
// kinds there only while the operator is ready. The hub writes and withdraws existing copies as usual. An operator that
// is not ready therefore delays new copies, and never removes a copy.

// The hub writes a workload of a bundle after the objects of the bundle that its pods may need, such as RBAC and
// CustomResourceDefinitions. Some controllers check their rights only when they start. A change of an existing workload
// waits until these objects have the content that the hub wants on the cluster, also when a rollout returns.

// The hub creates a new webhook configuration or APIService of a bundle only after other objects of the bundle are
// ready. It does not wait for custom resources, or for other objects of these two kinds. API servers refuse requests
// while the pods behind such an object do not answer. A change of such an object waits for the other objects, too.
// Correcting drift never waits.

// HealthSeen is called for every change of a copy on a cluster. It queues the copies that wait for the changed copy. If
// an operator needs the changed copy, copies of the operator's kinds wait until the changed copy is Healthy.
func (d *Dispatcher) HealthSeen(cluster string, seen member.Observation) {
	q := d.queue(cluster)
	if q == nil || operator.Needs(seen.Owner) && seen.Health != hubv1.HealthHealthy {
		return
	}
	for _, key := range q.needs.waiting.take(seen.Owner) {
		q.gate.add(due{key, normalPriority + q.copies.rank(key)})
	}
}

// operatorVersion returns the version of the operator if the manifest is a workload of the operator. It is empty for
// all other manifests.
func (r *run) operatorVersion(manifest *unstructured.Unstructured) string {
	if !r.binding.BindingSpec().ObjectRef.IsOfOperator() {
		return ""
	}
	return operator.Version(manifest)
}

// notReady returns the outcome for a copy that waits for an operator, or for the other objects of its bundle. It is nil
// if the copy does not wait. Of the existing copies, only these wait: RoleBindings of kube-system, and workloads,
// webhook configurations and APIServices of a bundle whose content changes.
func (r *run) notReady(ctx context.Context, w *wanted) (*member.Outcome, error) {
	if role := system.RoleOf(w.manifest); role != "" && role != system.AuthenticationReader {
		return r.roleNotHere(ctx, role)
	}
	changed := w.confirmedDigest != "" && w.confirmedDigest != w.digest
	if !w.unknown && !changed {
		return nil, nil
	}
	of, kind := r.binding.BindingSpec().ObjectRef.Bundle, r.in.object.GroupKind()
	if of == nil || !operator.CallsPods(kind) && !operator.RunsPods(kind) {
		if !w.unknown {
			return nil, nil
		}
		return r.firstNotReady(ctx)
	}
	set, err := r.setHere(ctx, *of)
	if err != nil {
		return nil, err
	}
	if behind, err := r.behindSet(ctx, set); err != nil || behind {
		return &member.Outcome{Retry: member.RetrySoon}, err // not recorded
	}
	if operator.CallsPods(kind) {
		return r.bundleNotReady(ctx, *of, set, !w.unknown)
	}
	return r.podsNotReady(ctx, *of, set, !w.unknown)
}

// roleNotHere returns the outcome for a RoleBinding of kube-system that waits for the copy of its Role. The outcome is
// nil if the copy is on the cluster. The cluster may have a Role of this name that is not of the operator. A binding to
// that Role would give the operator the rights of another component. An existing RoleBinding waits, too, because the
// Role may have been replaced.
func (r *run) roleNotHere(ctx context.Context, role string) (*member.Outcome, error) {
	id := hubv1.ObjectIdentity{Group: rbacv1.GroupName, Kind: "Role", Namespace: system.Namespace, Name: role}
	r.queue.needs.waiting.add(r.key, id) // add before the check, so that no event is lost
	o, err := r.objectHere(ctx, id)
	if err != nil || o.Health != "" {
		return nil, err
	}
	out := outcome(metav1.ConditionFalse, hubv1.ReasonBundleNotReady, "the copy is written after its %s, which no other client may have made, is on the cluster: %s",
		id, cmp.Or(o.Message, "the hub has not written it yet"))
	out.Retry = member.RetrySlowly // the Role may also leave the cluster
	return &out, nil
}

// podsNotReady returns the outcome for a workload that waits for an object of its bundle that its pods may need. Such
// an object is of a kind that is written before workloads. exists is true if the cluster has the workload. The outcome
// is nil if the workload does not wait.
func (r *run) podsNotReady(ctx context.Context, of hubv1.BundleReference, set *setHere, exists bool) (*member.Outcome, error) {
	if leaves, err := r.callsLeave(ctx, of, set); err != nil || leaves != nil {
		if err != nil {
			return nil, err
		}
		out := outcome(metav1.ConditionFalse, hubv1.ReasonBundleNotReady, "the copy waits until %s, which %s no longer has, has left the cluster", leaves, of)
		out.Retry = member.RetrySoon
		return &out, nil
	}
	for _, id := range r.here(of, set, func(id hubv1.ObjectIdentity) bool { return Rank(id.GroupKind()) > 0 }) {
		waits, err := r.podsWait(ctx, id, set, exists)
		if err == nil && waits != "" {
			r.queue.needs.waiting.add(r.key, id)
			waits, err = r.podsWait(ctx, id, set, exists) // check again after add, so that no event is lost
		}
		if err != nil {
			return nil, err
		}
		if waits != "" {
			out := outcome(metav1.ConditionFalse, hubv1.ReasonBundleNotReady, "the copy waits until the objects of %s, which its pods may need, are on the cluster: %s", of, waits)
			out.Retry = member.RetrySlowly // an object may also leave the bundle or the cluster
			return &out, nil
		}
	}
	return nil, nil
}

// podsWait returns why a workload waits for an object of its bundle. It is empty if the workload does not wait.
func (r *run) podsWait(ctx context.Context, id hubv1.ObjectIdentity, set *setHere, exists bool) (string, error) {
	o, err := r.objectHere(ctx, id)
	if o = r.undecided(set, o); err != nil || r.neverDecided(set, o) {
		return "", err
	}
	if exists || set != nil {
		if err := r.compareHere(ctx, set, &o); err != nil {
			return "", err
		}
	}
	return operator.PodsWait(o), nil
}

// neverDecided reports whether the hub has not decided on an object of the copy's bundle for a while. No copy waits for
// it any more, because no placement may ever select the object.
func (r *run) neverDecided(set *setHere, o operator.Object) bool {
	began := r.binding.GetCreationTimestamp().Time
	if set != nil && set.since.After(began) {
		began = set.since
	}
	if template, ok := r.queue.opts.Templates.Get(o.ObjectIdentity); ok && template.GetCreationTimestamp().After(began) {
		began = template.GetCreationTimestamp().Time
	}
	return !o.Placed && !o.LeftOut && r.queue.opts.Clock.Since(began) >= pace.MaxRetry
}

// bundleNotReady returns the outcome for a webhook configuration or APIService that waits for other objects of its
// bundle. exists is true if the cluster has it. The outcome is nil if the object does not wait.
func (r *run) bundleNotReady(ctx context.Context, of hubv1.BundleReference, set *setHere, exists bool) (*member.Outcome, error) {
	objects, err := r.objectsHere(ctx, of, set, operator.CallsWaitFor)
	if err != nil {
		return nil, err
	}
	for i := range objects {
		objects[i] = r.undecided(set, objects[i])
		if !exists && set == nil {
			continue
		}
		if err := r.compareHere(ctx, set, &objects[i]); err != nil {
			return nil, err
		}
	}
	waits, text := operator.CallsWait(objects), "the copy is created after the other objects of %s are ready on the cluster: %s"
	if exists {
		objects = slices.DeleteFunc(objects, func(o operator.Object) bool { return r.neverDecided(set, o) })
		waits, text = operator.NewCallsWait(objects), "the copy is changed after the other objects of %s have their new content on the cluster: %s"
	}
	if waits == "" {
		return nil, nil
	}
	out := outcome(metav1.ConditionFalse, hubv1.ReasonBundleNotReady, text, of, waits)
	out.Retry = member.RetrySlowly // an object may also leave the bundle or the cluster
	return &out, nil
}

// firstNotReady returns the outcome for a copy that waits for an operator. The outcome names the first operator that is
// not ready. The returned outcome is nil if all operators are ready.
func (r *run) firstNotReady(ctx context.Context) (*member.Outcome, error) {
	var operators hubv1.FederatedOperatorList
	if err := r.queue.opts.Client.List(ctx, &operators, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing FederatedOperators: %w", err)
	}
	kind := r.in.object.GroupKind()
	for i := range operators.Items {
		o := &operators.Items[i]
		if !slices.Contains(o.Status.Provides, kind.String()) {
			continue
		}
		set, err := r.setHere(ctx, hubv1.ReferenceTo(o))
		if err != nil {
			return nil, err
		}
		objects, err := r.objectsHere(ctx, hubv1.ReferenceTo(o), set, operator.Needs)
		if err != nil {
			return nil, err
		}
		if !operator.IsPlaced(objects) {
			continue
		}
		if waits := operator.WaitsFor(objects); waits != "" {
			if objects, err = r.objectsHere(ctx, hubv1.ReferenceTo(o), set, func(hubv1.ObjectIdentity) bool { return true }); err != nil {
				return nil, err
			}
			waits = cmp.Or(operator.WaitsFor(objects), waits) // with the objects that may be the cause
			out := outcome(metav1.ConditionFalse, hubv1.ReasonOperatorNotReady, "the copy is created after operator %s is ready on the cluster: %s", o.Name, waits)
			out.Retry = member.RetrySlowly // the operator may also leave the cluster
			return &out, nil
		}
	}
	return nil, nil
}

// objectsHere returns those objects of a bundle that the cluster shall hold and for which counts returns true, in the
// state that this cluster's watches show. It leaves out objects that are being removed. It records the objects, so that
// each change of them queues the waiting copy.
func (r *run) objectsHere(
	ctx context.Context, of hubv1.BundleReference, set *setHere, counts func(hubv1.ObjectIdentity) bool,
) ([]operator.Object, error) {
	var out []operator.Object
	for _, id := range r.here(of, set, counts) {
		r.queue.needs.waiting.add(r.key, id) // add before the check, so that no event is lost
		o, err := r.objectHere(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// compareHere sets whether the hub still has to write the content that it wants for an object on the run's cluster. An
// object that cannot be rendered is refused.
func (r *run) compareHere(ctx context.Context, set *setHere, o *operator.Object) error {
	if !o.Placed || o.Refused || o.Health == "" {
		return nil
	}
	if set != nil {
		b := hubv1.NewBinding(o.BindingKey())
		if _, err := get(ctx, r.queue.opts.Client, o.BindingKey(), b); err != nil {
			return err
		}
		if follows, err := r.follows(ctx, set, o.ObjectIdentity, b); err != nil || !follows {
			o.Outdated = true
			return err
		}
	}
	c, refusal, err := r.copyOf(ctx, o.ObjectIdentity)
	switch {
	case isBehind(err):
		o.Outdated = true
	case err != nil:
		return err
	case refusal != nil:
		o.Refused = true
	case c != nil:
		seen, found, _ := r.cluster.Observation(c.manifest.GroupVersionKind(), types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		o.Outdated = !found || seen.Digest != c.digest
	}
	return nil
}

// objectHere returns an object of a bundle in the state that the watches of the run's cluster show.
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
		row := b.BindingStatus().Row(r.target.Name)
		if o.Refused = row != nil && operator.IsRefused(*row); o.Refused {
			o.Message = row.Message
		}
		gvk := r.queue.copies.get(id.BindingKey()).gvk
		if seen, ok, _ := r.cluster.Observation(gvk, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}); ok && seen.Owner == id && !seen.Deleting {
			o.Health, o.Message = seen.Health, cmp.Or(o.Message, seen.HealthMessage)
		}
	}
	return o, nil
}
