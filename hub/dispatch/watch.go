package dispatch

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/overrides"
)

// The functions below queue keys after changes on the hub that may change the wanted copies. Two other changes do not
// arrive here: WakeObject is called for changes of hub objects, and Observed for changes on members.

// BindingChanged is called for a binding that was created or deleted, or whose spec changed.
func (d *Dispatcher) BindingChanged(_ context.Context, c changes.Binding) {
	if c.Before != nil && c.After != nil && staged(c.Before.BindingSpec(), c.After.BindingSpec()) {
		d.wakeTargets(c.After, normalPriority, func(t *hubv1.BindingTarget) bool {
			before := c.Before.BindingSpec().Target(t.Name)
			return before == nil || !equality.Semantic.DeepEqual(before, t)
		})
		return
	}
	if c.Before != nil {
		d.wakeBinding(c.Before, normalPriority) // removed targets are queued, too, so that their records are dropped
	}
	if c.After != nil {
		d.wakeBinding(c.After, priorityOf(c.Initial))
	}
}

// staged reports whether two decisions differ only because a rollout has made its next step. In this case, the binding
// is queued only for the clusters whose entries in the decision changed.
func staged(before, after *hubv1.BindingSpec) bool {
	if after.Rollout == nil || len(before.Clusters) != len(after.Clusters) {
		return false
	}
	for _, r := range after.Revisions {
		if was := before.Revision(r.Number); was != nil && was.Generation != r.Generation {
			return false // every row must get the new generation of the revision
		}
	}
	b, a := *before, *after
	b.Clusters, b.Revisions, b.Rollout = nil, nil, nil
	a.Clusters, a.Revisions, a.Rollout = nil, nil, nil
	return equality.Semantic.DeepEqual(b, a)
}

// OverridePolicyChanged is called for an override policy whose spec changed.
func (d *Dispatcher) OverridePolicyChanged(ctx context.Context, c changes.OverridePolicy) {
	d.wakeWhere(ctx, priorityOf(c.Initial), func(b hubv1.BindingObject) bool { return concerns(c.Before, b) || concerns(c.After, b) })
}

// PlacementChanged is called for a placement whose spec changed.
func (d *Dispatcher) PlacementChanged(ctx context.Context, c changes.Placement) {
	d.wakeWhere(ctx, priorityOf(c.Initial), func(b hubv1.BindingObject) bool {
		return (c.After != nil && follows(b, c.After)) || (c.Before != nil && follows(b, c.Before) && withdraws(b))
	})
}

func follows(b hubv1.BindingObject, p hubv1.PlacementObject) bool {
	ref := b.BindingSpec().PlacementRef
	return ref != nil && ref.UID == p.GetUID()
}

// withdraws reports whether the binding removes a copy from a cluster. Such bindings must be queued after their
// placement was deleted, because a deleted placement no longer suspends withdrawals.
func withdraws(b hubv1.BindingObject) bool {
	return slices.ContainsFunc(b.BindingSpec().Clusters, func(t hubv1.BindingTarget) bool { return t.State == hubv1.TargetAbsent })
}

// ClusterChanged is called for a cluster whose reported data, served versions or allowed namespaces changed. For a new
// cluster, Engage queues all bindings.
func (d *Dispatcher) ClusterChanged(ctx context.Context, c changes.Cluster) {
	cluster := c.After.Name
	if c.Parts&changes.Served != 0 {
		for _, kind := range servedOtherwise(c.Before, c.After) {
			d.WakeKind(ctx, kind, cluster)
		}
	}
	switch {
	case c.Parts&changes.AllowedNamespaces != 0:
		d.WakeCluster(ctx, cluster)
		return
	case c.Parts&changes.Facts == 0:
		return
	}
	reading, err := d.policiesThatDiffer(ctx, overrides.ClusterOf(c.Before), overrides.ClusterOf(c.After))
	suspending, suspendErr := d.placementsThatDiffer(ctx, c.Before, c.After)
	if err != nil || suspendErr != nil {
		d.WakeCluster(ctx, cluster) // after an error, all keys are queued: an unnecessary run does no harm
		return
	}
	if len(reading) == 0 && len(suspending) == 0 {
		return
	}
	d.wakeWhere(ctx, lowPriority, func(b hubv1.BindingObject) bool {
		return b.BindingSpec().Target(cluster) != nil &&
			(slices.ContainsFunc(reading, func(p hubv1.OverridePolicyObject) bool { return concerns(p, b) }) ||
				slices.ContainsFunc(suspending, func(p hubv1.PlacementObject) bool { return follows(b, p) }))
	}, cluster)
}

// servedOtherwise returns the kinds for which the cluster now serves other versions than before.
func servedOtherwise(before, after *hubv1.MemberCluster) (kinds []schema.GroupKind) {
	for _, r := range after.Status.APIResources {
		kind := schema.GroupKind{Group: r.Group, Kind: r.Kind}
		if !slices.Equal(before.ServedVersions(kind), r.Versions) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// policiesThatDiffer returns the override policies whose result may differ between the earlier and the new reported
// data of a cluster. Data about nodes changes often, and most policies do not read it.
func (d *Dispatcher) policiesThatDiffer(ctx context.Context, was, is overrides.Cluster) ([]hubv1.OverridePolicyObject, error) {
	all, err := scopes.OverridePolicies(ctx, d.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p hubv1.OverridePolicyObject) bool { return !overrides.Differs(p, was, is) }), nil
}

// placementsThatDiffer returns the placements that suspend writes to the cluster before the change but not after it, or
// the reverse.
func (d *Dispatcher) placementsThatDiffer(ctx context.Context, before, after *hubv1.MemberCluster) ([]hubv1.PlacementObject, error) {
	all, err := scopes.Placements(ctx, d.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p hubv1.PlacementObject) bool {
		suspend := &p.PlacementSpec().Suspend
		return suspend.SuspendsWrites(before.Name, before) == suspend.SuspendsWrites(after.Name, after)
	}), nil
}

// NamespaceChanged is called for a namespace whose labels changed.
func (d *Dispatcher) NamespaceChanged(ctx context.Context, c changes.Namespace) {
	d.wakeWhere(ctx, normalPriority, func(b hubv1.BindingObject) bool { return b.GetNamespace() == c.After.Name })
}

// concerns reports whether a policy may select a binding's object, by namespace, group and kind. Names and labels are
// compared later, when the manifest is made.
func concerns(p hubv1.OverridePolicyObject, b hubv1.BindingObject) bool {
	if p == nil || (p.GetNamespace() != "" && p.GetNamespace() != b.GetNamespace()) {
		return false
	}
	gk := hubv1.ObjectOf(b).GroupKind()
	for _, s := range p.OverrideSpec().ResourceSelectors {
		if s.APIGroup == gk.Group && (s.Kind == "*" || s.Kind == gk.Kind) {
			return true
		}
	}
	return false
}

// priorityOf returns a low priority if the event comes from the first list of a watch, because the content has not
// changed.
func priorityOf(initial bool) int {
	if initial {
		return lowPriority
	}
	return normalPriority
}
