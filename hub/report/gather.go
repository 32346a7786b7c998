package report

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// gather reads the inputs from which the rows are computed. If the state of a cluster is not known, r.in.facts has no
// value for it, and the row of the cluster does not change.
func (r *run) gather(ctx context.Context) error {
	if template, ok := r.reporter.opts.Sources.Templates.Get(r.id); ok {
		r.in.template, r.in.content = template, r.reporter.opts.Sources.Templates.Content(r.id)
	}
	var err error
	r.in.hub, err = r.reporter.opts.Sources.Definitions.HubObject(ctx, r.binding.BindingSpec().ObjectRef, r.in.template)
	if err != nil && r.in.template != nil {
		return err
	}
	r.in.hub.Revisions = r.binding.BindingSpec().Revisions
	aggregation, err := r.statusAggregation(ctx)
	if err != nil {
		return err
	}
	r.in.aggregation = aggregation
	r.in.facts = make(map[string]rollup.Fact, len(r.targets))
	for _, t := range r.targets {
		if r.part.elsewhere[t.Name] {
			r.gatherElsewhere(t)
			continue
		}
		fact, known, err := r.fact(ctx, t)
		if err != nil {
			return err
		}
		if known {
			r.in.facts[t.Name] = fact
		}
		// After a restart, the connection to the cluster has not reported the cluster's state yet. The row still has the last
		// known state.
		row := r.binding.BindingStatus().Row(t.Name)
		r.in.hubIsTarget = r.in.hubIsTarget || fact.IsHub || (!known && row != nil && row.Reason == hubv1.ReasonIsTemplate)
	}
	return nil
}

// statusAggregation returns the rules of the placement for merging statuses. If the placement was deleted, it returns
// the rules that the binding has recorded.
func (r *run) statusAggregation(ctx context.Context) (hubv1.StatusAggregation, error) {
	if ref := r.binding.BindingSpec().PlacementRef; ref != nil {
		var p hubv1.PlacementObject = &hubv1.Placement{}
		if ref.Kind == "ClusterPlacement" {
			p = &hubv1.ClusterPlacement{}
		}
		err := r.reporter.opts.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, p, client.UnsafeDisableDeepCopy)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return hubv1.StatusAggregation{}, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
		case err == nil && p.GetUID() == ref.UID:
			return p.PlacementSpec().StatusAggregation, nil
		}
	}
	return hubv1.LastSettings(r.binding).StatusAggregation, nil
}

// fact returns the current state of one cluster. known is false if this process has not seen the state yet.
func (r *run) fact(ctx context.Context, t hubv1.BindingTarget) (f rollup.Fact, known bool, err error) {
	cluster, err := r.reporter.opts.Sources.Fleet.Get(t.Name)
	if err != nil {
		return r.awayFact(ctx, t.Name)
	}
	f.Connected, f.IsHub = true, cluster.IsHub()
	if o, ok := r.in.outcomes[t.Name]; ok {
		f.Outcome = r.withoutSecrets(o)
	}
	gvk, err := r.gvk(ctx, t)
	if err != nil {
		return f, false, err
	}
	o, found, synced := cluster.Observation(gvk, types.NamespacedName{Namespace: r.id.Namespace, Name: r.id.Name})
	f.Synced = synced
	if failure := cluster.Unwatched(gvk); r.onlyTheKindFails(t.Name, failure) {
		f.Unwatched = failure
	}
	// The cluster may have an object with the kind and name of the copy that is no copy of this hub object. Such an object
	// is ignored.
	if found && o.Owner == r.id {
		if hubv1.IsSecret(r.id.GroupKind()) {
			o.HealthMessage, o.Observed = "", nil
		}
		f.Observation = &o
	}
	r.in.unseen = r.in.unseen || awaited(f) || changesRevision(t, f) || (f.Outcome == nil && !f.IsHub && r.binding.BindingStatus().Row(t.Name) == nil)
	return f, f.Outcome != nil || f.Observation != nil || f.IsHub, nil
}

// changesRevision reports whether the last outcome for the cluster belongs to another revision than the one that the
// binding names for the cluster. The row then waits for the next outcome. Without this wait, each batch of a rollout
// would cost an additional write.
func changesRevision(t hubv1.BindingTarget, f rollup.Fact) bool {
	return t.Revision != 0 && f.Outcome != nil && !f.IsHub && f.Outcome.Applied == metav1.ConditionTrue && f.Outcome.HubRevision != t.Revision
}

// awaited reports whether the cluster's watch has not shown the last applied copy yet.
func awaited(f rollup.Fact) bool {
	if f.IsHub || f.Outcome == nil || f.Outcome.Applied != metav1.ConditionTrue || f.Outcome.Reason == hubv1.ReasonInSync || f.Outcome.Reason == hubv1.ReasonCompleted {
		return false
	}
	if f.Outcome.Reason == hubv1.ReasonWithdrawn {
		return f.Observation != nil && f.Observation.UID != f.Outcome.UID // the watch shows a copy that is being deleted
	}
	return f.Observation == nil || f.Observation.Digest != f.Outcome.Digest
}

// awayFact returns the reason why a cluster is unreachable. known is false while the hub makes the first attempt to
// connect.
func (r *run) awayFact(ctx context.Context, name string) (f rollup.Fact, known bool, err error) {
	if state, ok := r.reporter.opts.Sources.Links.State(name); ok {
		f.LinkReason, f.LinkMessage, f.LastObserved = state.Reason, state.Message, state.LastObserved
		f.InGrace = r.reporter.inGrace(name)
		return f, state.Ready == metav1.ConditionFalse, nil
	}
	// The hub has no connection to the cluster. Either the hub refuses to connect, or the MemberCluster was deleted.
	var c hubv1.MemberCluster
	if err := r.reporter.opts.Client.Get(ctx, types.NamespacedName{Name: name}, &c, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return f, false, fmt.Errorf("reading MemberCluster %s: %w", name, err)
	}
	if c.Name == "" {
		f.LinkReason, f.LinkMessage = hubv1.ReasonClusterMissing, "there is no MemberCluster of this name; the copy on the cluster stays"
		return f, true, nil
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return f, false, nil
	}
	f.LinkReason, f.LinkMessage = ready.Reason, ready.Message
	return f, true, nil
}

// gvk returns the group, version and kind of the copy on a cluster.
func (r *run) gvk(ctx context.Context, t hubv1.BindingTarget) (schema.GroupVersionKind, error) {
	var c hubv1.MemberCluster
	err := r.reporter.opts.Client.Get(ctx, types.NamespacedName{Name: t.Name}, &c, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("reading MemberCluster %s: %w", t.Name, err)
	}
	return hubv1.Wanted(t, r.in.hub).At(&c), nil
}

// fromMembers are the reasons of outcomes whose message may quote the copy. OverrideConflict is not in this set: its
// message quotes only policies, and hub/report/policies reads the names of the policies from it.
var fromMembers = map[string]bool{
	hubv1.ReasonManifestRefused: true, hubv1.ReasonAdmissionDenied: true, hubv1.ReasonFieldsNotServed: true, hubv1.ReasonServerError: true,
	hubv1.ReasonOverrideInvalid: true, hubv1.ReasonTooLarge: true,
}

// withoutSecrets returns the outcome of a Secret without its message, if the message may quote the Secret's data.
func (r *run) withoutSecrets(o member.Outcome) *member.Outcome {
	if hubv1.IsSecret(r.id.GroupKind()) && fromMembers[o.Reason] {
		o.Message = "the text is withheld because it may quote the Secret"
	}
	return &o
}

// decision copies the scheduler's part of the status, such as the condition Scheduled, into the new status.
func (r *run) decision() {
	scheduled, decision, others, known := r.reporter.opts.Sources.Decisions.Decision(r.key)
	if !known || !r.part.leads {
		return
	}
	scheduled.Type = hubv1.ConditionScheduled
	scheduled.Message = bounded(scheduled.Message)
	if r.waitsForGrace(scheduled, decision) {
		return
	}
	r.out.after.Decision, r.out.after.OtherPlacements = decision, others
	if scheduled.LastTransitionTime.IsZero() {
		scheduled.LastTransitionTime = r.now
	}
	meta.SetStatusCondition(&r.out.after.Conditions, scheduled)
}
