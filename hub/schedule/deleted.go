package schedule

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// deletedHolds is how long the hub remembers that an uncached read has shown an object as deleted.
const deletedHolds = 10 * time.Minute

// gone has the hub objects that were deleted, and the bindings whose copies are confirmed to be removed from all
// members.
type gone struct {
	objects deletedObjects
	copies  withdrawals
}

// deletedObjects has the objects that an uncached read has shown as deleted, or as being deleted. The steps after the
// decision to delete their copies therefore need no further read. The decision itself never uses this record, and
// always reads the API server. A deleted object returns with the same UID only if the hub is restored from a backup. An
// object that the watch shows again is therefore removed from the record.
type deletedObjects struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	seen map[key]deletedObject
	// vanished has the objects that the watch has lately shown as deleted, with the time. If an object of the same name
	// exists now, the hub knows that it saw the deletion of the earlier one.
	vanished map[key]time.Time
}

type deletedObject struct {
	uid types.UID
	at  time.Time
}

// knows reports whether an uncached read has shown that the binding's object is deleted.
func (d *deletedObjects) knows(id key, b hubv1.BindingObject) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.seen[id]
	return ok && o.uid == b.BindingSpec().ObjectRef.UID && d.clock.Since(o.at) < deletedHolds
}

// learn records that the object of the binding is deleted. at is the time at which the uncached read began.
func (d *deletedObjects) learn(id key, b hubv1.BindingObject, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[key]deletedObject{}
	}
	d.seen[id] = deletedObject{uid: b.BindingSpec().ObjectRef.UID, at: at}
}

// saw records that the watch has shown the deletion of an object.
func (d *deletedObjects) saw(id key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.vanished == nil {
		d.vanished = map[key]time.Time{}
	}
	const maxUIDs = 1000
	if len(d.vanished) >= maxUIDs {
		maps.DeleteFunc(d.vanished, func(_ key, at time.Time) bool { return d.clock.Since(at) >= deletedHolds })
	}
	d.vanished[id] = d.clock.Now()
}

// sawDeletion reports whether the watch has lately shown the deletion of an object of this name.
func (d *deletedObjects) sawDeletion(id key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, found := d.vanished[id]
	return found && d.clock.Since(at) < deletedHolds
}

func (d *deletedObjects) forget(id key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.seen, id)
}
