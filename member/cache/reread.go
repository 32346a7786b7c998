package cache

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
)

const (
	// gather is how long the observer collects objects before it reads them again together. The collection is useful
	// because one changed placement changes the status settings of all its objects. These settings tell how to judge and
	// keep a status.
	gather = time.Second
	// maxReread is the maximum number of objects of a kind that are read individually within gather.
	maxReread = 50
	// relistEvery is the minimum time between two lists of a kind that the observer makes because placements changed their
	// status settings. Each list is a load for the member, and several placements may change one after the other.
	relistEvery = time.Minute
)

// rereads are the objects of one kind to read again, because the status settings of their placement have changed, or
// because a binding has claimed them. They
// must be read from the member, because the hub keeps only an observation of each object. Up to maxReread objects are
// read one by one. Namespaces with few objects come first, so that a tenant with many objects does not delay the
// others. If there are more objects, the whole kind is listed instead: at once the first time, and then at most once in
// relistEvery.
type rereads struct {
	objects map[types.NamespacedName]struct{}
	running bool // whether the next round is scheduled or running
	listing bool // whether a list of the kind is scheduled
	listed  time.Time
}

// Reread reads an object from the member again if the status settings of its placement have changed since the last
// read, or if no binding claimed the object then. The settings tell how to judge the object and what to keep of its
// status.
func (ob *Observer) Reread(id hubv1.ObjectIdentity) {
	for _, gvk := range ob.watched(id.GroupKind()) {
		object, _ := ob.watches.Get(gvk, informer.Key(id.Namespace, id.Name))
		if r, ok := object.(*record); ok && ob.outdated(r, id) {
			ob.reread(gvk, keyOf(r))
		}
	}
}

// RereadKind lists a kind again, because its conventions, which tell how to read the status, have changed.
func (ob *Observer) RereadKind(kind schema.GroupKind) {
	for _, gvk := range ob.watched(kind) {
		ob.watches.Relist(gvk)
	}
}

// watched returns the versions at which a kind is watched for bindings.
func (ob *Observer) watched(gk schema.GroupKind) (versions []schema.GroupVersionKind) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	for gvk := range ob.holders {
		if gvk.GroupKind() == gk {
			versions = append(versions, gvk)
		}
	}
	return versions
}

func (ob *Observer) reread(gvk schema.GroupVersionKind, object types.NamespacedName) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if ob.ended {
		return
	}
	r := ob.rereads[gvk]
	if r == nil {
		r = &rereads{objects: map[types.NamespacedName]struct{}{}}
		ob.rereads[gvk] = r
	}
	r.objects[object] = struct{}{}
	if !r.running {
		r.running = true
		ob.options.Clock.AfterFunc(ob.gather, func() { go ob.rereadRound(gvk, r) })
	}
}

// rereadRound reads from the member again the objects of one kind that were collected in r. It lists the kind instead
// if there are too many objects or if a read failed.
func (ob *Observer) rereadRound(gvk schema.GroupVersionKind, r *rereads) {
	ob.mu.Lock()
	due := slices.Collect(maps.Keys(r.objects))
	clear(r.objects)
	ob.mu.Unlock()
	few, left := split(due)
	for i, object := range few {
		if err := ob.watches.Reread(ob.ctx, gvk, object.Namespace, object.Name); err != nil {
			left = len(few) - i
			break
		}
	}
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if left > 0 && !r.listing && !ob.ended {
		r.listing = true
		ob.options.Clock.AfterFunc(max(0, relistEvery-ob.options.Clock.Since(r.listed)), func() { go ob.relist(gvk, r) })
	}
	r.running = len(r.objects) > 0 && !ob.ended
	if r.running {
		ob.options.Clock.AfterFunc(ob.gather, func() { go ob.rereadRound(gvk, r) })
	}
}

func (ob *Observer) relist(gvk schema.GroupVersionKind, r *rereads) {
	ob.mu.Lock()
	r.listing, r.listed = false, ob.options.Clock.Now()
	ob.mu.Unlock()
	ob.watches.Relist(gvk)
}

// split returns the objects to read one by one, and the number of the other objects. It selects all objects of a
// namespace, or none of them.
func split(objects []types.NamespacedName) (few []types.NamespacedName, left int) {
	byNamespace := map[string][]types.NamespacedName{}
	for _, o := range objects {
		byNamespace[o.Namespace] = append(byNamespace[o.Namespace], o)
	}
	groups := slices.SortedFunc(maps.Values(byNamespace), func(a, b []types.NamespacedName) int { return len(a) - len(b) })
	for _, group := range groups {
		if len(few)+len(group) <= maxReread {
			few = append(few, group...)
		} else {
			left += len(group)
		}
	}
	return few, left
}

func keyOf(r *record) types.NamespacedName {
	return types.NamespacedName{Namespace: r.GetNamespace(), Name: r.GetName()}
}

func identity(gvk schema.GroupVersionKind, o metav1.Object) hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (r *record) identity() hubv1.ObjectIdentity { return identity(r.common.Value().gvk, r) }
