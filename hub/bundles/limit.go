package bundles

import (
	"fmt"
	"sync"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// reservations has the number of objects that each Bundle will have when the writes of its last reconciliation are in
// memory. Without it, Bundles of one namespace that are stored at the same time could exceed the limit together.
type reservations struct {
	mu sync.Mutex
	of map[hubv1.BundleReference]int
}

// take returns a *refusal if the namespace of the Bundle would have more than `limit` stored objects after `added`
// more. Otherwise it reserves them. counts returns the number of stored objects of each Bundle of the namespace.
func (r *reservations) take(of hubv1.BundleReference, added, limit int, counts func() map[hubv1.BundleReference]int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if added == 0 {
		delete(r.of, of)
		return nil
	}
	stored := counts()
	own, total := stored[of], 0
	for other, reserved := range r.of {
		if other.Namespace == of.Namespace {
			stored[other] = max(stored[other], reserved)
		}
	}
	delete(stored, of)
	for _, n := range stored {
		total += n
	}
	if total+own+added > limit {
		return &refusal{hubv1.ReasonManifestLimit, fmt.Sprintf(
			"the Bundles of namespace %s have %d stored objects, this Bundle adds %d, and the limit of a namespace is %d: "+
				"delete objects or Bundles there, or ask an administrator to raise bundles.manifestsPerNamespace in the hub's chart; the stored objects stay",
			of.Namespace, total+own, added, limit)}
	}
	if r.of == nil {
		r.of = map[hubv1.BundleReference]int{}
	}
	r.of[of] = own + added
	return nil
}

// free ends the reservation of a deleted Bundle.
func (r *reservations) free(of hubv1.BundleReference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, of)
}

// withinLimit returns a *refusal if the changes would store more objects for the namespace of a Bundle than allowed.
// The stored objects are Secrets in the hub's namespace, and no quota of the Bundle's namespace counts them. Bundles
// without a namespace have no limit, because administrators write them.
func (c *Controller) withinLimit(b hubv1.BundleObject, changed []change) error {
	if c.opts.PerNamespace == 0 || b.GetNamespace() == "" {
		return nil
	}
	added := 0
	for _, ch := range changed {
		if ch.before == nil && ch.Removed.IsZero() {
			added++
		}
	}
	return c.reserved.take(hubv1.ReferenceTo(b), added, c.opts.PerNamespace, func() map[hubv1.BundleReference]int {
		stored := map[hubv1.BundleReference]int{}
		c.opts.Templates.ListStored(func(o hubv1.ObjectBundle) bool {
			if o.Namespace == b.GetNamespace() {
				stored[o.BundleReference]++
			}
			return false
		})
		return stored
	})
}
