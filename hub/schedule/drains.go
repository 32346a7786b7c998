package schedule

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func unavailable(d *hubv1.DrainPolicy) int {
	return int(ptr.Deref(d.MaxUnavailable, hubv1.DefaultMaxUnavailable))
}

// drains counts the objects that are moving away from each drained cluster. An object counts if its binding shows the
// move. An object also counts if the method ask has granted the move, but the binding does not show the move yet. A new
// leader reads all bindings before its first decision, so that it keeps the limits.
type drains struct {
	wake func(key)

	mu       sync.Mutex
	clusters map[string]*drain
	others   map[types.NamespacedName][]other // entries that are Evicting or Absent, by binding
}

// other is a cluster that a binding names with the state Evicting or Absent, not Present.
type other struct {
	cluster string
	moving  bool // whether its replacements are not ready yet
}

// drain is the state of the drain of one cluster.
type drain struct {
	limit   int                           // maximum number of moving objects
	began   int                           // number of the cluster's objects when the first one began to leave
	others  int                           // number of the cluster's entries that are Evicting or Absent
	moving  map[types.NamespacedName]bool // bindings that show the move of their object
	granted map[types.NamespacedName]bool // bindings that do not show the move yet; true if the move is written
	stays   map[key]string                // reasons why objects cannot be moved
	evicted map[key]bool                  // objects that this process has evicted without a replacement
	before  *int32                        // number of objects that earlier leaders evicted; nil before the first check
	waiting []key                         // in the order of arrival; some may no longer wait
	queued  map[key]bool
}

func (d *drains) of(cluster string) *drain {
	c := d.clusters[cluster]
	if c == nil {
		c = &drain{moving: map[types.NamespacedName]bool{}, granted: map[types.NamespacedName]bool{}, stays: map[key]string{}, evicted: map[key]bool{}, queued: map[key]bool{}}
		if d.clusters == nil {
			d.clusters = map[string]*drain{}
		}
		d.clusters[cluster] = c
	}
	return c
}

// room returns how many more objects may begin to move away from the drained cluster now.
func (c *drain) room() int { return c.roomFor(c.limit) }

func (c *drain) roomFor(limit int) int {
	n := limit - len(c.moving)
	for b := range c.granted {
		if !c.moving[b] {
			n--
		}
	}
	return n
}

// next returns those waiting objects that may begin to move away from the cluster now. It removes them from the waiting
// objects.
func (c *drain) next() []key {
	n := max(0, min(c.room(), len(c.waiting)))
	out := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	for _, id := range out {
		delete(c.queued, id)
	}
	return out
}

// full reports whether the object must wait, because the maximum number of objects is already moving away from the
// cluster. An object to which ask has granted a move, or that is already moving, need not wait.
func (d *drains) full(cluster string, id key, limit int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.clusters[cluster]
	if c == nil {
		return limit <= 0
	}
	binding := id.BindingKey()
	if _, granted := c.granted[binding]; granted || c.moving[binding] {
		return false
	}
	return c.roomFor(limit) <= 0
}

// ask grants the object a move away from the cluster and returns true, if fewer than `limit` objects are moving or this
// object is moving already. Otherwise ask returns false, and the object is queued again when another move ends. objects
// is the number of objects on the cluster.
func (d *drains) ask(cluster string, id key, limit, objects int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(cluster)
	c.limit, c.began = limit, max(c.began, objects)
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

// decided is called after a decision. If ask has granted the object a move that the decision does not use, decided
// takes the grant back. It also queues waiting objects that may move now. If the move was written, the grant stays
// until the binding in the cache shows the move.
func (d *drains) decided(id key, claims decide.Claims, written bool) {
	var woken []key
	binding := id.BindingKey()
	d.mu.Lock()
	for cluster := range claims.Blocked {
		d.of(cluster)
	}
	for _, cluster := range claims.Unreplaced {
		if written {
			d.of(cluster).evicted[id] = true
		}
	}
	for name, c := range d.clusters {
		switch before, granted := c.granted[binding]; {
		case granted && slices.Contains(claims.Evicted, name):
			c.granted[binding] = before || written
		case !before:
			delete(c.granted, binding)
		}
		if why := claims.Blocked[name]; why != "" {
			c.stays[id] = why
		} else {
			delete(c.stays, id)
		}
		woken = append(woken, c.next()...)
	}
	d.mu.Unlock()
	d.wakeAll(woken)
}

// see records the clusters that a binding leaves: those with the state Evicting or Absent. b is nil if the binding was
// deleted.
func (d *drains) see(binding types.NamespacedName, b hubv1.BindingObject) {
	var now []other
	if b != nil {
		for _, e := range b.BindingSpec().Clusters {
			if e.State != hubv1.TargetPresent {
				now = append(now, other{e.Name, e.State == hubv1.TargetEvicting && len(decide.Awaited(b, e, hubv1.HubObject{})) > 0})
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

// began records how many objects were on a cluster before the first one was evicted.
func (d *drains) began(cluster string, objects int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(cluster)
	c.began = max(c.began, objects)
}

// ended resets two counts of a cluster that is not drained any more: the objects at the start of the drain, and the
// objects that the drain evicted. The next drain of the cluster counts both from zero.
func (d *drains) ended(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.clusters[cluster]; c != nil {
		c.began, c.before = 0, nil
		clear(c.evicted)
	}
}

// evictedFrom returns the number of objects that a drain has withdrawn from a cluster without a replacement. An object
// counts as soon as its binding no longer names the cluster. The count starts with the number in shown, the current
// status, because an earlier leader may have withdrawn objects.
func (d *drains) evictedFrom(cluster string, shown *hubv1.DrainStatus) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(cluster)
	if c.before == nil {
		c.before = new(int32)
		if shown != nil {
			*c.before = shown.Evicted
		}
	}
	n := *c.before
	for id := range c.evicted {
		if !slices.ContainsFunc(d.others[id.BindingKey()], func(o other) bool { return o.cluster == cluster }) {
			n++
		}
	}
	return n
}

// remains are the objects that stay on a drained cluster, because they cannot move away. Both lists are sorted.
type remains struct{ blocked, staying []key }

// left returns the numbers for the status of a drain, and the objects that cannot move away from the cluster.
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
