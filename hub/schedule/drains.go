package schedule

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func unavailable(d *hubv1.DrainPolicy) int {
	return int(ptr.Deref(d.MaxUnavailable, hubv1.MostUnavailable))
}

// drains knows which objects are moving from each cluster: those whose bindings say so, and those that were let go a moment ago. Its bounds
// hold over a change of the leader, since bindings are read before the first decision.
type drains struct {
	wake func(key)

	mu       sync.Mutex
	clusters map[string]*drain
	others   map[types.NamespacedName][]other // of bindings that have such entries
}

// other is an entry that is not Present.
type other struct {
	cluster string
	moving  bool // its replacements are awaited
}

// drain is what is known of one cluster.
type drain struct {
	most    int                           // may be moving
	began   int                           // objects that the cluster had when the first of them asked to leave
	others  int                           // entries of the cluster that are not Present
	moving  map[types.NamespacedName]bool // as the bindings say
	granted map[types.NamespacedName]bool // the bindings do not say so yet; true once that is written
	stays   map[key]string                // why objects cannot be moved
	waiting []key                         // in order; some may not wait any more
	queued  map[key]bool
}

func (d *drains) of(cluster string) *drain {
	c := d.clusters[cluster]
	if c == nil {
		c = &drain{moving: map[types.NamespacedName]bool{}, granted: map[types.NamespacedName]bool{}, stays: map[key]string{}, queued: map[key]bool{}}
		if d.clusters == nil {
			d.clusters = map[string]*drain{}
		}
		d.clusters[cluster] = c
	}
	return c
}

// room is how many more objects may be moving.
func (c *drain) room() int {
	n := c.most - len(c.moving)
	for b := range c.granted {
		if !c.moving[b] {
			n--
		}
	}
	return n
}

// next are those that wait and for which there is room.
func (c *drain) next() []key {
	n := max(0, min(c.room(), len(c.waiting)))
	out := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	for _, id := range out {
		delete(c.queued, id)
	}
	return out
}

// ask lets an object leave a cluster unless enough are on their way. One that is refused is woken when there is room.
// objects is how many the cluster has.
func (d *drains) ask(cluster string, id key, most, objects int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(cluster)
	c.most, c.began = most, max(c.began, objects)
	binding := id.BindingKey()
	if _, granted := c.granted[binding]; granted || c.moving[binding] {
		return true
	}
	if c.room() > 0 {
		c.granted[binding] = false
		return true
	}
	if !c.queued[id] {
		c.queued[id] = true
		c.waiting = append(c.waiting, id)
	}
	return false
}

// decided takes note of a decision: which clusters the object leaves now, and where it cannot be replaced, by reason. What was granted to it and not
// used is given to others. What was written counts until the binding shows it: a decision may be made on one that does not yet.
func (d *drains) decided(id key, leaves []string, stays map[string]string, written bool) {
	var woken []key
	binding := id.BindingKey()
	d.mu.Lock()
	for cluster := range stays {
		d.of(cluster)
	}
	for name, c := range d.clusters {
		switch before, granted := c.granted[binding]; {
		case granted && slices.Contains(leaves, name):
			c.granted[binding] = before || written
		case !before:
			delete(c.granted, binding)
		}
		if why := stays[name]; why != "" {
			c.stays[id] = why
		} else {
			delete(c.stays, id)
		}
		woken = append(woken, c.next()...)
	}
	d.mu.Unlock()
	d.wakeAll(woken)
}

// see takes note of what a binding says; b is nil if it is gone.
func (d *drains) see(binding types.NamespacedName, b hubv1.BindingObject) {
	var now []other
	if b != nil {
		for _, e := range b.BindingSpec().Clusters {
			if e.State != hubv1.TargetPresent {
				now = append(now, other{e.Name, e.State == hubv1.TargetEvicting && len(awaited(b, e, 0)) > 0})
			}
		}
	}
	var woken []key
	d.mu.Lock()
	before := d.others[binding]
	for _, o := range before {
		c := d.of(o.cluster)
		c.others--
		delete(c.moving, binding)
	}
	for name, c := range d.clusters {
		if len(c.granted) > 0 && (b == nil || b.BindingSpec().Target(name) == nil) {
			delete(c.granted, binding)
		}
	}
	for _, o := range now {
		c := d.of(o.cluster)
		delete(c.granted, binding)
		c.others++
		if o.moving {
			c.moving[binding] = true
		}
	}
	for _, c := range d.clusters {
		woken = append(woken, c.next()...)
	}
	if d.others == nil {
		d.others = map[types.NamespacedName][]other{}
	}
	if d.others[binding] = now; now == nil {
		delete(d.others, binding)
	}
	d.mu.Unlock()
	d.wakeAll(woken)
}

func (d *drains) wakeAll(ids []key) {
	for _, id := range ids {
		d.wake(id)
	}
}

// ended takes note that a cluster is not drained any more.
func (d *drains) ended(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.clusters[cluster]; c != nil {
		c.began = 0
	}
}

// remains are the objects that cannot be moved from a cluster, in order.
type remains struct{ blocked, staying []key }

// left counts what is left of a drain, beside objects that are Present, and what cannot be moved.
func (d *drains) left(cluster string) (s hubv1.DrainStatus, r remains) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.clusters[cluster]
	if c == nil {
		return s, r
	}
	s.Total, s.Remaining, s.Moving = int32(c.began), int32(c.others), int32(len(c.moving))
	for id, why := range c.stays {
		if why == hubv1.ReasonWantedEverywhere {
			r.staying = append(r.staying, id)
		} else {
			r.blocked = append(r.blocked, id)
		}
	}
	s.Blocked, s.Staying = int32(len(r.blocked)), int32(len(r.staying))
	for _, ids := range [][]key{r.blocked, r.staying} {
		slices.SortFunc(ids, func(a, b key) int { return cmp.Compare(a.String(), b.String()) })
	}
	return s, r
}
