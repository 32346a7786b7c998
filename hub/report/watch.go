package report

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/scopes"
)

// watch wakes bindings for what changes on the hub.
func (r *Reporter) watch(ctx context.Context, informers cache.Informers) error {
	placements := toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			b, _ := before.(client.Object)
			if p, ok := after.(hubv1.PlacementObject); ok && b != nil && b.GetGeneration() != p.GetGeneration() {
				r.placementChanged(p)
			}
		},
	}
	clusters := toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			b, _ := before.(*hubv1.MemberCluster)
			if a, ok := after.(*hubv1.MemberCluster); ok && b != nil && readiness(b) != readiness(a) {
				r.noteReadiness(a)
				r.unlinkedChanged(a.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if c, ok := scopes.Last(obj).(*hubv1.MemberCluster); ok {
				r.noteReadiness(&hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}) // it is not waited for
				r.WakeCluster(c.Name)
			}
		},
	}
	bindings := toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			class := pace.FirstResult
			if initial {
				class = pace.Many
			}
			r.bindingChanged(obj, class)
		},
		UpdateFunc: func(before, obj any) {
			r.bindingChanged(obj, pace.FirstResult)
			r.settingsChanged(before, obj)
			r.othersWrote(before, obj)
		},
		DeleteFunc: func(obj any) {
			if b, ok := scopes.Last(obj).(hubv1.BindingObject); ok {
				r.bindingGone(b)
			}
		},
	}
	for _, w := range []struct {
		kind    client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&hubv1.ResourceBinding{}, bindings}, {&hubv1.ClusterResourceBinding{}, bindings},
		{&hubv1.Placement{}, placements}, {&hubv1.ClusterPlacement{}, placements},
		{&hubv1.MemberCluster{}, clusters},
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

// bindingChanged takes up a new decision. For changes of the status see othersWrote.
func (r *Reporter) bindingChanged(obj any, class pace.Class) {
	b, ok := obj.(hubv1.BindingObject)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(key)
	u, wake := whenIdle, e.adopt(b)
	if e.behind {
		e.behind, u, wake = false, lastResult, true
	}
	if p, complete := e.complete(r.away, r.opts.Holds); wake && complete && b.GetDeletionTimestamp() == nil {
		// Nobody is left to report: no target, or none that is not away.
		e.reported, u = p, max(u, lastResult)
	}
	if wake {
		r.wake(key, e, u, class)
	}
}

// settingsChanged wakes a binding by whose settings the status of its object is read and merged otherwise now.
func (r *Reporter) settingsChanged(before, after any) {
	b, _ := before.(hubv1.BindingObject)
	a, ok := after.(hubv1.BindingObject)
	if !ok || b == nil || b.GetAnnotations()[hubv1.SettingsAnnotation] == a.GetAnnotations()[hubv1.SettingsAnnotation] {
		return
	}
	key := client.ObjectKeyFromObject(a)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake(key, r.entry(key), whenIdle, pace.Many)
}

// bindingGone drops what is remembered of a binding, unless another one of that name is known already.
func (r *Reporter) bindingGone(b hubv1.BindingObject) {
	key := client.ObjectKeyFromObject(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil || e.uid != b.GetUID() {
		return
	}
	recount(e.states, nil)
	delete(r.entries, key)
}

// unlinkedChanged wakes the bindings of a cluster without a link: of that only its MemberCluster says why. Those of the
// others wake with their link.
func (r *Reporter) unlinkedChanged(cluster string) {
	if _, linked := r.opts.Links.State(cluster); !linked {
		r.WakeCluster(cluster)
	}
}

func readiness(c *hubv1.MemberCluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady)
	if ready == nil {
		return ""
	}
	return string(ready.Status) + " " + ready.Reason
}

// placementChanged wakes the bindings that follow the placement: it says where their status goes.
func (r *Reporter) placementChanged(p hubv1.PlacementObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, e := range r.entries {
		if e.placement == p.GetUID() {
			r.wake(key, e, whenIdle, pace.Many)
		}
	}
}
