package schedule

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
)

const (
	// collectFor is how long changes of the statuses of clusters are collected, before they queue their objects once. If
	// clusters go away or come back, the time begins anew with each of them, but it ends after collectAtMost.
	collectFor    = time.Second
	collectAtMost = 5 * time.Second
)

// clusterChanges has the changes of clusters whose objects are not queued yet. Clusters that are lost together, as with
// their region, concern the same objects. Each of these objects is then decided once, and not once for each cluster.
type clusterChanges struct {
	mu sync.Mutex
	// since has each change by itself: an object may be decided between two changes of a cluster, of which the second
	// one takes back the first.
	since []decide.ClusterChange
	timer *time.Timer // nil while nothing is collected
	until time.Time   // the latest time at which timer ends
	// fleet has the clusters as they were when objects were last queued.
	fleet []*hubv1.MemberCluster
}

// begin drops the changes from before this process became the leader, because all objects are queued then. fleet are
// the clusters at that time.
func (c *clusterChanges) begin(fleet []*hubv1.MemberCluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.fleet = nil, fleet
}

// add collects a change.
func (c *clusterChanges) add(change decide.ClusterChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = append(c.since, change)
}

// take returns the collected changes.
func (c *clusterChanges) take() (out []decide.ClusterChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, c.since = c.since, nil
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	return out
}

// schedule calls f in collectFor, unless it is scheduled already. If extend is true, the time begins anew.
func (c *clusterChanges) schedule(now time.Time, extend bool, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.timer == nil:
		c.timer, c.until = time.AfterFunc(collectFor, f), now.Add(collectAtMost)
	case extend:
		c.timer.Reset(min(collectFor, max(0, c.until.Sub(now))))
	}
}

// swap stores the current clusters, and returns the ones that were stored before.
func (c *clusterChanges) swap(fleet []*hubv1.MemberCluster) []*hubv1.MemberCluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.fleet
	c.fleet = fleet
	return before
}

// cameBack reports whether a cluster has gone away and come back within the changes, or the other way round. An outage
// may then have begun and ended in between.
func cameBack(changes []decide.ClusterChange) bool {
	turned := map[string]bool{}
	for _, c := range changes {
		if c.Before == nil || c.After == nil || c.Before.IsAway() == c.After.IsAway() {
			continue
		}
		if turned[c.After.Name] {
			return true
		}
		turned[c.After.Name] = true
	}
	return false
}

// ClusterChanged is called for every change of a cluster. It queues the objects whose decisions the change may concern,
// see decide.Touch. Changes by users queue their objects at once. Changes of the status are collected first.
func (s *Scheduler) ClusterChanged(ctx context.Context, c changes.Cluster) {
	if _, q := s.leading(); q == nil {
		return
	}
	change := decide.ClusterChange{Before: c.Before, After: c.After}
	byUser := c.Parts&(changes.Added|changes.Deleted|changes.Spec|changes.Labels|changes.Ending) != 0
	if !byUser && decide.SameCluster(decide.ClusterOf(c.Before), decide.ClusterOf(c.After)) {
		return
	}
	s.holdCapacity(ctx, &change)
	s.clusters.add(change)
	if byUser {
		s.wakeTouched(ctx)
		return
	}
	s.clusters.schedule(time.Now(), c.Before.IsAway() != c.After.IsAway(), func() { s.wakeTouched(ctx) })
}

// holdCapacity marks a change whose new capacity decisions do not use yet. When they may use it, the change is made
// again without the mark. A node that disappears for a short time thus queues no objects that divide replicas by
// capacity.
func (s *Scheduler) holdCapacity(ctx context.Context, c *decide.ClusterChange) {
	if c.Before == nil || c.After == nil || equality.Semantic.DeepEqual(c.Before.Status.Allocatable, c.After.Status.Allocatable) {
		return
	}
	wait, held := s.inputs.capacities.held(c.After, s.opts.Clock.Now())
	if c.CapacityHeld = held; !held || wait == 0 {
		return
	}
	before := c.Before
	time.AfterFunc(wait, func() {
		now, err := s.opts.Clusters.Current(ctx)
		if err != nil {
			return // the cache stops because this process ends
		}
		if after := now.Cluster(before.Name); after != nil {
			s.wakeTouchedBy(ctx, []decide.ClusterChange{{Before: before, After: after}})
		}
	})
}

// wakeTouched queues the objects whose decisions the collected changes may concern.
func (s *Scheduler) wakeTouched(ctx context.Context) { s.wakeTouchedBy(ctx, s.clusters.take()) }

func (s *Scheduler) wakeTouchedBy(ctx context.Context, collected []decide.ClusterChange) {
	_, q := s.leading()
	if q == nil || len(collected) == 0 {
		return
	}
	t, err := s.touchesOf(ctx, collected)
	if err != nil {
		// After the first list, the cache answers from memory. A read fails only when the process ends.
		ctrl.LoggerFrom(ctx).Error(err, "Waking objects")
		return
	}
	if slices.ContainsFunc(t.all, (*touched).waves) {
		s.wakeSets(ctx)
	}
	if t.nothing() {
		return
	}
	bindings, err := scopes.Bindings(ctx, s.opts.Client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Waking objects")
		return
	}
	byUsers, byThemselves := s.results.placed.unbound(), []key(nil)
	for _, b := range bindings {
		id := hubv1.ObjectOf(b)
		reached, byUser, needed := t.reaches(b, s.results.placed.of(id))
		switch {
		case byUser:
			byUsers = append(byUsers, id)
		case reached:
			byThemselves = append(byThemselves, id)
		}
		byUsers = append(byUsers, needed...)
	}
	s.addBehind(q, byUsers...)
	s.addUncounted(q, byThemselves...)
}

// touches are the effects of all collected changes.
type touches struct {
	all    []*touched
	outage decide.Outage
}

// touched is the effect of one change. byUser is true if a user has made the change, or if the reported data of the
// cluster has changed. The guard then waits for the decisions before it judges removals.
type touched struct {
	*decide.Touch
	byUser bool
}

func (t *touched) waves() bool { return t.Waves() }

// touchesOf compares the clusters before and after the collected changes.
func (s *Scheduler) touchesOf(ctx context.Context, collected []decide.ClusterChange) (*touches, error) {
	placements, err := scopes.Placements(ctx, s.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	policies, err := scopes.OverridePolicies(ctx, s.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	now, err := s.opts.Clusters.Current(ctx)
	if err != nil {
		return nil, err
	}
	out := &touches{outage: decide.NewOutage(s.clusters.swap(now.Clusters), now.Clusters, s.opts.Failover.MaxAway, cameBack(collected))}
	for _, c := range collected {
		t := decide.NewTouch(c, placements, policies, &s.inputs.memo)
		if !t.Nothing() || t.Waves() {
			out.all = append(out.all, &touched{Touch: t, byUser: !movesByItself(c)})
		}
	}
	return out, nil
}

// movesByItself reports whether only the readiness or the taints of a cluster have changed.
func movesByItself(c decide.ClusterChange) bool {
	if c.Before == nil || c.After == nil || c.Before.UID != c.After.UID || c.Before.Generation != c.After.Generation {
		return false
	}
	before, after := decide.ClusterOf(c.Before), decide.ClusterOf(c.After)
	before.Ready, before.Taints = after.Ready, after.Taints
	return decide.SameCluster(before, after)
}

func (t *touches) nothing() bool {
	return !t.outage.Changed() && !slices.ContainsFunc(t.all, func(one *touched) bool { return !one.Nothing() })
}

// reaches reports whether the decision on the object of a binding may change, and whether a change by a user is the
// reason. needed are the objects that the object needs, if the change concerns them, too.
func (t *touches) reaches(b hubv1.BindingObject, placed bool) (reached, byUser bool, needed []key) {
	reached = t.outage.Reaches(b, placed)
	for _, one := range t.all {
		if one.Reaches(b, placed) {
			reached, byUser = true, byUser || one.byUser
		}
		needed = append(needed, one.Needed(b)...)
	}
	return reached, byUser, needed
}

// placed has the objects whose last decision by this process had Plan.Placed, and the objects without a binding whose
// last decision had not.
type placed struct {
	mu   sync.Mutex
	all  map[key]bool
	free map[key]bool
}

// begin is called before a decision reads its inputs. Until its end, any change of a cluster may concern the object.
func (p *placed) begin(id key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, id)
}

// end is called after a decision that was carried out.
func (p *placed) end(id key, plan decide.Plan, exists bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all, p.free = map[key]bool{}, map[key]bool{}
	}
	delete(p.free, id)
	switch {
	case plan.Placed:
		p.all[id] = true
	case plan.Spec == nil && exists && (plan.Status.Scheduled.Reason != "" || plan.Chosen != nil):
		p.free[id] = true
	}
}

func (p *placed) of(id key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[id]
}

// unbound returns the objects that have no binding, and that another cluster may give one.
func (p *placed) unbound() (ids []key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.free {
		ids = append(ids, id)
	}
	return ids
}
