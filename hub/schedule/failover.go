package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/replicas"
)

// Failover limits what is moved away from clusters.
type Failover struct {
	// Grace is how long a new leader waits before it moves anything from clusters that are away. Default 60 s.
	Grace time.Duration
	// PerSecond is how many objects are moved in a second, and at once. Default 10.
	PerSecond int
	// MostAway is the percentage of clusters that may be away at once. Default placement.DefaultMostAway.
	MostAway int
	// Confirmed says whether this process knows that the cluster was tried lately, so that its status can be believed. Default: always.
	Confirmed func(cluster string) bool
}

// WithDefaults fills in what is unset.
func (o Failover) WithDefaults() Failover {
	o.Grace = cmp.Or(o.Grace, time.Minute)
	o.PerSecond = cmp.Or(o.PerSecond, 10)
	o.MostAway = cmp.Or(o.MostAway, placement.DefaultMostAway)
	if o.Confirmed == nil {
		o.Confirmed = func(string) bool { return true }
	}
	return o
}

// turns says when an object may leave a cluster. Asking twice gives the same answer, since a decision is made twice. A nil value lets
// everything go at once.
type turns struct {
	Failover
	drains drains

	mu    sync.Mutex
	since time.Time         // this process leads; zero if it does not
	free  time.Time         // when the next turn is to be had
	taken map[key]time.Time // turns that were given and not used
}

// begin is called when this process begins to lead.
func (t *turns) begin(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = now
}

// settled is how long it is until the hub may believe that clusters are away.
func (t *turns) settled(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		return t.Grace
	}
	return max(0, t.since.Add(t.Grace).Sub(now))
}

// turn is how long it is until the object may be moved. As many as are moved in a second may go at once after a pause.
func (t *turns) turn(id key, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.taken[id]
	if !ok {
		if earliest := now.Add(-time.Second); t.free.Before(earliest) {
			t.free = earliest
		}
		t.free = t.free.Add(time.Second / time.Duration(t.PerSecond))
		at = t.free
		if t.taken == nil {
			t.taken = map[key]time.Time{}
		}
		t.taken[id] = at
	}
	return max(0, at.Sub(now))
}

// decided takes note of a decision, and gives back a turn that is used or not wanted any more.
func (t *turns) decided(id key, p plan, written bool) {
	t.drains.decided(id, p.leaves, p.stays, written)
	if !p.waits && (written || len(p.leaves) == 0) {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.taken, id)
	}
}

// leaves names the clusters that the object is about to leave, and was not before.
func (f facts) leaves(d placement.Decision) []string {
	var out []string
	for _, r := range d.Evict {
		if e := f.spec().Target(r.Cluster); e != nil && e.State != hubv1.TargetEvicting {
			out = append(out, r.Cluster)
		}
	}
	return out
}

// notYet says of the clusters that the object is about to leave which it is not to leave yet, and why; wait is when to ask again, 0 if
// somebody will say so.
func (f facts) notYet(d placement.Decision) (hold map[string]string, wait time.Duration) {
	for _, name := range f.leaves(d) {
		m := f.world.cluster(name)
		if m == nil {
			continue
		}
		why, w := f.mayLeave(m)
		wait = earlier(wait, w)
		if why == "" {
			continue
		}
		if hold == nil {
			hold = map[string]string{}
		}
		hold[name] = why
	}
	return hold, wait
}

const noRoom = "the other clusters have no room for its replicas"

// mayLeave is why the object may not leave the cluster yet.
func (f facts) mayLeave(m *hubv1.MemberCluster) (why string, wait time.Duration) {
	drain := m.Spec.Drain
	switch {
	case f.holdBack:
		return "it has not been confirmed", 0
	case drain != nil && f.noRoom:
		return noRoom, 0
	case f.turns == nil:
		return "", 0
	case drain != nil:
		if !f.turns.drains.ask(m.Name, f.id, unavailable(drain), f.memory.objectsOn(m.Name)) {
			return "as many objects as may be are moving from the cluster", 0
		}
		return "", 0
	}
	if wait := f.turns.settled(f.now); wait > 0 {
		return "the hub has begun to lead and makes sure which clusters are away", wait
	}
	if !f.turns.Confirmed(m.Name) {
		return "the hub has not tried the cluster lately", 5 * time.Second
	}
	if wait := f.turns.turn(f.id, f.now); wait > 0 {
		return "it waits for its turn", wait
	}
	return "", 0
}

// evicted is the entry of a cluster whose place others take.
func (f facts) evicted(e hubv1.BindingTarget, whenUnselected hubv1.RemovalPolicy, spec *hubv1.PlacementSpec) hubv1.BindingTarget {
	if e.State == hubv1.TargetEvicting {
		if f.isReplaced(e, spec) {
			return f.absent(e, e.Evicting.Reason, whenUnselected)
		}
		return e
	}
	reason := hubv1.ReasonEvicted
	if f.isDrained(e.Name) {
		reason = hubv1.ReasonDrained
	}
	return hubv1.BindingTarget{Name: e.Name, State: hubv1.TargetEvicting, Replicas: e.Replicas, Evicting: &hubv1.Eviction{Reason: reason}}
}

// evictedText says who takes whose place.
func evictedText(p plan) string {
	var parts []string
	for _, name := range p.leaves {
		e := p.spec.Target(name)
		if e == nil || e.Evicting == nil {
			continue
		}
		why := "was away for too long"
		if e.Evicting.Reason == hubv1.ReasonDrained {
			why = "is drained"
		}
		parts = append(parts, fmt.Sprintf("%s %s: %s", name, why, takers(e.Evicting.Replacements)))
	}
	return strings.Join(parts, "; ")
}

// takers is such as "b, c and 2 more take its place".
func takers(replacements []hubv1.Replacement) string {
	const named = 3
	var names []string
	for _, r := range replacements[:min(named, len(replacements))] {
		names = append(names, r.Cluster)
	}
	switch more := len(replacements) - named; {
	case len(names) == 0:
		return "the others take its place"
	case more > 0:
		return fmt.Sprintf("%s and %d more take its place", strings.Join(names, ", "), more)
	case len(names) == 1:
		return names[0] + " takes its place"
	}
	return strings.Join(names, ", ") + " take its place"
}

// isReplaced is true if the copy of an Evicting cluster may go: the cluster answers and has been brought to the newest spec, or refuses it, and
// its replacements are healthy at the newest spec.
func (f facts) isReplaced(e hubv1.BindingTarget, spec *hubv1.PlacementSpec) bool {
	m := f.world.cluster(e.Name)
	if m == nil || away(m) || len(awaited(f.binding, e, f.template.GetGeneration())) > 0 {
		return false
	}
	row := f.binding.BindingStatus().Row(e.Name)
	switch {
	case row == nil, row.Applied == "", row.Applied == metav1.ConditionUnknown, row.Reason == hubv1.ReasonPending:
		return false
	case row.Applied == metav1.ConditionTrue && row.Generation != f.template.GetGeneration() && row.Reason != hubv1.ReasonIsTemplate:
		return false
	}
	return f.placed(spec)
}

// placed is true if the shares of those that count are all of the replicas, so that those of one that does not are not needed.
func (f facts) placed(spec *hubv1.PlacementSpec) bool {
	if !spec.Replicas.Divides() {
		return true
	}
	field, err := replicas.Locate(f.id.GroupKind(), spec, f.template, f.scalePath)
	if err != nil {
		return false
	}
	sum := int64(0)
	for _, t := range f.spec().Clusters {
		if t.State == hubv1.TargetPresent {
			sum += int64(ptr.Deref(t.Replicas, 0))
		}
	}
	return sum >= field.Total
}

// isBack is true if the copy of an Evicting cluster is again as it should be.
func (f facts) isBack(e hubv1.BindingTarget) bool {
	return isHealthy(f.binding, e.Name, "", f.template.GetGeneration())
}

// awaited names the replacements that are not yet healthy. A generation of 0 is that of the last report.
func awaited(b hubv1.BindingObject, e hubv1.BindingTarget, generation int64) []string {
	spec := b.BindingSpec()
	var out []string
	wait := func(cluster, digest string) {
		if !isHealthy(b, cluster, digest, generation) {
			out = append(out, cluster)
		}
	}
	for _, r := range e.Evicting.Replacements {
		wait(r.Cluster, r.Digest)
	}
	if len(e.Evicting.Replacements) > 0 {
		return out
	}
	for _, t := range spec.Clusters {
		if t.State == hubv1.TargetPresent && t.Removal == nil {
			wait(t.Name, "")
		}
	}
	return out
}

// isHealthy is true if the rows speak of the present spec and the cluster has the newest copy, which is not the one of that digest, and it
// is healthy.
func isHealthy(b hubv1.BindingObject, cluster, digest string, generation int64) bool {
	status := b.BindingStatus()
	row := status.Row(cluster)
	if row == nil || status.ObservedGeneration != b.GetGeneration() || row.Applied != metav1.ConditionTrue || row.Health != hubv1.HealthHealthy {
		return false
	}
	if row.Reason == hubv1.ReasonIsTemplate {
		return true
	}
	return (generation == 0 || row.Generation == generation) && (digest == "" || row.Digest != digest)
}

// replace writes down who takes the place of clusters that are evicted: those that are new or have more replicas than before.
func (f facts) replace(p *plan) {
	var grown []hubv1.Replacement
	for _, e := range p.spec.Clusters {
		if r, yes := f.grows(e); yes {
			grown = append(grown, r)
		}
	}
	for i := range p.spec.Clusters {
		e := &p.spec.Clusters[i]
		if e.State != hubv1.TargetEvicting {
			continue
		}
		eviction := *e.Evicting
		before := eviction.Replacements
		eviction.Replacements = nil
		for _, r := range before {
			if t := p.spec.Target(r.Cluster); t != nil && t.State == hubv1.TargetPresent {
				if now, yes := f.changes(*t); yes {
					r = now
				}
				eviction.Replacements = append(eviction.Replacements, r)
			}
		}
		fresh := f.spec().Target(e.Name) == nil || f.spec().Target(e.Name).State != hubv1.TargetEvicting
		if fresh || len(eviction.Replacements) < len(before) {
			for _, r := range grown {
				if !slices.ContainsFunc(eviction.Replacements, func(o hubv1.Replacement) bool { return o.Cluster == r.Cluster }) {
					eviction.Replacements = append(eviction.Replacements, r)
				}
			}
		}
		if len(eviction.Replacements) > hubv1.MostReplacements {
			eviction.Replacements = nil
		}
		e.Evicting = &eviction
	}
}

// grows is true for a cluster that gets the object, or more of its replicas.
func (f facts) grows(e hubv1.BindingTarget) (hubv1.Replacement, bool) {
	if e.State != hubv1.TargetPresent {
		return hubv1.Replacement{}, false
	}
	before := f.spec().Target(e.Name)
	if before == nil || before.State != hubv1.TargetPresent {
		return hubv1.Replacement{Cluster: e.Name}, true
	}
	more := e.Replicas != nil && before.Replicas != nil && *e.Replicas > *before.Replicas
	return f.replacement(e.Name), more
}

// changes is true for a cluster whose share is another one than before.
func (f facts) changes(e hubv1.BindingTarget) (hubv1.Replacement, bool) {
	before := f.spec().Target(e.Name)
	other := before != nil && before.State == hubv1.TargetPresent && e.Replicas != nil && before.Replicas != nil && *e.Replicas != *before.Replicas
	return f.replacement(e.Name), other
}

// replacement is a cluster with what it holds now.
func (f facts) replacement(cluster string) hubv1.Replacement {
	r := hubv1.Replacement{Cluster: cluster}
	if row := f.binding.BindingStatus().Row(cluster); row != nil {
		r.Digest = row.Digest
	}
	return r
}

// unmoved says where the object stays although it is to leave, and the gravest reason for which it stays on a cluster that is away.
func (f facts) unmoved(d placement.Decision) (text, reason string) {
	const named = 3
	var parts []string
	for _, r := range d.Unmoved {
		if r.Reason == hubv1.ReasonEvictionHeld {
			continue // it will go soon
		}
		if !f.isDrained(r.Cluster) && reason != hubv1.ReasonTooManyAway && r.Reason != hubv1.ReasonWantedEverywhere {
			reason = r.Reason
		}
		parts = append(parts, fmt.Sprintf("stays on %s: %s", r.Cluster, r.Message))
	}
	if len(parts) > named {
		parts = append(parts[:named], fmt.Sprintf("and on %d more", len(parts)-named))
	}
	return strings.Join(parts, "; "), reason
}

// withUnmoved says of a decision where the object stays although it is to leave.
func (f facts) withUnmoved(c metav1.Condition, d placement.Decision) metav1.Condition {
	text, reason := f.unmoved(d)
	if text == "" {
		return c
	}
	c.Message += "; " + text
	if reason != "" && c.Status == metav1.ConditionTrue {
		c.Status, c.Reason = metav1.ConditionFalse, reason
	}
	return c
}

func (f facts) isDrained(cluster string) bool {
	m := f.world.cluster(cluster)
	return m != nil && m.Spec.Drain != nil
}

// stays are the drained clusters that the object cannot leave, with the reasons.
func (f facts) stays(d placement.Decision) map[string]string {
	var out map[string]string
	for _, r := range d.Unmoved {
		if !f.isDrained(r.Cluster) || (r.Reason == hubv1.ReasonEvictionHeld && r.Message != noRoom) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[r.Cluster] = r.Reason
	}
	return out
}
