package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

// Prune deletes or orphans one copy that no binding claims. It implements a method of member.Pruner.
func (a *Applier) Prune(ctx context.Context, in member.PruneIntent) member.Outcome {
	if a.isHub {
		return *isTemplate()
	}
	ctx, done := answer.Keep(ctx)
	defer done()
	t, stop := a.find(in.GVK, types.NamespacedName{Namespace: in.Owner.Namespace, Name: in.Owner.Name})
	if stop != nil {
		return *stop
	}
	live, err := t.read(ctx)
	switch {
	case isGone(err):
		return applied(hubv1.ReasonWithdrawn, "")
	case err != nil:
		return classify(err, t)
	case live.GetUID() != in.UID || live.GetResourceVersion() != in.ResourceVersion:
		return notAsShown(t)
	}
	whose := a.standing(live, in.Owner, in.OwnerUID, "")
	if whose != ours && whose != oursOutdated || live.GetLabels()[hubv1.HubLabel] == "" {
		return leftAlone(t, live, whose)
	}
	if out := hubIsOlder(in.Source, live, whose); out != nil {
		return *out
	}
	policy, why := in.Policy, ""
	if isAdopted(live) {
		policy, why = hubv1.RemovalOrphan, ": it was on the cluster before Hanse took it over"
	}
	out, changed := a.takeAway(ctx, t, member.WithdrawIntent{GVK: in.GVK, Owner: in.Owner, OwnerUID: in.OwnerUID}, live, policy, why)
	if changed {
		return notAsShown(t)
	}
	return out
}

func notAsShown(t target) member.Outcome {
	return refused(hubv1.ReasonPending, member.RetryNever, "%s changed on the cluster after it was listed: list it again", t)
}
