package dispatch

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/overrides"
)

// Watch queues keys for every change on the hub that can change what a member shall hold. Changes of templates come
// through WakeObject, those on members through Wake.
func (d *Dispatcher) Watch(ctx context.Context, informers cache.Informers) error {
	bindings := handler(d.bindingChanged)
	policies := handler(func(before, after hubv1.OverridePolicyObject, priority int) {
		d.policyChanged(ctx, before, after, priority)
	})
	placements := handler(func(before, after hubv1.PlacementObject, priority int) {
		d.placementChanged(ctx, before, after, priority)
	})
	clusters := handler(func(before, after *hubv1.MemberCluster, _ int) { d.clusterChanged(ctx, before, after) })
	namespaces := handler(func(before, after *corev1.Namespace, _ int) { d.namespaceChanged(ctx, before, after) })
	for _, w := range []struct {
		kind    client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&hubv1.ResourceBinding{}, bindings}, {&hubv1.ClusterResourceBinding{}, bindings},
		{&hubv1.OverridePolicy{}, policies}, {&hubv1.ClusterOverridePolicy{}, policies},
		{&hubv1.Placement{}, placements}, {&hubv1.ClusterPlacement{}, placements},
		{&hubv1.MemberCluster{}, clusters}, {&corev1.Namespace{}, namespaces},
	} {
		informer, err := informers.GetInformer(ctx, w.kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T on the hub: %w", w.kind, err)
		}
		if _, err := informer.AddEventHandler(w.handler); err != nil {
			return fmt.Errorf("watching %T on the hub: %w", w.kind, err)
		}
	}
	return nil
}

func (d *Dispatcher) bindingChanged(before, after hubv1.BindingObject, priority int) {
	if before != nil && after != nil && sameSpec(before, after) {
		return
	}
	if before != nil {
		d.wakeBinding(before, priority) // also the targets that are gone from it, to drop what is remembered
	}
	if after != nil {
		d.wakeBinding(after, priority)
	}
}

func (d *Dispatcher) policyChanged(ctx context.Context, before, after hubv1.OverridePolicyObject, priority int) {
	if before != nil && after != nil && sameSpec(before, after) {
		return
	}
	d.wakeWhere(ctx, priority, func(b hubv1.BindingObject) bool { return concerns(before, b) || concerns(after, b) })
}

// sameSpec is false also for another object of the same name: if the watch missed the end of the first, the second
// comes as its change.
func sameSpec(before, after client.Object) bool {
	return before.GetUID() == after.GetUID() && before.GetGeneration() == after.GetGeneration()
}

func (d *Dispatcher) placementChanged(ctx context.Context, before, after hubv1.PlacementObject, priority int) {
	if before != nil && after != nil && sameSpec(before, after) {
		return
	}
	d.wakeWhere(ctx, priority, func(b hubv1.BindingObject) bool {
		return (after != nil && follows(b, after)) || (before != nil && follows(b, before) && withdraws(b))
	})
}

func follows(b hubv1.BindingObject, p hubv1.PlacementObject) bool {
	ref := b.BindingSpec().PlacementRef
	return ref != nil && ref.UID == p.GetUID()
}

// withdraws is true for a binding with a withdrawal to be done. A placement that is gone holds it up no more.
func withdraws(b hubv1.BindingObject) bool {
	return slices.ContainsFunc(b.BindingSpec().Clusters, func(t hubv1.BindingTarget) bool { return t.State == hubv1.TargetAbsent })
}

func (d *Dispatcher) clusterChanged(ctx context.Context, before, after *hubv1.MemberCluster) {
	if before == nil || after == nil {
		return // Engage queues everything of a new one
	}
	if !equality.Semantic.DeepEqual(before.Spec.AllowedNamespaces, after.Spec.AllowedNamespaces) {
		d.WakeCluster(ctx, after.Name)
		return
	}
	was, is := overrides.ClusterOf(before), overrides.ClusterOf(after)
	if equality.Semantic.DeepEqual(was, is) {
		return
	}
	reading, err := d.policiesThatDiffer(ctx, was, is)
	if err != nil {
		d.WakeCluster(ctx, after.Name) // too much does no harm
		return
	}
	if len(reading) == 0 {
		return
	}
	d.wakeWhere(ctx, lowPriority, func(b hubv1.BindingObject) bool {
		return b.BindingSpec().Target(after.Name) != nil && slices.ContainsFunc(reading, func(p hubv1.OverridePolicyObject) bool { return concerns(p, b) })
	}, after.Name)
}

// policiesThatDiffer are those by which something may be rendered otherwise for a cluster whose facts have changed. A
// cluster's nodes come and go, and most objects have no part in it.
func (d *Dispatcher) policiesThatDiffer(ctx context.Context, was, is overrides.Cluster) ([]hubv1.OverridePolicyObject, error) {
	all, err := scopes.OverridePolicies(ctx, d.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p hubv1.OverridePolicyObject) bool { return !overrides.Differs(p, was, is) }), nil
}

func (d *Dispatcher) namespaceChanged(ctx context.Context, before, after *corev1.Namespace) {
	if before == nil || after == nil || equality.Semantic.DeepEqual(before.Labels, after.Labels) {
		return
	}
	d.wakeWhere(ctx, normalPriority, func(b hubv1.BindingObject) bool { return b.GetNamespace() == after.Name })
}

// concerns says whether a policy may speak of a binding's object, by scope, group and kind alone: names and labels are
// looked at when the manifest is rendered.
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

// handler calls f with the object before and after an event, and the priority of what it wakes: what the first list
// brings is no news. before is the zero value for an addition, after for a deletion.
func handler[T client.Object](f func(before, after T, priority int)) toolscache.ResourceEventHandler {
	var none T
	as := func(obj any) T {
		t, _ := scopes.Last(obj).(T)
		return t
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			priority := normalPriority
			if first {
				priority = lowPriority
			}
			f(none, as(obj), priority)
		},
		UpdateFunc: func(before, after any) { f(as(before), as(after), normalPriority) },
		DeleteFunc: func(obj any) { f(as(obj), none, normalPriority) },
	}
}
