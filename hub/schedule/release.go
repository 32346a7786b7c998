package schedule

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// release removes the binding of an object in several steps. After a crash between two steps, the next reconcile
// continues with the next step:
//
//   - No copy is left to withdraw: release deletes the binding. The finalizer of the binding delays the deletion.
//   - The binding is being deleted and its object is gone: the recorded withdrawals continue, and the finalizer is
//     removed after the last one. This holds even if the definition of the kind is deleted meanwhile.
//   - The binding is being deleted and its object exists, because a user deleted the binding: the finalizer is removed
//     without a withdrawal, and the hub creates the binding again. In a namespace that is being deleted, the binding is
//     kept, because its object is deleted next.
//
// If recorded withdrawals continue, the next steps record the decision. Otherwise they record nothing.
func (r *run) release(ctx context.Context) error {
	if !r.ends() {
		return nil
	}
	b := r.in.Binding
	r.released = true
	switch {
	case b.GetDeletionTimestamp() == nil:
		ctrl.LoggerFrom(ctx).V(1).Info("Deleting a binding", "binding", r.in.Object.ID.BindingKey(), "reason", r.out.Status.Scheduled.Reason)
		if err := r.s.opts.Client.Delete(ctx, b, preconditions(b)); err != nil {
			return fmt.Errorf("deleting the binding of %s: %w", r.in.Object.ID, err)
		}
		r.leftBehind(r.out.LeftBehind)
		return nil
	case r.in.Object.State == decide.Deleted && !r.out.Remove, r.in.Object.State == decide.Unreadable && len(r.in.Spec().Clusters) > 0,
		r.in.Object.State == decide.Undecided && isEnding(r.out.Spec):
		r.released = false
		return nil
	}
	if !controllerutil.ContainsFinalizer(b, hubv1.WithdrawFinalizer) {
		return nil
	}
	if goes, err := r.s.goesNext(ctx, r.in); err != nil || goes {
		return err
	}
	after := b.DeepCopyObject().(hubv1.BindingObject)
	controllerutil.RemoveFinalizer(after, hubv1.WithdrawFinalizer)
	ctrl.LoggerFrom(ctx).V(1).Info("Removing the finalizer of a binding", "binding", r.in.Object.ID.BindingKey(), "reason", r.out.Status.Scheduled.Reason)
	if err := r.s.opts.Client.Patch(ctx, after, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("removing the finalizer of the binding of %s: %w", r.in.Object.ID, err)
	}
	r.leftBehind(decide.Forgotten(r.in, r.out))
	r.s.results.decisions.forget(r.in.Object.ID.BindingKey())
	r.s.inputs.gone.copies.forget(r.in.Object.ID.BindingKey())
	return nil
}

// isEnding reports whether the decision withdraws all copies, at least one of them because the hub object was deleted.
func isEnding(spec *hubv1.BindingSpec) bool {
	return !hasCopies(spec) && slices.ContainsFunc(spec.Clusters, func(e hubv1.BindingTarget) bool {
		return e.Absent != nil && e.Absent.Reason == hubv1.ReasonObjectDeleted
	})
}

// goesNext reports whether the object or its namespace is being deleted or is gone on the API server, although the
// cache still has the object. If so, the binding keeps its finalizer for now, and the next event of the object queues
// the object again.
func (s *Scheduler) goesNext(ctx context.Context, in decide.Input) (bool, error) {
	if in.Object.State != decide.Exists {
		return false, nil
	}
	if in.Object.ID.Namespace != "" {
		var ns corev1.Namespace
		if err := s.opts.APIReader.Get(ctx, client.ObjectKey{Name: in.Object.ID.Namespace}, &ns); err != nil {
			return false, fmt.Errorf("releasing the binding of %s: reading its namespace: %w", in.Object.ID, err)
		}
		if ns.DeletionTimestamp != nil {
			return true, nil
		}
	}
	object, isGone, err := s.opts.Templates.Live(ctx, in.Object.ID, knownSince(in.Binding))
	if isUndecided(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("releasing the binding of %s: %w", in.Object.ID, err)
	}
	return isGone || object.GetDeletionTimestamp() != nil, nil
}
