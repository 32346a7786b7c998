package schedule

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// confirm lets a plan that takes something from a cluster pass only if uncached reads lead to the same plan. If they do not, or
// cannot be had, the plan that takes nothing is returned, with a time at which to try once more. The facts are those that the
// returned plan rests on.
func (s *Scheduler) confirm(ctx context.Context, f facts, p plan) (facts, plan) {
	if !p.takes {
		return f, p
	}
	if !s.listed(f.id.GroupKind()) {
		return f.hold(5*time.Second, "the objects of its kind have not been listed")
	}
	w, err := s.worlds.get(ctx, f.id.Namespace)
	if err != nil {
		return f.hold(5*time.Second, err.Error())
	}
	live := f
	live.world = w
	if f.fate == alive {
		object, isGone, err := s.Templates.Live(ctx, f.id, knownSince(f.binding))
		switch {
		case isUndecided(err):
			// What is in memory is a remembrance. A cluster may leave all the same.
			f.fate, f.why, f.template = undecided, err.Error(), nil
			return s.confirm(ctx, f, decide(f))
		case err != nil:
			return f.hold(5*time.Second, err.Error())
		case isGone || object.GetDeletionTimestamp() != nil || (f.id.Namespace != "" && !w.namespaceRead):
			return f.hold(time.Second, "")
		}
		live.template = object
	}
	q := decide(live)
	if q.spec == nil || !equality.Semantic.DeepEqual(p.spec.Clusters, q.spec.Clusters) {
		ctrl.LoggerFrom(ctx).V(1).Info("Withdrawing nothing yet: what is cached differs from what is")
		return f.hold(time.Second, "")
	}
	return f, p
}

// listed is true once the objects of a kind are known, or nobody can expect them to be. It is the only kind that a decision about one
// of its objects reads; policies, clusters and namespaces are synced before the controller starts.
func (s *Scheduler) listed(gk schema.GroupKind) bool {
	state, watched := s.Templates.State(gk)
	return watched && (state.Synced || state.Reason == hubv1.ReasonKindNotServed || state.Reason == hubv1.ReasonForbidden)
}

// hold is the plan that takes nothing. A reason that may last is told.
func (f facts) hold(again time.Duration, why string) (facts, plan) {
	f.holdBack = true
	p := decide(f)
	p.again = earlier(p.again, again)
	if why != "" {
		p.scheduled.Message = short(p.scheduled.Message + "; nothing is withdrawn yet: " + why)
	}
	return f, p
}
