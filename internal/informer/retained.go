package informer

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sized is a part of an object that knows how much memory it takes.
type Sized interface {
	metav1.Object
	// Size returns an upper bound of the memory in bytes. Memory that parts share counts in each of them.
	Size() int64
}

// entrySize is an upper bound of the memory that a stored object takes beside its part and the text of its key.
const entrySize = 128

var errNoSize = errors.New("the stored part does not know its size")

// sizeOf returns the memory that an object takes under its key. object is nil if it was refused.
func sizeOf(key string, object metav1.Object) int64 {
	size := int64(entrySize + len(key))
	if s, ok := object.(Sized); ok {
		size += s.Size()
	}
	return size
}

// checkSized returns an error if the memory is limited, and the part does not know its size.
func (k *kind) checkSized(part metav1.Object) error {
	if _, ok := part.(Sized); ok || k.set.options.Retained == nil {
		return nil
	}
	return errNoSize
}

// listing has the objects of a list until the list is complete. Meanwhile, the objects that were stored before stay. Of
// both, only the larger memory counts: the list must fit without the objects that it will replace, because the server
// may have deleted some of them.
type listing struct {
	kind     *kind
	relisted bool // objects that have not changed are transformed again
	objects  map[string]metav1.Object
	size     int64
	counted  int64 // the memory that counts for the kind
}

func (k *kind) newListing(relists int) *listing {
	return &listing{kind: k, relisted: k.orders.isRelisted(relists), objects: map[string]metav1.Object{}, counted: k.recount()}
}

// begin begins the list again.
func (l *listing) begin() {
	clear(l.objects)
	l.size = 0
}

// sizeOf returns the memory of an object of the list. If the object was refused, the part that was stored before stays.
func (l *listing) sizeOf(key string) int64 {
	object, ok := l.objects[key]
	switch {
	case !ok:
		return 0
	case object == nil:
		object = l.kind.objects[key]
	}
	return sizeOf(key, object)
}

// add adds an object to the list. The object is nil if it was refused.
func (l *listing) add(key string, object metav1.Object) error {
	l.size -= l.sizeOf(key) // a hostile server may send an object twice
	l.objects[key] = object
	l.size += l.sizeOf(key)
	more := l.size - l.counted
	if more <= 0 {
		return nil
	}
	if err := l.kind.kept.Add(more); err != nil {
		return err
	}
	l.counted += more
	return nil
}

// recount sets the memory that counts for the kind to that of its stored objects, and returns it.
func (k *kind) recount() int64 {
	size := int64(0)
	for key, object := range k.objects {
		size += sizeOf(key, object)
	}
	k.kept.Shrink(size)
	return size
}
