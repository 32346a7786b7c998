package schedule

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
)

// leastPerSecond is the number of evictions in a second of a fleet with few objects.
const leastPerSecond = 10

// Failover limits evictions.
type Failover struct {
	// Grace is how long a new leader waits before it evicts objects from unreachable clusters. Default 60 s.
	Grace time.Duration
	// PerSecond is the maximum number of objects that are evicted in a second. After a pause, this number of objects may
	// be evicted at once. Default: 10, or 1 % of the objects that are on clusters, if that is more. A large fleet that
	// loses a region would otherwise need hours.
	PerSecond int
	// MaxAway is the maximum percentage of unreachable clusters. If more clusters are unreachable, no objects move away
	// from them. Default placement.DefaultMaxAway.
	MaxAway int
	// Confirmed reports whether this process has probed the cluster. Only then is the status of the cluster known to be up
	// to date. Default: always true.
	Confirmed func(cluster string) bool
}

// WithDefaults fills in the unset fields.
func (o Failover) WithDefaults() Failover {
	o.Grace = cmp.Or(o.Grace, time.Minute)
	o.MaxAway = cmp.Or(o.MaxAway, placement.DefaultMaxAway)
	if o.Confirmed == nil {
		o.Confirmed = func(string) bool { return true }
	}
	return o
}

// limits has the limits for evictions and drains, and counts their use by all objects. The method `of` returns the
// limits for one decision. The method claim reserves the evictions and drains of a decision before the binding is
// written. The method decided takes back unused reservations after the write.
type limits struct {
	opts    Failover
	drains  drains
	answers answers
	placed  func() int // the number of objects that are on clusters

	mu       sync.Mutex
	since    time.Time         // start of the lead; zero if this process does not lead
	free     time.Time         // time of the last reserved eviction
	reserved map[key]time.Time // reserved times of evictions that were not made yet
}

// begin records the time at which this process becomes the leader.
func (l *limits) begin(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = now
}

// of returns the limits for the decision on one object. It does not reserve anything.
func (l *limits) of(in decide.Input) *decide.Limits {
	out := &decide.Limits{
		MaxAway: l.opts.MaxAway, Settling: l.settling(in.Now), EvictionIn: l.evictionIn(in.Object.ID, in.Now),
		AnswersAwaited: l.answers.awaited(in.Object.ID.GroupKind(), in.Now),
	}
	for _, c := range in.Facts.Clusters {
		if c.Spec.Drain == nil && !evicts(c) {
			continue
		}
		t := in.Spec().Target(c.Name)
		switch {
		case t == nil || t.State == hubv1.TargetEvicting:
		case c.Spec.Drain == nil && !l.opts.Confirmed(c.Name):
			out.Untried = with(out.Untried, c.Name)
		case c.Spec.Drain != nil && l.drains.full(c.Name, in.Object.ID, unavailable(c.Spec.Drain)):
			out.FullDrains = with(out.FullDrains, c.Name)
		}
	}
	return out
}

// evicts reports whether the cluster has a taint with the effect NoExecute.
func evicts(c *hubv1.MemberCluster) bool {
	noExecute := func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }
	return slices.ContainsFunc(c.Spec.Taints, noExecute) || slices.ContainsFunc(c.Status.Taints, noExecute)
}

func with(set map[string]bool, name string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	set[name] = true
	return set
}

// claim reserves the evictions and drains of a decision. It returns false if a limit has changed since the decision, so
// that the decision must be made again.
func (l *limits) claim(in decide.Input, c decide.Claims) bool {
	l.answers.claim(in.Object.ID.GroupKind(), c.Answers, in.Now)
	for _, name := range c.Unreplaced {
		l.drains.began(name, in.Objects[name])
	}
	asKnown, evicted := true, c.EvictionWaits
	for _, name := range slices.Concat(c.Evicted, c.FullDrains) {
		m := in.Facts.Cluster(name)
		if m == nil || m.Spec.Drain == nil {
			evicted = true
			continue
		}
		full := slices.Contains(c.FullDrains, name)
		asKnown = l.drains.ask(name, in.Object.ID, unavailable(m.Spec.Drain), in.Objects[name]) != full && asKnown
	}
	if evicted {
		asKnown = (l.reserve(in.Object.ID, in.Now) > 0) == c.EvictionWaits && asKnown
	}
	return asKnown
}

// decided is called after a decision. It removes the reservations that the decision has used or does not need any more.
func (l *limits) decided(id key, c decide.Claims, written bool) {
	l.drains.decided(id, c, written)
	if !c.EvictionWaits && (written || len(c.Evicted) == 0) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.reserved, id)
	}
}

// settling returns how long a new leader must still wait before it evicts objects from unreachable clusters. It is 0 if
// the wait is over.
func (l *limits) settling(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		return l.opts.Grace
	}
	return max(0, l.since.Add(l.opts.Grace).Sub(now))
}

// evictionIn returns how long the object must wait until it may be evicted without exceeding PerSecond.
func (l *limits) evictionIn(id key, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.place(id, now).Sub(now))
}

// reserve returns the same wait as evictionIn, and reserves the time of the object's eviction.
func (l *limits) reserve(id key, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.place(id, now)
	if _, reserved := l.reserved[id]; !reserved {
		l.free = at
		if l.reserved == nil {
			l.reserved = map[key]time.Time{}
		}
		l.reserved[id] = at
	}
	return max(0, at.Sub(now))
}

// place returns the time at which the object may be evicted. If no object was evicted in the last second, PerSecond
// objects may be evicted at once.
func (l *limits) place(id key, now time.Time) time.Time {
	if at, reserved := l.reserved[id]; reserved {
		return at
	}
	last := l.free
	if earliest := now.Add(-time.Second); last.Before(earliest) {
		last = earliest
	}
	return last.Add(time.Second / time.Duration(l.perSecond()))
}

// perSecond returns the maximum number of evictions in a second.
func (l *limits) perSecond() int {
	if l.opts.PerSecond > 0 || l.placed == nil {
		return cmp.Or(l.opts.PerSecond, leastPerSecond)
	}
	return max(leastPerSecond, l.placed()/100)
}
