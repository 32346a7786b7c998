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
// wrote is true if release has written the binding's spec.
func (s *Scheduler) release(ctx context.Context, in decide.Input, p decide.Plan) (wrote bool, err error) {
	b := in.Binding
	switch {
	case b.GetDeletionTimestamp() == nil:
		ctrl.LoggerFrom(ctx).V(1).Info("Deleting a binding", "binding", in.Object.ID.BindingKey(), "reason", p.Status.Scheduled.Reason)
		if err := s.Client.Delete(ctx, b, preconditions(b)); err != nil {
			return false, fmt.Errorf("deleting the binding of %s: %w", in.Object.ID, err)
		}
		s.leftBehind(in, p, p.LeftBehind)
		return false, nil
	case in.Object.State == decide.Deleted && !p.Remove, in.Object.State == decide.Unreadable && len(in.Spec().Clusters) > 0,
		in.Object.State == decide.Undecided && isEnding(p.Spec):
		return s.record(ctx, in, p)
	}
	if !controllerutil.ContainsFinalizer(b, hubv1.WithdrawFinalizer) {
		return false, nil
	}
	if goes, err := s.goesNext(ctx, in); err != nil || goes {
		return false, err
	}
	after := b.DeepCopyObject().(hubv1.BindingObject)
	controllerutil.RemoveFinalizer(after, hubv1.WithdrawFinalizer)
	ctrl.LoggerFrom(ctx).V(1).Info("Letting a binding go", "binding", in.Object.ID.BindingKey(), "reason", p.Status.Scheduled.Reason)
	if err := s.Client.Patch(ctx, after, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("taking the finalizer off the binding of %s: %w", in.Object.ID, err)
	}
	s.leftBehind(in, p, decide.Forgotten(in, p))
	s.decisions.forget(in.Object.ID.BindingKey())
	s.gone.copies.forget(in.Object.ID.BindingKey())
	return false, nil
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
		if err := s.APIReader.Get(ctx, client.ObjectKey{Name: in.Object.ID.Namespace}, &ns); err != nil {
			return false, fmt.Errorf("letting the binding of %s go: reading its namespace: %w", in.Object.ID, err)
		}
		if ns.DeletionTimestamp != nil {
			return true, nil
		}
	}
	object, isGone, err := s.Templates.Live(ctx, in.Object.ID, knownSince(in.Binding))
	if isUndecided(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("letting the binding of %s go: %w", in.Object.ID, err)
	}
	return isGone || object.GetDeletionTimestamp() != nil, nil
}
