package schedule

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// confirm decides a second time with uncached inputs if the plan p withdraws a copy. If both decisions are equal, or p
// withdraws no copy, it returns p. If the decisions differ or a read fails, it returns a plan without withdrawals, and
// the object is decided again later. The returned input belongs to the returned plan.
func (s *Scheduler) confirm(ctx context.Context, in decide.Input, p decide.Plan) (decide.Input, decide.Plan) {
	if !p.Withdraws {
		return in, p
	}
	if !s.listed(in.Object.ID) {
		return hold(in, "the hub has not listed the objects of this kind yet")
	}
	facts, err := s.inputs.liveFacts.get(ctx, in.Object.ID.Namespace)
	if err != nil {
		return hold(in, err.Error())
	}
	live := in
	live.Facts = facts
	if in.Spec().Referenced {
		if live.Referrers, err = s.liveReferrers(ctx, in.Object.ID); err != nil {
			return hold(in, err.Error())
		}
	}
	if in.Object.State == decide.Exists {
		object, isGone, err := s.opts.Templates.Live(ctx, in.Object.ID, knownSince(in.Binding))
		switch {
		case isUndecided(err):
			// No read can tell now whether the object still exists. The cached template may be outdated, so it is not used. A
			// withdrawal whose cause is the cluster, such as a deleted MemberCluster, needs no template.
			in.Object.State, in.Object.Problem, in.Object.Template = decide.Undecided, err.Error(), nil
			return s.confirm(ctx, in, decide.Decide(in))
		case err != nil:
			return hold(in, err.Error())
		case isGone || object.GetDeletionTimestamp() != nil || (in.Object.ID.Namespace != "" && !facts.NamespaceRead):
			return hold(in, "")
		}
		live.Object.Template = object
	}
	switch same, err := s.confirmSet(ctx, in); {
	case err != nil:
		return hold(in, err.Error())
	case !same:
		return hold(in, "")
	}
	q := decide.Decide(live)
	if q.Spec == nil || !equality.Semantic.DeepEqual(p.Spec.Clusters, q.Spec.Clusters) {
		ctrl.LoggerFrom(ctx).V(1).Info("Withdrawing nothing yet: the cache differs from the API server")
		return hold(in, "")
	}
	return in, p
}

// listed reports whether the watch of the object's kind has delivered its first list, or cannot list the kind because
// the kind is not served or access is forbidden. Other inputs need no such check: policies, clusters and namespaces are
// in the cache before the controller starts.
func (s *Scheduler) listed(id hubv1.ObjectIdentity) bool {
	state, watched := s.opts.Templates.StateOf(id)
	return watched && (state.Synced || state.Reason == hubv1.ReasonKindNotServed || state.Reason == hubv1.ReasonForbidden)
}

// hold returns a plan without withdrawals. The object is decided again after a short time. why is the reason for the
// condition Scheduled if the wait may be long, and else empty.
func hold(in decide.Input, why string) (decide.Input, decide.Plan) {
	in.Object.Unconfirmed = true
	p, again := decide.Decide(in), lookEvery
	if why != "" {
		again = 5 * lookEvery
	}
	if p.Again == 0 || again < p.Again {
		p.Again = again
	}
	if why != "" {
		p.Status.Scheduled.Message = decide.Short(p.Status.Scheduled.Message + "; no copy is withdrawn yet: " + why)
	}
	return in, p
}
