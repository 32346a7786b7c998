package dispatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// waiting are the keys of new copies on one cluster, with the objects that each waits for: those of an operator, the
// other objects of its bundle, or the objects that it needs.
type waiting struct {
	mu   sync.Mutex
	keys map[hubv1.ObjectIdentity]sets.Set[types.NamespacedName]
	// objects is the reverse of keys.
	objects map[types.NamespacedName][]hubv1.ObjectIdentity
}

// add notes that a key may wait for the objects, besides those of earlier calls. It comes before the look at the
// objects, so that no event between them is lost.
func (w *waiting) add(key types.NamespacedName, objects ...hubv1.ObjectIdentity) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys, w.objects = map[hubv1.ObjectIdentity]sets.Set[types.NamespacedName]{}, map[types.NamespacedName][]hubv1.ObjectIdentity{}
	}
	for _, id := range objects {
		if w.keys[id] == nil {
			w.keys[id] = sets.New[types.NamespacedName]()
		}
		if !w.keys[id].Has(key) {
			w.keys[id].Insert(key)
			w.objects[key] = append(w.objects[key], id)
		}
	}
}

// drop notes that a key does not wait.
func (w *waiting) drop(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(key)
}

// take returns and forgets the keys that wait for an object.
func (w *waiting) take(id hubv1.ObjectIdentity) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.keys[id].UnsortedList()
	for _, key := range out {
		w.remove(key)
	}
	return out
}

// remove forgets a key. It is called with the lock.
func (w *waiting) remove(key types.NamespacedName) {
	for _, id := range w.objects[key] {
		if w.keys[id].Delete(key); w.keys[id].Len() == 0 {
			delete(w.keys, id)
		}
	}
	delete(w.objects, key)
}
