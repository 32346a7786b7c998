package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// maxAwaited is the maximum number of objects of a kind that are stored until their watch events arrive. It limits the
// memory if a watch hangs and delivers no event.
const maxAwaited = 256

// Await tells the Set that the API server has returned the object u as the answer to a write. The watch will deliver an
// event with the same resourceVersion. The Set then stores u and need not decode the event. The stored object changes
// only when the event arrives.
func (s *Set) Await(gvk schema.GroupVersionKind, u *unstructured.Unstructured) {
	if k := s.part(gvk, u.GetNamespace()); k != nil && k.ahead(u) {
		if object := k.transform(u); object != nil {
			k.willCome(object)
		}
	}
}

// ahead reports whether the object is newer than the last event of the watch.
func (k *kind) ahead(o metav1.Object) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return hubv1.Older(k.place.version, o.GetResourceVersion())
}

func (k *kind) willCome(o metav1.Object) {
	if !k.ahead(o) {
		return // its event has already arrived
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.await == nil || len(k.await) >= maxAwaited {
		k.await = map[string]metav1.Object{}
	}
	k.await[Key(o.GetNamespace(), o.GetName())] = o
}

// awaited returns the object that Await has stored under key, if the event g is about the same UID and resourceVersion.
// Otherwise it returns nil. In both cases it drops the stored object, because the next event about an object ends the
// wait for it.
func (k *kind) awaited(key string, g *glance) metav1.Object {
	k.mu.Lock()
	defer k.mu.Unlock()
	object := k.await[key]
	if object == nil {
		return nil
	}
	delete(k.await, key)
	if !g.is(object) {
		return nil
	}
	return object
}

// continueAt sets the resourceVersion at which the next watch begins.
func (k *kind) continueAt(version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.place.version = version
}
