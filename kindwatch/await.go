package kindwatch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// mostAwaited is the maximum number of awaited objects of a kind, because a watch that hangs delivers none of them.
const mostAwaited = 256

// Await passes the object from the response to a write. The object of the watch event with that version is then not
// decoded. The stored object changes only with the event.
func (s *Set) Await(gvk schema.GroupVersionKind, u *unstructured.Unstructured) {
	if k := s.part(gvk, u.GetNamespace()); k != nil && k.ahead(u) {
		if object := k.transform(u); object != nil {
			k.willCome(object)
		}
	}
}

// ahead reports whether the watch has not reached the version yet.
func (k *kind) ahead(o metav1.Object) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return hubv1.Older(k.version, o.GetResourceVersion())
}

func (k *kind) willCome(o metav1.Object) {
	if !k.ahead(o) {
		return // its event has already arrived
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.await == nil || len(k.await) >= mostAwaited {
		k.await = map[string]metav1.Object{}
	}
	k.await[Key(o.GetNamespace(), o.GetName())] = o
}

// awaited returns the object if an event has exactly the awaited version. After any event about the object, the object
// is no longer awaited.
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

// continueAt records the resourceVersion from which the watch continues.
func (k *kind) continueAt(version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version = version
}
