package schedule

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// release ends a binding. A crash between two steps leaves a state from which the next run goes on:
//   - nothing is left to withdraw: the binding is deleted, which its finalizer holds up;
//   - it is being deleted and its object is gone: withdrawals go on as recorded, the finalizer goes after the last of them;
//   - it is being deleted and its object lives: somebody deleted it by hand. It is let go without a withdrawal and made again.
//     In a namespace that is being deleted it is kept, since the object goes next.
func (s *Scheduler) release(ctx context.Context, f facts, p plan) error {
	b := f.binding
	switch {
	case b.GetDeletionTimestamp() == nil:
		ctrl.LoggerFrom(ctx).V(1).Info("Deleting a binding", "binding", f.id.BindingKey(), "reason", p.scheduled.Reason)
		if err := s.Client.Delete(ctx, b, preconditions(b)); err != nil {
			return fmt.Errorf("deleting the binding of %s: %w", f.id, err)
		}
		s.leftBehind(f, p.left)
		return nil
	case f.fate == gone && !p.remove, f.fate == unread && len(f.spec().Clusters) > 0:
		return s.record(ctx, f, p)
	}
	if !controllerutil.ContainsFinalizer(b, hubv1.WithdrawFinalizer) {
		return nil
	}
	if goes, err := s.goesNext(ctx, f); err != nil || goes {
		return err
	}
	after := b.DeepCopyObject().(hubv1.BindingObject)
	controllerutil.RemoveFinalizer(after, hubv1.WithdrawFinalizer)
	ctrl.LoggerFrom(ctx).V(1).Info("Letting a binding go", "binding", f.id.BindingKey(), "reason", p.scheduled.Reason)
	if err := s.Client.Patch(ctx, after, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("taking the finalizer off the binding of %s: %w", f.id, err)
	}
	s.leftBehind(f, f.forgotten(p))
	s.decisions.forget(f.id.BindingKey())
	return nil
}

// goesNext is true if the object in memory lives and the one on the hub is being deleted, or will be with its namespace. Its last
// event wakes the binding again.
func (s *Scheduler) goesNext(ctx context.Context, f facts) (bool, error) {
	if f.fate != alive {
		return false, nil
	}
	if f.id.Namespace != "" {
		var ns corev1.Namespace
		if err := s.APIReader.Get(ctx, client.ObjectKey{Name: f.id.Namespace}, &ns); err != nil {
			return false, fmt.Errorf("letting the binding of %s go: reading its namespace: %w", f.id, err)
		}
		if ns.DeletionTimestamp != nil {
			return true, nil
		}
	}
	object, isGone, err := s.Templates.Live(ctx, f.id, knownSince(f.binding))
	if isUndecided(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("letting the binding of %s go: %w", f.id, err)
	}
	return isGone || object.GetDeletionTimestamp() != nil, nil
}

// forgotten names the clusters about which nothing is remembered once the binding is gone.
func (f facts) forgotten(p plan) []string {
	left := p.left
	if f.fate == gone {
		return left
	}
	for _, e := range f.spec().Clusters {
		if (e.State == hubv1.TargetAbsent && !f.withdrawn(e)) || f.fate == undecided {
			left = append(left, e.Name+": the binding was deleted")
		}
	}
	return left
}
