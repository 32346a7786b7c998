package dispatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// keysBy finds the keys of copies by the objects on which the copies depend.
type keysBy[K comparable] struct {
	mu   sync.Mutex
	keys map[K]sets.Set[types.NamespacedName]
	// objects has, for each key, the objects on which the key depends. It is the reverse of the field keys.
	objects map[types.NamespacedName][]K
}

// add records that a key depends on the objects, in addition to the objects of earlier calls. Call add before you read
// the objects. Otherwise a change of an object between the read and the call would not queue the key.
func (k *keysBy[K]) add(key types.NamespacedName, objects ...K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys, k.objects = map[K]sets.Set[types.NamespacedName]{}, map[types.NamespacedName][]K{}
	}
	for _, object := range objects {
		if k.keys[object] == nil {
			k.keys[object] = sets.New[types.NamespacedName]()
		}
		if !k.keys[object].Has(key) {
			k.keys[object].Insert(key)
			k.objects[key] = append(k.objects[key], object)
		}
	}
}

// keep sets the objects on which a key depends. It drops all objects of the key that are not in the set.
func (k *keysBy[K]) keep(key types.NamespacedName, objects sets.Set[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var kept []K
	for _, object := range k.objects[key] {
		if objects.Has(object) {
			kept = append(kept, object)
		} else if k.keys[object].Delete(key); k.keys[object].Len() == 0 {
			delete(k.keys, object)
		}
	}
	if delete(k.objects, key); kept != nil {
		k.objects[key] = kept
	}
}

// drop forgets a key, and on which objects it depends.
func (k *keysBy[K]) drop(key types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(key)
}

// of returns the keys of the copies that depend on an object.
func (k *keysBy[K]) of(object K) []types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys[object].UnsortedList()
}

// take returns the keys of the copies that depend on an object. It forgets these keys, and on which objects they
// depend.
func (k *keysBy[K]) take(object K) []types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.keys[object].UnsortedList()
	for _, key := range out {
		k.remove(key)
	}
	return out
}

// remove forgets a key, and on which objects it depends. The caller holds k.mu.
func (k *keysBy[K]) remove(key types.NamespacedName) {
	for _, object := range k.objects[key] {
		if k.keys[object].Delete(key); k.keys[object].Len() == 0 {
			delete(k.keys, object)
		}
	}
	delete(k.objects, key)
}
