package observe

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/kindwatch"
)

// gather is how long changed wishes wait for others of the same kind: a change of a placement comes as one of each of its objects.
const gather = time.Second

// Reread looks once more at the objects of a kind if the wishes for one of them are others than those by which it was read. Of an
// object only its observation is kept, so that it has to be asked for: in one list for all objects of the kind.
func (ob *Observer) Reread(id hubv1.ObjectIdentity) {
	for _, gvk := range ob.watched(id.GroupKind()) {
		object, _ := ob.watches.Get(gvk, kindwatch.Key(id.Namespace, id.Name))
		if r, ok := object.(*record); ok && r.common.Value().wishes != ob.options.Wishes(id) {
			ob.reread(gvk)
		}
	}
}

// watched are the versions of a kind that have a holder.
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

func (ob *Observer) reread(gvk schema.GroupVersionKind) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if ob.rereads[gvk] || ob.ended {
		return
	}
	ob.rereads[gvk] = true
	time.AfterFunc(ob.gather, func() {
		ob.mu.Lock()
		delete(ob.rereads, gvk)
		ob.mu.Unlock()
		ob.watches.Relist(gvk)
	})
}

func identity(gvk schema.GroupVersionKind, o metav1.Object) hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (r *record) identity() hubv1.ObjectIdentity { return identity(r.common.Value().gvk, r) }
