package schedule

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

type (
	key   = hubv1.ObjectIdentity
	queue = workqueue.TypedRateLimitingInterface[key]
)

// sources returns the event sources of the controller. counting delays the first decision until all bindings are
// counted. begin stores the queue. From then on, BindingChanged and the functions below it put keys into the queue.
func (s *Scheduler) sources() []source.TypedSource[key] {
	return []source.TypedSource[key]{source.TypedFunc[key](s.counting), source.TypedFunc[key](s.begin)}
}

// BindingChanged is called for every change of a binding. While another replica is the leader, it updates only the data
// in memory.
func (s *Scheduler) BindingChanged(_ context.Context, c changes.Binding) {
	s.count(c)
	needed := s.inputs.references.see(c, func() bool {
		object, found := s.opts.Templates.Get(hubv1.ObjectOf(c.Before))
		return found && object.GetDeletionTimestamp() == nil
	})
	s.wants.bindingChanged(c)
	s.reported(c)
	_, q := s.leading()
	if q == nil || c.Parts&changes.Any != 0 && !moved(c) {
		return
	}
	if !c.Initial {
		s.add(q, needed...)
		// The object of the binding may have been created or deleted. The objects that need it are queued, because their
		// conditions show whether a needed object exists.
		if c.Before == nil || c.After == nil {
			s.addBehind(q, s.inputs.references.referrersOf(hubv1.ObjectOf(cmp.Or(c.After, c.Before)))...)
		}
	}
	for _, b := range []hubv1.BindingObject{c.Before, c.After} {
		switch {
		case b == nil:
		case c.Initial:
			s.addBehind(q, hubv1.ObjectOf(b))
		default:
			s.add(q, hubv1.ObjectOf(b))
		}
	}
}

// moved reports whether a change of a binding may lead to another decision. A change of rows matters only if it may end
// one of these: a withdrawal, an eviction, a wait of a rollout, or a former reference. A former reference is a needed
// object that the hub object does not need any more, but a copy may still need.
func moved(c changes.Binding) bool {
	return c.Parts&(changes.Spec|changes.Ending|changes.Finalizers) != 0 ||
		!maps.Equal(withdrawnRows(c.Before), withdrawnRows(c.After)) || !maps.Equal(rowsOfEviction(c.Before), rowsOfEviction(c.After)) ||
		!maps.Equal(rowsOfRollout(c.Before), rowsOfRollout(c.After)) || !maps.Equal(rowsOfFormer(c.Before), rowsOfFormer(c.After))
}

// rowsOfFormer returns the rows of all clusters while the binding has a former reference: an object that the hub object
// does not need any more, but that a copy may still need. Some rows may end the former reference. rowsOfFormer copies
// only the fields that matter. It returns nil if the binding has no former reference.
func rowsOfFormer(b hubv1.BindingObject) map[string]hubv1.ClusterRow {
	if !slices.ContainsFunc(b.BindingSpec().References, func(r hubv1.BindingReference) bool { return r.Former }) {
		return nil
	}
	rows := map[string]hubv1.ClusterRow{}
	for _, r := range b.BindingStatus().Clusters {
		rows[r.Name] = hubv1.ClusterRow{Applied: r.Applied, Generation: r.Generation}
	}
	return rows
}

// PlacementChanged is called for a placement whose spec or rollout annotations changed, or whose deletion began. It
// queues the objects of the kinds that the placement selects.
func (s *Scheduler) PlacementChanged(ctx context.Context, c changes.Placement) {
	s.wants.refresh()
	s.wakeSets(ctx)
	s.wakeBehind(func() (keys []key) {
		for _, p := range []hubv1.PlacementObject{c.Before, c.After} {
			if p != nil {
				keys = append(keys, s.selectedBy(p)...)
			}
		}
		return keys
	})
}

// OverridePolicyChanged is called for an override policy whose spec changed, or whose deletion began. If the policy
// excludes clusters, it queues the objects of the selected kinds. It also queues the objects of these kinds that have a
// rollout.
func (s *Scheduler) OverridePolicyChanged(ctx context.Context, c changes.OverridePolicy) {
	s.wakeSets(ctx)
	s.wakeBehind(func() (keys []key) {
		for _, p := range []hubv1.OverridePolicyObject{c.Before, c.After} {
			if p != nil {
				keys = append(keys, s.excludedBy(p)...)
				keys = append(keys, s.stagedBy(p)...)
			}
		}
		return keys
	})
}

// BundleChanged is called for a bundle whose deletion began, and for a deleted bundle. It queues the objects of the
// bundle. The removals of objects that the bundle no longer contained are then not held any more. It is also called
// when a user requests an undo, and then queues the step of the bundle.
func (s *Scheduler) BundleChanged(_ context.Context, c changes.Bundle) {
	of := hubv1.ReferenceTo(cmp.Or(c.After, c.Before))
	if c.Parts&changes.Verbs != 0 {
		s.wakeSet(of, 0)
	}
	if c.Parts != 0 && c.Parts&(changes.Deleted|changes.Ending) == 0 {
		return
	}
	s.wakeBehind(func() []key { return s.opts.Templates.StoredOf(of) })
}

// NamespaceChanged is called for a namespace whose labels changed. It queues the objects of the namespace.
func (s *Scheduler) NamespaceChanged(_ context.Context, c changes.Namespace) {
	s.wakeBehind(func() []key { return s.inNamespace(cmp.Or(c.After, c.Before).Name) })
}

// wakeBehind queues many objects at once. They get a lower priority than objects that have changed themselves.
func (s *Scheduler) wakeBehind(keys func() []key) {
	if _, q := s.leading(); q != nil {
		s.addBehind(q, keys()...)
	}
}

// add queues objects that have changed themselves.
func (s *Scheduler) add(q queue, keys ...key) {
	s.shared.removals.pending.add(true, keys...)
	for _, k := range keys {
		q.Add(k)
	}
}

func (s *Scheduler) addBehind(q queue, keys ...key) {
	s.shared.removals.pending.add(false, keys...)
	s.addUncounted(q, keys...)
}

// addUncounted queues objects at low priority. Unlike addBehind, it does not make the guard wait for the decisions on
// these objects before the guard judges removals.
func (s *Scheduler) addUncounted(q queue, keys ...key) {
	ranked := map[int][]key{}
	for _, k := range keys {
		rank := 0
		if s.opts.Kinds.Rank != nil {
			rank = s.opts.Kinds.Rank(k.GroupKind())
		}
		ranked[rank] = append(ranked[rank], k)
	}
	// The objects whose kinds have the highest rank are queued first, because a worker takes the first object at once.
	for _, rank := range slices.Backward(slices.Sorted(maps.Keys(ranked))) {
		q.(priorityqueue.PriorityQueue[key]).AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority + rank)}, ranked[rank]...)
	}
}

// rowsOfEviction returns the rows of all clusters while a cluster of the binding has the state Evicting, because some
// rows may end the eviction. It copies only the fields that matter. The value for the empty name has
// status.observedGeneration. rowsOfEviction returns nil if no cluster has the state Evicting.
func rowsOfEviction(b hubv1.BindingObject) map[string]hubv1.ClusterRow {
	if !slices.ContainsFunc(b.BindingSpec().Clusters, func(e hubv1.BindingTarget) bool { return e.State == hubv1.TargetEvicting }) {
		return nil
	}
	status := b.BindingStatus()
	rows := map[string]hubv1.ClusterRow{}
	for _, r := range status.Clusters {
		rows[r.Name] = hubv1.ClusterRow{Applied: r.Applied, Health: r.Health, Reason: r.Reason, Digest: r.Digest, Generation: r.Generation}
	}
	rows[""] = hubv1.ClusterRow{Generation: status.ObservedGeneration}
	return rows
}

// withdrawnRows returns the clusters that have confirmed a withdrawal. The value of the map is
// status.observedGeneration of the binding.
func withdrawnRows(b hubv1.BindingObject) map[string]int64 {
	rows := map[string]int64{}
	status := b.BindingStatus()
	for _, r := range status.Clusters {
		if r.Reason == hubv1.ReasonWithdrawn {
			rows[r.Name] = status.ObservedGeneration
		}
	}
	return rows
}

// counting waits until all bindings of the first list are counted. The scheduler makes no decision before that.
func (s *Scheduler) counting(ctx context.Context, _ queue) error {
	if !s.inputs.counts.await(ctx) {
		return ctx.Err()
	}
	s.inputs.counts.complete.Store(true)
	return nil
}

// selectedBy returns all objects of the kinds that a placement selects. If the placement selects a kind of bundles, it
// also returns the objects of all such bundles.
func (s *Scheduler) selectedBy(p hubv1.PlacementObject) []key {
	var keys []key
	for _, gk := range s.wants.kinds(p) {
		keys = append(keys, s.objects(gk, p.GetNamespace())...)
	}
	return append(keys, s.opts.Templates.ListStored(func(b hubv1.ObjectBundle) bool {
		bundle := b.Identity()
		return (p.GetNamespace() == "" || p.GetNamespace() == b.Namespace) && slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, func(r hubv1.ResourceSelector) bool {
			return r.APIGroup == bundle.Group && (r.Kind == bundle.Kind || r.Kind == everyKind)
		})
	})...)
}

// inNamespace returns the objects of a namespace.
func (s *Scheduler) inNamespace(namespace string) []key {
	var keys []key
	for gk := range s.wants.current() {
		keys = append(keys, s.objects(gk, namespace)...)
	}
	return keys
}

// objects returns the objects of a kind in one namespace. An empty namespace means all namespaces.
func (s *Scheduler) objects(gk schema.GroupKind, namespace string) []key {
	all := s.opts.Templates.List(gk)
	if namespace == "" {
		return all
	}
	var keys []key
	for _, id := range all {
		if id.Namespace == namespace {
			keys = append(keys, id)
		}
	}
	return keys
}

// bound returns every object that has a binding.
func (s *Scheduler) bound(ctx context.Context) []key {
	return s.boundOf(ctx, func(key) bool { return true })
}

func (s *Scheduler) boundOf(ctx context.Context, which func(key) bool) []key {
	bindings, err := scopes.Bindings(ctx, s.opts.Client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		// After the first list, the cache answers from memory. A read fails only when the process ends.
		ctrl.LoggerFrom(ctx).Error(err, "Waking objects")
		return nil
	}
	var keys []key
	for _, b := range bindings {
		if id := hubv1.ObjectOf(b); which(id) {
			keys = append(keys, id)
		}
	}
	return keys
}

// begin stores the queue for later changes, and queues every object. The manager calls it when this replica becomes the
// leader.
func (s *Scheduler) begin(ctx context.Context, q queue) error {
	s.lead.mu.Lock()
	s.lead.ctx, s.lead.queue = ctx, q
	s.lead.mu.Unlock()
	s.shared.limits.begin(s.opts.Clock.Now())
	s.shared.removals.begin()
	s.shared.sets.forget(nil)
	now, err := s.opts.Clusters.Current(ctx)
	if err != nil {
		return err
	}
	s.clusters.begin(now.Clusters)
	s.learnRollouts(ctx)
	s.wakeSets(ctx)
	for gk := range s.opts.Templates.StoredKinds().Union(s.wants.current()) {
		s.replay(ctx, q, s.opts.Templates.List(gk)...)
	}
	s.addBehind(q, s.bound(ctx)...)
	return nil
}

// replay queues objects after a first list. An object without a binding may be new and gets the priority of a new
// change. All other objects get a lower priority.
func (s *Scheduler) replay(ctx context.Context, q queue, ids ...key) {
	var bound []key
	for _, id := range ids {
		if s.opts.Client.Get(ctx, id.BindingKey(), hubv1.NewBinding(id.BindingKey()), client.UnsafeDisableDeepCopy) == nil {
			bound = append(bound, id)
			continue
		}
		s.add(q, id)
	}
	s.addBehind(q, bound...)
}

func (s *Scheduler) leading() (context.Context, queue) {
	s.lead.mu.Lock()
	defer s.lead.mu.Unlock()
	return s.lead.ctx, s.lead.queue
}

// wakeObject queues a changed object. It ignores objects of the first list of a kind, because WakeKind queues them at a
// lower priority. Thousands of such objects must not delay later changes.
func (s *Scheduler) wakeObject(id key) {
	_, q := s.leading()
	if q == nil {
		return
	}
	if state, _ := s.opts.Templates.StateOf(id); state.Delivered {
		s.add(q, id)
	}
}

func (s *Scheduler) wakeObjects(gk schema.GroupKind) {
	if _, q := s.leading(); q != nil {
		s.addBehind(q, s.opts.Templates.List(gk)...)
	}
}

// WakeKind queues all objects of a kind, even objects that no longer exist but still have a binding. It is called after
// the first list of the kind, and after its watch has failed or recovered. It is also called after a change of the
// versions that clusters may get.
func (s *Scheduler) WakeKind(gk schema.GroupKind) {
	ctx, q := s.leading()
	if q == nil {
		return
	}
	go func() {
		s.replay(ctx, q, s.opts.Templates.List(gk)...)
		s.addBehind(q, s.boundOf(ctx, func(id key) bool { return id.GroupKind() == gk })...)
		s.addBehind(q, s.inputs.references.needing(gk)...)
	}()
}
