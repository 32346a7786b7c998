package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
)

const (
	normalPriority = 0
	// lowPriority is the priority of keys that are only compared again. Keys with new changes are processed first.
	lowPriority = -100
	// The class of a key is the rank of its kind, or the negative rank for a withdrawal. topClass is the highest class,
	// and -topClass is the lowest.
	topClass = 4
)

// Rank returns the rank of a kind among keys that are due together. A kind that other kinds need has a higher rank. A
// webhook configuration or APIService has the lowest rank, because API servers call the pods behind it.
func Rank(gk schema.GroupKind) int {
	switch {
	case gk == schema.GroupKind{Kind: "Namespace"}:
		return topClass
	case gk == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		return 3
	case gk.Group == rbacv1.GroupName, gk == schema.GroupKind{Kind: "ServiceAccount"}:
		return 2
	case gk == schema.GroupKind{Kind: "ConfigMap"}, gk == schema.GroupKind{Kind: "Secret"}:
		return 1
	case operator.CallsPods(gk):
		return -1
	}
	return 0
}

// classFor returns the class of a key: the rank of the binding's kind. For a withdrawal it returns the negative rank,
// because withdrawals have the opposite order.
func classFor(b hubv1.BindingObject, t *hubv1.BindingTarget) int {
	r := Rank(hubv1.ObjectOf(b).GroupKind())
	if t != nil && t.State == hubv1.TargetAbsent {
		return -r
	}
	return r
}

// classOf returns the class of a key from its priority. The class is the rank of the key's kind, or the negative rank
// for a withdrawal. The priority is the sum of the class and of normalPriority or lowPriority.
func classOf(priority int) int {
	if priority < lowPriority/2 {
		return priority - lowPriority
	}
	return priority - normalPriority
}

// due is a key with its priority in the queue.
type due struct {
	key      types.NamespacedName
	priority int
}

// inOrder sorts keys by priority. Keys must be added in this order, because an idle worker takes the first key at once.
func inOrder(keys []due) []due {
	slices.SortStableFunc(keys, func(a, b due) int { return cmp.Compare(b.priority, a.priority) })
	return keys
}

// order is the storage of a workqueue. It returns the oldest of the keys with the highest priority.
type order struct {
	mu         sync.Mutex
	next       map[types.NamespacedName]int   // priorities of keys that were added and not handed out
	queued     map[types.NamespacedName]int   // priorities of keys that are ready
	byPriority map[int][]types.NamespacedName // keys by priority; some may have been raised or handed out since
	last       int                            // priority of the key that was handed out last
}

func newOrder() *order {
	return &order{next: map[types.NamespacedName]int{}, queued: map[types.NamespacedName]int{}, byPriority: map[int][]types.NamespacedName{}}
}

// raise sets the priority of a key before the key is added to the queue. A key that already waits with a higher
// priority keeps that priority.
func (o *order) raise(d due) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if priority, waits := o.next[d.key]; !waits || priority < d.priority {
		o.next[d.key] = d.priority
	}
}

// lastPriority returns the priority of the key that the queue returned last.
func (o *order) lastPriority() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// Push implements workqueue.Queue.
func (o *order) Push(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	priority := o.next[key]
	if before, ready := o.queued[key]; !ready || before < priority {
		o.queued[key] = priority
		o.byPriority[priority] = append(o.byPriority[priority], key)
	}
}

// Touch implements workqueue.Queue.
func (o *order) Touch(key types.NamespacedName) { o.Push(key) }

// Len implements workqueue.Queue.
func (o *order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queued)
}

// Pop implements workqueue.Queue.
func (o *order) Pop() types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		o.last = slices.Max(slices.Collect(maps.Keys(o.byPriority)))
		keys := o.byPriority[o.last]
		key := keys[0]
		if o.byPriority[o.last] = keys[1:]; len(keys) == 1 {
			delete(o.byPriority, o.last)
		}
		if priority, ready := o.queued[key]; ready && priority == o.last {
			delete(o.queued, key)
			delete(o.next, key)
			return key
		}
	}
}
