package schedule

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/guard"
)

// lookEvery is how often the keeper checks removals and drains, and how often the wanted kinds are collected at most.
// After a change of a CustomResourceDefinition, the hub also waits for this time, until discovery shows the change.
const lookEvery = time.Second

// keeper does the periodic work of the leader. It lets decisions carry out the removals that the guard allows. It
// reports the state of drains, and the held removals. It also queues objects whose rollouts waited for other objects.
type keeper struct{ s *Scheduler }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (keeper) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (k keeper) Start(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for round := 1; ; round++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !k.s.inputs.counts.complete.Load() {
			continue
		}
		k.look(ctx)
		if err := k.s.reportDrains(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Reporting on drains")
		}
		if round%beatEvery == 0 {
			k.s.beat()
		}
	}
}

func (k keeper) look(ctx context.Context) {
	of := k.s.shared.removals.look(ownerReader{k.s, ctx})
	if _, q := k.s.leading(); q != nil {
		k.s.add(q, of.released...)
		k.s.addBehind(q, of.held...)
		k.s.addUncounted(q, k.s.shared.rollouts.released()...)
	}
	for _, n := range of.events {
		if o := k.s.ownerObject(ctx, n.owner); o != nil {
			k.s.opts.Recorder.Eventf(o, nil, n.kind, n.reason, "Schedule", "%s", decide.Short(n.message))
		}
	}
	if of.settled { // earlier leaders may have written held removals that no longer exist
		of.moved = append(of.moved, k.s.withHeldRemovals(ctx)...)
	}
	for _, o := range of.moved {
		k.updateOwner(ctx, o)
	}
}

// updateOwner updates the status of the owner of held removals. hub/report/policies writes the status of placements and
// bundles, and calls Removal for that.
func (k keeper) updateOwner(ctx context.Context, o decide.Owner) {
	if o.Kind != decide.MemberClusterKind {
		if k.s.results.onRemoval != nil {
			k.s.results.onRemoval(o.Kind, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		}
		return
	}
	if err := k.s.writeRemoval(ctx, o); err != nil {
		if !apierrors.IsConflict(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Reporting on held removals")
		}
		k.s.shared.removals.move(o) // mark the owner again, so that its status is written later
	}
}

// writeRemoval writes the held removals to the status of a MemberCluster that is being deleted. Another replica may
// write the same status at this time, because each replica writes the status of its own members.
func (s *Scheduler) writeRemoval(ctx context.Context, o decide.Owner) error {
	var c hubv1.MemberCluster
	if err := s.opts.Client.Get(ctx, client.ObjectKey{Name: o.Name}, &c); err != nil {
		return client.IgnoreNotFound(err)
	}
	after := c.DeepCopy()
	held, condition := s.Removal(o.Kind, "", o.Name, c.Status.RemovalHeld)
	after.Status.RemovalHeld = held
	if condition != nil {
		condition.ObservedGeneration = c.Generation
		meta.SetStatusCondition(&after.Status.Conditions, *condition)
	}
	if equality.Semantic.DeepEqual(c.Status, after.Status) {
		return nil
	}
	if err := s.opts.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(&c, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing status.removalHeld of MemberCluster %s: %w", o.Name, err)
	}
	return nil
}

// Removal returns the held removals of a placement, a MemberCluster or a bundle. kind is the kind of this object.
// Removal also returns the condition RemovalHeld for the status of the object. If the condition is nil, the status must
// stay as it is. `was` is the current status.removalHeld.
func (s *Scheduler) Removal(kind, namespace, name string, was *hubv1.RemovalHeld) (*hubv1.RemovalHeld, *metav1.Condition) {
	held, c, known := s.shared.removals.status(decide.Owner{Kind: kind, Namespace: namespace, Name: name})
	switch {
	case !known:
		return was, nil
	case c == nil && was != nil:
		c = &metav1.Condition{
			Type: hubv1.ConditionRemovalHeld, Status: metav1.ConditionFalse, Reason: hubv1.ReasonRemovalCancelled,
			Message: "the copies are wanted again: cancelled removal " + was.ID,
		}
	}
	return held, c
}

// OnRemoval registers a function that is called when Removal returns a new result for a placement or a bundle. kind is
// the kind of this object. Call OnRemoval before the manager starts.
func (s *Scheduler) OnRemoval(f func(kind string, key types.NamespacedName)) { s.results.onRemoval = f }

// ownerObject returns a placement, MemberCluster or bundle from the cache. It returns nil if the object does not exist.
func (s *Scheduler) ownerObject(ctx context.Context, o decide.Owner) client.Object {
	var into client.Object
	switch o.Kind {
	case decide.MemberClusterKind:
		into = &hubv1.MemberCluster{}
	case "ClusterPlacement":
		into = &hubv1.ClusterPlacement{}
	case "Placement":
		into = &hubv1.Placement{}
	case hubv1.BundleKind, hubv1.ClusterBundleKind, hubv1.FederatedOperatorKind:
		into = hubv1.BundleReference(o).New()
	default:
		return nil
	}
	if s.opts.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, into, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	return into
}

// withHeldRemovals returns the placements, bundles and MemberClusters whose status shows held removals.
func (s *Scheduler) withHeldRemovals(ctx context.Context) []decide.Owner {
	var out []decide.Owner
	placements, err := scopes.Placements(ctx, s.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil // the cache is stopping, and so is this process
	}
	for _, p := range placements {
		if hubv1.RemovalHeldOf(p) != nil {
			out = append(out, decide.OwnerOf(decide.ReferenceTo(p)))
		}
	}
	bundles, err := scopes.Bundles(ctx, s.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil
	}
	for _, b := range bundles {
		if hubv1.RemovalHeldOf(b) != nil {
			out = append(out, decide.OwnerOfBundle(hubv1.ReferenceTo(b)))
		}
	}
	now, err := s.opts.Clusters.Current(ctx)
	if err != nil {
		return nil
	}
	for _, c := range now.Clusters {
		if hubv1.RemovalHeldOf(c) != nil {
			out = append(out, decide.Owner{Kind: decide.MemberClusterKind, Name: c.Name})
		}
	}
	return out
}

// ownerReader reads from the cache what the guard needs: the numbers of copies, the limits and the held removals. It
// implements the interface counts.
type ownerReader struct {
	s   *Scheduler
	ctx context.Context
}

func (r ownerReader) copiesOf(group decide.Owner) int { return r.s.inputs.counts.copiesOf(group) }

func (r ownerReader) copiesOn(cluster string) int { return r.s.inputs.counts.objectsOn(cluster) }

func (r ownerReader) limitOf(placement decide.Owner) guard.Limit {
	limit := r.s.shared.removals.opts.Limit
	if p, ok := r.s.ownerObject(r.ctx, placement).(hubv1.PlacementObject); ok && p.PlacementSpec().RemovalLimit != nil {
		limit = limit.With(p.PlacementSpec().RemovalLimit.Copies, p.PlacementSpec().RemovalLimit.Percent)
	}
	return limit
}

func (r ownerReader) shown(o decide.Owner) (*hubv1.RemovalHeld, string) {
	found := r.s.ownerObject(r.ctx, o)
	if found == nil {
		return nil, ""
	}
	return hubv1.RemovalHeldOf(found), found.GetAnnotations()[hubv1.ConfirmRemovalAnnotation]
}
