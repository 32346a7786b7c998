package schedule

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
)

type (
	key   = hubv1.ObjectIdentity
	queue = workqueue.TypedRateLimitingInterface[key]
)

// sources are what wakes an object's decision. An event carries nothing but the key.
func (s *Scheduler) sources(c cache.Cache) []source.TypedSource[key] {
	return []source.TypedSource[key]{
		watch(c, &hubv1.ResourceBinding{}, keyOf[*hubv1.ResourceBinding], bindingMoved[*hubv1.ResourceBinding]),
		watch(c, &hubv1.ClusterResourceBinding{}, keyOf[*hubv1.ClusterResourceBinding], bindingMoved[*hubv1.ClusterResourceBinding]),
		watch(c, &hubv1.Placement{}, selectedBy[*hubv1.Placement](s), specMoved[*hubv1.Placement]),
		watch(c, &hubv1.ClusterPlacement{}, selectedBy[*hubv1.ClusterPlacement](s), specMoved[*hubv1.ClusterPlacement]),
		watch(c, &hubv1.MemberCluster{}, s.bound, clusterMoved),
		watch(c, &corev1.Namespace{}, s.inNamespace, func(a, b *corev1.Namespace) bool { return !maps.Equal(a.Labels, b.Labels) }),
		source.TypedFunc[key](s.templateSource),
	}
}

// watch wakes the keys of an object before and after each change that matters.
func watch[T client.Object](c cache.Cache, kind T, keys func(context.Context, T) []key, matters func(before, after T) bool) source.TypedSource[key] {
	return source.TypedKind(c, kind, handler.TypedEnqueueRequestsFromMapFunc(handler.TypedMapFunc[T, key](keys)), predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool { return matters(e.ObjectOld, e.ObjectNew) },
	})
}

func keyOf[T hubv1.BindingObject](_ context.Context, b T) []key { return []key{hubv1.ObjectOf(b)} }

// bindingMoved leaves out the rows, unless one of them may end a withdrawal.
func bindingMoved[T hubv1.BindingObject](before, after T) bool {
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		len(before.GetFinalizers()) != len(after.GetFinalizers()) ||
		!maps.Equal(withdrawnRows(before), withdrawnRows(after))
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

// specMoved is true also for another object of the same name: if the watch missed the end of the first, the second comes as its change.
func specMoved[T client.Object](before, after T) bool {
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
}

// clusterMoved compares what decisions see of a cluster.
func clusterMoved(before, after *hubv1.MemberCluster) bool {
	return before.Generation != after.Generation || away(before) != away(after) ||
		!equality.Semantic.DeepEqual(clusterOf(before, "", nil), clusterOf(after, "", nil))
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
	bindings, err := allBindings(ctx, s.Client)
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
	s.mu.Lock()
	s.ctx, s.queue = ctx, q
	s.mu.Unlock()
	for gk := range s.wants.current() {
		s.wakeObjects(gk)
	}
	return nil
}

func (s *Scheduler) leading() (context.Context, queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx, s.queue
}

// wakeObject queues an object; one of a first list behind those that change now.
func (s *Scheduler) wakeObject(id key) {
	_, q := s.leading()
	if q == nil {
		return
	}
	state, _ := s.Templates.State(id.GroupKind())
	if pq, ok := q.(priorityqueue.PriorityQueue[key]); ok && !state.Synced {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, id)
		return
	}
	q.Add(id)
}

func (s *Scheduler) wakeObjects(gk schema.GroupKind) {
	for _, id := range s.Templates.List(gk) {
		s.wakeObject(id)
	}
}

// wakeKind queues what has bindings of a kind: whether its objects can be read has changed.
func (s *Scheduler) wakeKind(gk schema.GroupKind) {
	ctx, q := s.leading()
	if q == nil {
		return
	}
	for _, id := range s.boundOf(ctx, func(id key) bool { return id.GroupKind() == gk }) {
		q.Add(id)
	}
}
