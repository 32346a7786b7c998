package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/placement"
)

type (
	key   = hubv1.ObjectIdentity
	queue = workqueue.TypedRateLimitingInterface[key]
)

// sources are what wakes an object's decision. An event carries nothing but the key.
func (s *Scheduler) sources(c cache.Cache) []source.TypedSource[key] {
	return []source.TypedSource[key]{
		watch(c, &hubv1.ResourceBinding{}, itself[*hubv1.ResourceBinding](s), bindingMoved[*hubv1.ResourceBinding]),
		watch(c, &hubv1.ClusterResourceBinding{}, itself[*hubv1.ClusterResourceBinding](s), bindingMoved[*hubv1.ClusterResourceBinding]),
		watch(c, &hubv1.Placement{}, behind(s, selectedBy[*hubv1.Placement](s)), specMoved[*hubv1.Placement]),
		watch(c, &hubv1.ClusterPlacement{}, behind(s, selectedBy[*hubv1.ClusterPlacement](s)), specMoved[*hubv1.ClusterPlacement]),
		watch(c, &hubv1.OverridePolicy{}, behind(s, excludedBy[*hubv1.OverridePolicy](s)), specMoved[*hubv1.OverridePolicy]),
		watch(c, &hubv1.ClusterOverridePolicy{}, behind(s, excludedBy[*hubv1.ClusterOverridePolicy](s)), specMoved[*hubv1.ClusterOverridePolicy]),
		watch(c, &hubv1.MemberCluster{}, behind(s, s.bound), clusterChanged),
		source.TypedKind(c, &hubv1.MemberCluster{}, handler.TypedFuncs[*hubv1.MemberCluster, key]{UpdateFunc: s.clusterMoved}),
		watch(c, &corev1.Namespace{}, behind(s, s.inNamespace), func(a, b *corev1.Namespace) bool { return !maps.Equal(a.Labels, b.Labels) }),
		s.counting(c),
		source.TypedFunc[key](s.templateSource),
	}
}

// watch wakes objects before and after each change that matters.
func watch[T client.Object](c cache.Cache, kind T, wake func(context.Context, T, queue), matters func(before, after T) bool) source.TypedSource[key] {
	return source.TypedKind(c, kind, handler.TypedFuncs[T, key]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q queue) { wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
			wake(ctx, e.ObjectOld, q)
			wake(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q queue) { wake(ctx, e.Object, q) },
	}, predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool { return matters(e.ObjectOld, e.ObjectNew) },
	})
}

// itself wakes the object of a binding.
func itself[T hubv1.BindingObject](s *Scheduler) func(context.Context, T, queue) {
	return func(_ context.Context, b T, q queue) { s.add(q, hubv1.ObjectOf(b)) }
}

// add queues objects that somebody waits for.
func (s *Scheduler) add(q queue, keys ...key) {
	s.removals.pending.add(true, keys...)
	for _, k := range keys {
		q.Add(k)
	}
}

// behind wakes objects of which there may be many behind those that change themselves: somebody waits for these.
func behind[T client.Object](s *Scheduler, keys func(context.Context, T) []key) func(context.Context, T, queue) {
	return func(ctx context.Context, o T, q queue) { s.addBehind(q, keys(ctx, o)...) }
}

func (s *Scheduler) addBehind(q queue, keys ...key) {
	s.removals.pending.add(false, keys...)
	addUncounted(q, keys...)
}

// addUncounted is addBehind for objects that wake because a cluster moved by itself: removals do not wait until these
// have been decided on.
func addUncounted(q queue, keys ...key) {
	q.(priorityqueue.PriorityQueue[key]).AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, keys...)
}

// bindingMoved leaves out the rows, unless one of them may end a withdrawal.
func bindingMoved[T hubv1.BindingObject](before, after T) bool {
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		len(before.GetFinalizers()) != len(after.GetFinalizers()) ||
		!maps.Equal(withdrawnRows(before), withdrawnRows(after)) || !maps.Equal(rowsOfEviction(before), rowsOfEviction(after))
}

// rowsOfEviction is what an eviction waits for: the rows without what does not matter to it. Nil if nothing is
// Evicting.
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

// withdrawnRows are the clusters whose withdrawal is confirmed, with the generation for which it is.
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

// specMoved is true also for another object of the same name: if the watch missed the end of the first, the second
// comes as its change.
func specMoved[T client.Object](before, after T) bool {
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
}

// clusterChanged is true if somebody has changed what decisions see of a cluster.
func clusterChanged(before, after *hubv1.MemberCluster) bool {
	return before.UID != after.UID || before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels)
}

// clusterMoved wakes the objects that a cluster concerns of which its status says something else, unless they wake
// because somebody changed it.
func (s *Scheduler) clusterMoved(ctx context.Context, e event.TypedUpdateEvent[*hubv1.MemberCluster], q queue) {
	before, after := e.ObjectOld, e.ObjectNew
	switch {
	case clusterChanged(before, after):
	case decide.IsAway(before) != decide.IsAway(after) || !equality.Semantic.DeepEqual(steady(before), steady(after)):
		addUncounted(q, s.bound(ctx, after)...)
	default:
		s.factsMoved(ctx, e, q)
	}
}

// factsMoved wakes the objects of kinds that a cluster serves otherwise than before, and those whose placements, or the
// rules that exclude clusters for them, read what its nodes and version are, when that changes.
func (s *Scheduler) factsMoved(ctx context.Context, e event.TypedUpdateEvent[*hubv1.MemberCluster], q queue) {
	before, after := decide.ClusterOf(e.ObjectOld), decide.ClusterOf(e.ObjectNew)
	if decide.SameCluster(before, after) {
		return
	}
	before.Revision, after.Revision = "", ""
	served := servedOtherwise(before.Served, after.Served)
	before.Served, after.Served = nil, nil
	facts := !equality.Semantic.DeepEqual(before, after)
	placements, err := scopes.Placements(ctx, s.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Waking objects")
		return
	}
	reading := map[hubv1.PlacementReference]bool{}
	for _, p := range placements {
		if compiled, err := s.memo.Compile(p); facts && ((err == nil && compiled.ReadsFacts()) || decide.DividesByCapacity(p.PlacementSpec())) {
			reading[placementKey(decide.ReferenceTo(p))] = true
		}
	}
	var excluding []hubv1.OverridePolicyObject
	if facts {
		excluding = s.excludingByFacts(ctx)
	}
	if len(reading) == 0 && len(served) == 0 && len(excluding) == 0 {
		return
	}
	bindings, err := scopes.Bindings(ctx, s.Client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Waking objects")
		return
	}
	for _, b := range bindings {
		ref, id := b.BindingSpec().PlacementRef, hubv1.ObjectOf(b)
		if served.Has(id.GroupKind()) || ref != nil && reading[placementKey(ref)] || speakOf(excluding, id) {
			s.addBehind(q, id)
		}
	}
}

// servedOtherwise are the kinds of which a cluster now says something else.
func servedOtherwise(before, after map[schema.GroupKind][]string) sets.Set[schema.GroupKind] {
	moved := sets.New[schema.GroupKind]()
	for gk, versions := range after {
		if known, ok := before[gk]; !ok || !slices.Equal(known, versions) {
			moved.Insert(gk)
		}
	}
	for gk := range before {
		if _, ok := after[gk]; !ok {
			moved.Insert(gk)
		}
	}
	return moved
}

// placementKey is the reference without what changes.
func placementKey(ref *hubv1.PlacementReference) hubv1.PlacementReference {
	return hubv1.PlacementReference{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// counting keeps how many objects each cluster gets, from before the first decision on.
func (s *Scheduler) counting(c cache.Cache) source.TypedSource[key] {
	return source.TypedFunc[key](func(ctx context.Context, _ queue) error {
		for _, kind := range []client.Object{&hubv1.ResourceBinding{}, &hubv1.ClusterResourceBinding{}} {
			informer, err := c.GetInformer(ctx, kind)
			if err != nil {
				return fmt.Errorf("counting the objects of clusters: %w", err)
			}
			handler, err := informer.AddEventHandler(s.counts.bindings(&s.limits.drains))
			if err != nil {
				return fmt.Errorf("counting the objects of clusters: %w", err)
			}
			if !toolscache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
				return ctx.Err()
			}
		}
		s.counts.complete.Store(true)
		return nil
	})
}

// steady is what decisions see of a cluster and does not change by itself, as its nodes do.
func steady(c *hubv1.MemberCluster) placement.Cluster {
	seen := decide.ClusterOf(c)
	seen.Revision, seen.Annotations, seen.Version, seen.Capacity, seen.Allocatable, seen.Nodes = "", nil, "", nil, nil, hubv1.NodeSummary{}
	seen.Served, seen.ServedInFull = nil, false
	return seen
}

// selectedBy returns the objects of the kinds that a placement selects.
func selectedBy[T hubv1.PlacementObject](s *Scheduler) func(context.Context, T) []key {
	return func(_ context.Context, p T) []key {
		var keys []key
		for _, gk := range s.wants.kinds(p) {
			keys = append(keys, s.objects(gk, p.GetNamespace())...)
		}
		return keys
	}
}

// inNamespace returns the objects of a namespace.
func (s *Scheduler) inNamespace(_ context.Context, ns *corev1.Namespace) []key {
	var keys []key
	for gk := range s.wants.current() {
		keys = append(keys, s.objects(gk, ns.Name)...)
	}
	return keys
}

// objects of a kind, in one namespace or, if that is empty, in all.
func (s *Scheduler) objects(gk schema.GroupKind, namespace string) []key {
	all := s.Templates.List(gk)
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
func (s *Scheduler) bound(ctx context.Context, _ *hubv1.MemberCluster) []key {
	return s.boundOf(ctx, func(key) bool { return true })
}

func (s *Scheduler) boundOf(ctx context.Context, which func(key) bool) []key {
	bindings, err := scopes.Bindings(ctx, s.Client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		// The cache answers from memory, after it has synced: it fails only when the process ends.
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

// templateSource keeps the queue for the changes of templates, which begin before this replica leads.
func (s *Scheduler) templateSource(ctx context.Context, q queue) error {
	s.lead.mu.Lock()
	s.lead.ctx, s.lead.queue = ctx, q
	s.lead.mu.Unlock()
	s.limits.begin(s.Clock.Now())
	s.removals.begin()
	for gk := range s.wants.current() {
		s.replay(ctx, q, s.Templates.List(gk)...)
	}
	return nil
}

// replay queues objects of a first list: those that have no binding with those that change now, as they may have been
// made a moment ago, and then the others behind all of them. No worker that waits gets one of the others before the
// first.
func (s *Scheduler) replay(ctx context.Context, q queue, ids ...key) {
	var bound []key
	for _, id := range ids {
		if s.Client.Get(ctx, id.BindingKey(), hubv1.NewBinding(id.BindingKey()), client.UnsafeDisableDeepCopy) == nil {
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

// wakeObject queues an object that changed. What the first list of its kind brings waits for wakeKind: a list of
// thousands must not hold up the changes that follow it.
func (s *Scheduler) wakeObject(id key) {
	_, q := s.leading()
	if q == nil {
		return
	}
	if state, _ := s.Templates.State(id.GroupKind()); state.Told {
		s.add(q, id)
	}
}

func (s *Scheduler) wakeObjects(gk schema.GroupKind) {
	if _, q := s.leading(); q != nil {
		s.addBehind(q, s.Templates.List(gk)...)
	}
}

// wakeKind queues the objects of a kind, and what has bindings of it: they have been read, or whether they can be has
// changed.
func (s *Scheduler) wakeKind(gk schema.GroupKind) {
	ctx, q := s.leading()
	if q == nil {
		return
	}
	go func() {
		s.replay(ctx, q, s.Templates.List(gk)...)
		s.addBehind(q, s.boundOf(ctx, func(id key) bool { return id.GroupKind() == gk })...)
	}()
}
