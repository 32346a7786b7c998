package policies

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/overrides"
)

// PlacementChanged queues a new, changed or deleted placement. For a deleted placement, the controller removes its
// record of the placement from memory.
func (c *Controllers) PlacementChanged(_ context.Context, change changes.Placement) {
	c.placements.wake(client.ObjectKeyFromObject(cmp.Or(change.After, change.Before)))
}

// OverridePolicyChanged queues a new or changed override policy. It does not queue a deleted policy, because it has no
// status.
func (c *Controllers) OverridePolicyChanged(_ context.Context, change changes.OverridePolicy) {
	if change.After != nil {
		c.overrides.wake(client.ObjectKeyFromObject(change.After))
	}
}

// BundleChanged queues a new, changed or deleted bundle or operator. For a deleted operator, the controller removes the
// operator's state from MemberClusters.
func (c *Controllers) BundleChanged(_ context.Context, change changes.Bundle) {
	c.wakeBundle(hubv1.ReferenceTo(cmp.Or(change.After, change.Before)))
}

// BindingChanged queues the policies and bundles whose status depends on a changed binding.
func (c *Controllers) BindingChanged(_ context.Context, change changes.Binding) {
	for _, b := range []hubv1.BindingObject{change.Before, change.After} {
		if b != nil && b.BindingSpec().ObjectRef.Bundle != nil {
			c.wakeBundle(*b.BindingSpec().ObjectRef.Bundle)
		}
	}
	if c.placements.started() != nil {
		c.wakeFollowed(change.Before, change.After)
	}
	ctx := c.overrides.started()
	if ctx == nil || change.Parts&(changes.Added|changes.Deleted|changes.Spec) == 0 && slices.Equal(clashes(change.Before), clashes(change.After)) {
		return
	}
	for _, b := range []hubv1.BindingObject{change.Before, change.After} {
		if b != nil {
			c.wakeOverrides(ctx, func(p hubv1.OverridePolicyObject) bool { return concerns(p, b) })
		}
	}
}

// wakeFollowed queues the placement that the object of a binding follows (which decides about the object). If this
// placement or the set of other placements that select the object has changed, wakeFollowed also queues each other
// placement that selects or selected the object.
func (c *Controllers) wakeFollowed(before, after hubv1.BindingObject) {
	same := before != nil && after != nil && equality.Semantic.DeepEqual(before.BindingSpec().PlacementRef, after.BindingSpec().PlacementRef) &&
		slices.Equal(before.BindingStatus().OtherPlacements, after.BindingStatus().OtherPlacements)
	for _, b := range []hubv1.BindingObject{before, after} {
		if b == nil {
			continue
		}
		if key, ok := followed(b); ok {
			c.placements.wake(key)
		}
		if same {
			continue
		}
		for _, key := range notFollowed(b) {
			c.placements.wake(key)
		}
	}
}

// ClusterChanged queues the policies and operators whose status depends on a changed cluster. It is called for a new or
// deleted cluster, and after a change of a cluster's region or of the data that policies read.
func (c *Controllers) ClusterChanged(_ context.Context, change changes.Cluster) {
	if ctx := c.operators.started(); ctx != nil && change.Parts&changes.Added != 0 {
		c.wakeBundles(ctx, c.operators) // status.operators may be lost, for example after a restore
	}
	if ctx := c.placements.started(); ctx != nil && change.Parts&changes.Region != 0 {
		c.wakePlacements(ctx, everyPlacement)
	}
	ctx := c.overrides.started()
	switch {
	case ctx == nil:
	case change.Parts&(changes.Added|changes.Deleted) != 0:
		c.wakeOverrides(ctx, everyOverridePolicy)
	case change.Parts&changes.Facts != 0:
		was, is := overrides.ClusterOf(change.Before), overrides.ClusterOf(change.After)
		c.wakeOverrides(ctx, func(p hubv1.OverridePolicyObject) bool { return overrides.Differs(p, was, is) })
	}
}

// NamespaceChanged queues the ClusterOverridePolicies. It is called for a namespace whose labels have changed, because
// these policies may select namespaces by labels.
func (c *Controllers) NamespaceChanged(context.Context, changes.Namespace) {
	if ctx := c.overrides.started(); ctx != nil {
		c.wakeOverrides(ctx, func(p hubv1.OverridePolicyObject) bool { return p.GetNamespace() == "" })
	}
}

func everyPlacement(hubv1.PlacementObject) bool { return true }

func everyOverridePolicy(hubv1.OverridePolicyObject) bool { return true }

// clashes returns the cluster name and message of each row of a binding with the reason OverrideConflict.
func clashes(b hubv1.BindingObject) []string {
	var out []string
	for _, row := range b.BindingStatus().Clusters {
		if row.Reason == hubv1.ReasonOverrideConflict {
			out = append(out, row.Name+row.Message)
		}
	}
	return out
}

// objectChanged queues the override policies that may select a changed hub object, because the object's labels may have
// changed. It also queues the bundle to which the object belongs.
func (c *Controllers) objectChanged(id hubv1.ObjectIdentity) {
	if o, ok := c.opts.Templates.Head(id); ok {
		if bundle := hubv1.BundleOf(o); bundle != nil {
			c.wakeBundle(bundle.BundleReference)
		}
	}
	ctx := c.overrides.started()
	if ctx == nil {
		return
	}
	binding := hubv1.NewBinding(types.NamespacedName{Namespace: id.Namespace})
	binding.BindingSpec().ObjectRef = hubv1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: id.Group, Version: "v1"}.String(), Kind: id.Kind, Name: id.Name,
	}
	c.wakeOverrides(ctx, func(p hubv1.OverridePolicyObject) bool { return concerns(p, binding) })
}

// kindChanged queues the placements that select a kind. It is called when the hub starts or stops serving the kind, and
// when it gets or loses the right to read the kind.
func (c *Controllers) kindChanged(gk schema.GroupKind) {
	ctx := c.placements.started()
	if ctx == nil {
		return
	}
	selects := func(s hubv1.ResourceSelector) bool {
		return s.APIGroup == gk.Group && (s.Kind == gk.Kind || s.Kind == "*")
	}
	needs := func(r hubv1.ReferenceRule) bool { return r.APIGroup == gk.Group && r.Kind == gk.Kind }
	c.wakePlacements(ctx, func(p hubv1.PlacementObject) bool {
		return slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, selects) || slices.ContainsFunc(p.PlacementSpec().References, needs)
	})
}

// wakeBundles queues all bundles if `of` is the controller of bundles, and all operators if it is the controller of
// operators.
func (c *Controllers) wakeBundles(ctx context.Context, of *keeper) {
	all, err := scopes.Bundles(ctx, c.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the cache stops because this process ends
	}
	for _, b := range all {
		if ref := hubv1.ReferenceTo(b); c.keeperOf(ref) == of {
			of.wake(ref.Key())
		}
	}
}

// wakeOperators queues all operators. It also queues deleted operators whose state is still in a MemberCluster.
func (c *Controllers) wakeOperators(ctx context.Context) {
	c.wakeBundles(ctx, c.operators)
	now, err := c.opts.Clusters.Current(ctx)
	if err != nil {
		return // the cache stops because this process ends
	}
	for _, cluster := range now.Clusters {
		for _, o := range cluster.Status.Operators {
			c.operators.wake(types.NamespacedName{Name: o.Name})
		}
	}
}

// wakeBundle queues a bundle or operator.
func (c *Controllers) wakeBundle(of hubv1.BundleReference) { c.keeperOf(of).wake(of.Key()) }

func (c *Controllers) keeperOf(of hubv1.BundleReference) *keeper {
	if of.Kind == hubv1.FederatedOperatorKind {
		return c.operators
	}
	return c.bundles
}

func (c *Controllers) wakePlacements(ctx context.Context, concerned func(hubv1.PlacementObject) bool) {
	all, err := scopes.Placements(ctx, c.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the cache stops because this process ends
	}
	for _, p := range all {
		if concerned(p) {
			c.placements.wake(client.ObjectKeyFromObject(p))
		}
	}
}

func (c *Controllers) wakeOverrides(ctx context.Context, concerned func(hubv1.OverridePolicyObject) bool) {
	all, err := scopes.OverridePolicies(ctx, c.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the cache stops because this process ends
	}
	for _, p := range all {
		if concerned(p) {
			c.overrides.wake(client.ObjectKeyFromObject(p))
		}
	}
}
