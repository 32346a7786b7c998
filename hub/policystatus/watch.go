package policystatus

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/overrides"
)

// watching is one kind and what its events do.
type watching struct {
	kind    client.Object
	handler toolscache.ResourceEventHandler
}

func watch(ctx context.Context, mgr manager.Manager, all ...watching) error {
	for _, w := range all {
		informer, err := mgr.GetCache().GetInformer(ctx, w.kind)
		if err != nil {
			return fmt.Errorf("watching %s on the hub: %w", kindOf(w.kind), err)
		}
		if _, err := informer.AddEventHandler(w.handler); err != nil {
			return fmt.Errorf("watching %s on the hub: %w", kindOf(w.kind), err)
		}
	}
	return nil
}

func (c *Controllers) watchPlacements(ctx context.Context, mgr manager.Manager) error {
	policies := policyHandler(c.placements)
	// A binding that changes its placement concerns both, and those that select its object as well.
	following := handler(func(before, after hubv1.BindingObject) {
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
	})
	clusters := handler(func(before, after *hubv1.MemberCluster) {
		if before != nil && after != nil && regionOf(before) != regionOf(after) {
			c.wakePlacements(ctx, func(hubv1.PlacementObject) bool { return true })
		}
	})
	return watch(ctx, mgr,
		watching{&hubv1.MemberCluster{}, clusters},
		watching{&hubv1.Placement{}, policies}, watching{&hubv1.ClusterPlacement{}, policies},
		watching{&hubv1.ResourceBinding{}, following}, watching{&hubv1.ClusterResourceBinding{}, following})
}

func (c *Controllers) watchOverrides(ctx context.Context, mgr manager.Manager) error {
	policies := policyHandler(c.overrides)
	selected := handler(func(before, after hubv1.BindingObject) {
		if before != nil && after != nil && before.GetGeneration() == after.GetGeneration() && equality.Semantic.DeepEqual(clashes(before), clashes(after)) {
			return
		}
		for _, b := range []hubv1.BindingObject{before, after} {
			if b != nil {
				c.wakeOverrides(ctx, func(p hubv1.OverridePolicyObject) bool { return concerns(p, b) })
			}
		}
	})
	clusters := handler(func(before, after *hubv1.MemberCluster) {
		if before == nil || after == nil {
			c.wakeOverrides(ctx, func(hubv1.OverridePolicyObject) bool { return true })
			return
		}
		was, is := overrides.ClusterOf(before), overrides.ClusterOf(after)
		if equality.Semantic.DeepEqual(was, is) {
			return
		}
		c.wakeOverrides(ctx, func(p hubv1.OverridePolicyObject) bool { return overrides.Differs(p, was, is) })
	})
	namespaces := handler(func(before, after *corev1.Namespace) {
		if before == nil || after == nil || equality.Semantic.DeepEqual(before.Labels, after.Labels) {
			return
		}
		c.wakeOverrides(ctx, func(p hubv1.OverridePolicyObject) bool { return p.GetNamespace() == "" })
	})
	return watch(ctx, mgr,
		watching{&hubv1.OverridePolicy{}, policies}, watching{&hubv1.ClusterOverridePolicy{}, policies},
		watching{&hubv1.ResourceBinding{}, selected}, watching{&hubv1.ClusterResourceBinding{}, selected},
		watching{&hubv1.MemberCluster{}, clusters}, watching{&corev1.Namespace{}, namespaces})
}

// policyHandler wakes the policy itself; its keeper forgets it when it is gone.
func policyHandler(k *keeper) toolscache.ResourceEventHandler {
	return handler(func(_, after client.Object) {
		if after != nil {
			k.wake(client.ObjectKeyFromObject(after))
		}
	})
}

// clashes are the messages of the rows that tell of disagreeing policies.
func clashes(b hubv1.BindingObject) []string {
	var out []string
	for _, row := range b.BindingStatus().Clusters {
		if row.Reason == hubv1.ReasonOverrideConflict {
			out = append(out, row.Name+row.Message)
		}
	}
	return out
}

// objectChanged wakes the override policies that may select a hub object: its labels may have changed.
func (c *Controllers) objectChanged(id hubv1.ObjectIdentity) {
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

// kindChanged wakes the placements that select a kind: it is served or may be read now, or no longer.
func (c *Controllers) kindChanged(gk schema.GroupKind) {
	ctx := c.placements.started()
	if ctx == nil {
		return
	}
	selects := func(s hubv1.ResourceSelector) bool { return s.APIGroup == gk.Group && s.Kind == gk.Kind }
	c.wakePlacements(ctx, func(p hubv1.PlacementObject) bool {
		return slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, selects)
	})
}

func (c *Controllers) wakePlacements(ctx context.Context, concerned func(hubv1.PlacementObject) bool) {
	all, err := scopes.Placements(ctx, c.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the cache is ending: so is this process
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
		return // the cache is ending: so is this process
	}
	for _, p := range all {
		if concerned(p) {
			c.overrides.wake(client.ObjectKeyFromObject(p))
		}
	}
}

// handler calls f with the object before and after an event; before is the zero value for an addition, after for a
// deletion.
func handler[T client.Object](f func(before, after T)) toolscache.ResourceEventHandler {
	var none T
	as := func(obj any) T {
		t, _ := scopes.Last(obj).(T)
		return t
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f(none, as(obj)) },
		UpdateFunc: func(before, after any) { f(as(before), as(after)) },
		DeleteFunc: func(obj any) { f(as(obj), none) },
	}
}
