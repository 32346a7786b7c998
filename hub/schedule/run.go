package schedule

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/placement/decide"
)

// run carries out the plan of one reconcile of one object, or a part of the plan.
type run struct {
	s     *Scheduler
	began time.Time
	in    decide.Input // what was gathered
	out   decide.Plan  // what was decided, to be written

	released bool                // release has handled the binding, so that no decision is recorded
	after    hubv1.BindingObject // the binding after record; nil if record had nothing to record
	wrote    bool                // whether record has written the binding
}

// A step is one part of carrying out a plan.
type step func(*run, context.Context) error

// steps carry out a plan, in this order. order is first: hub/dispatch must know the binding of a needed object, such as
// a Secret, before the binding of the object that needs it. release is before record, because a binding that ends gets
// no new decision. announce is after record: hub/report and users must not hear of a decision that is not stored. For
// the same reason, wakeReferrers and trace come last.
var steps = []step{(*run).order, (*run).release, (*run).record, (*run).announce, (*run).wakeReferrers, (*run).trace}

// carryOut runs the steps until one returns an error. See stopped for the errors that are no failures.
func (r *run) carryOut(ctx context.Context, these ...step) error {
	for _, do := range these {
		if err := do(r, ctx); err != nil {
			return err
		}
	}
	return nil
}

// ends reports whether the binding is being deleted, or the plan deletes it.
func (r *run) ends() bool {
	return r.in.Binding != nil && (r.in.Binding.GetDeletionTimestamp() != nil || r.out.Remove)
}

// stopped returns the result of a reconcile in which a step has returned an error. The step may only wait: for another
// decision, for a turn to write, for the cache, or for a needed object.
func stopped(err error) (ctrl.Result, error) {
	var unseen *unseenError
	switch {
	case errors.Is(err, errBehind):
		return ctrl.Result{}, nil
	case errors.Is(err, errNoTurn):
		return ctrl.Result{RequeueAfter: pace.AskAgain}, nil
	case isOutdated(err):
		return ctrl.Result{RequeueAfter: pace.FirstRetry}, nil // try again when the cache shows the other write
	case errors.As(err, &unseen):
		return ctrl.Result{RequeueAfter: unseen.again()}, nil
	}
	return ctrl.Result{}, err
}
