package schedule

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// deathHolds is how long an answer about an object that is gone is relied on.
const deathHolds = 10 * time.Minute

// deaths remembers objects that an uncached read has shown to be deleted, or to be asked to go: neither is ever taken back for one uid.
// So the steps that follow the decision, until its binding is gone, do not ask again. The decision itself always does: a hub that was
// restored from a backup brings old uids back. For the same reason an object that is seen to live is forgotten.
type deaths struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	seen map[key]death
}

type death struct {
	uid types.UID
	at  time.Time
}

// knows says whether the object of the binding was shown to be gone.
func (d *deaths) knows(id key, b hubv1.BindingObject) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.seen[id]
	return ok && o.uid == b.BindingSpec().ObjectRef.UID && d.clock.Since(o.at) < deathHolds
}

// learn notes that the object of the binding is gone, as an uncached read that began at that time has shown.
func (d *deaths) learn(id key, b hubv1.BindingObject, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[key]death{}
	}
	d.seen[id] = death{uid: b.BindingSpec().ObjectRef.UID, at: at}
}

func (d *deaths) forget(id key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.seen, id)
}
