package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/guard"
)

// Guard limits how many copies decisions delete at once. See package guard.
type Guard struct {
	// Limit is the maximum of removals on one cluster, over all placements. It is also the maximum for a placement that
	// sets no limit. Default guard.DefaultLimit.
	Limit guard.Limit
	// Window is how long a past removal counts against the limits for removals. For the same time, a new leader carries
	// out no removal that a user has not confirmed. Default guard.Window.
	Window time.Duration
	// Quiet is how long no new removal must arrive before the guard judges the waiting removals. Default 2 s.
	Quiet time.Duration
}

// WithDefaults fills in the unset fields.
func (g Guard) WithDefaults() Guard {
	g.Limit = cmp.Or(g.Limit, guard.DefaultLimit)
	g.Window = cmp.Or(g.Window, guard.Window)
	g.Quiet = cmp.Or(g.Quiet, 2*time.Second)
	return g
}

// maxQuiet is the longest time for which removals wait for the verdict of the guard. They wait while further removals
// arrive, or while the decision on an object fails.
const maxQuiet = 30 * time.Second

// removals has the decided removals of copies that are not carried out yet. It is only in memory. A new leader finds
// the same removals when it decides on all objects. Removals that a user must confirm are also stored in bindings, and
// in the status of their owner.
type removals struct {
	opts    Guard
	clock   clock.PassiveClock
	pending pending

	mu      sync.Mutex
	times   removalTimes
	changed bool // whether held sets may have changed since the last check
	objects map[key]map[string]*removal
	waits   int // number of removals that wait for a verdict
	sets    map[decide.Owner]*heldSet
	ended   map[decide.Owner]ending
	moved   map[decide.Owner]bool // owners whose status must change
	recent  guard.Recent
}

// removalTimes has the times that determine when the guard judges the waiting removals.
type removalTimes struct {
	began   time.Time // start of the lead; zero if this process does not lead
	first   time.Time // when the first waiting removal arrived
	parked  time.Time // when the last waiting removal arrived
	settled bool      // whether the first removals of this lead were judged
}

type removalState int

const (
	removalWaits removalState = iota
	removalHeld
	removalReleased
)

// removal is the removal of one copy.
type removal struct {
	decide.Removal
	state removalState
	since metav1.Time // start of the hold
}

// heldSet has the removals of one owner that a user must confirm.
type heldSet struct {
	hubv1.RemovalHeld
	reason, message string // reason and message of the condition RemovalHeld
	confirmed       bool   // whether the removals of the set are released
}

// ending tells how the last set of held removals of an owner ended: confirmed or cancelled. id is the ID of the set.
type ending struct{ id, reason, message string }

// counts is where the guard gets the numbers of copies of placements, bundles and clusters, and the held removals.
type counts interface {
	// copiesOf returns the number of copies of a group, which is a placement or a bundle. copiesOn returns the number of
	// copies on a cluster.
	copiesOf(group decide.Owner) int
	copiesOn(cluster string) int
	// limitOf returns the limit for deletions that a placement sets. It returns the limit of the hub if the placement sets
	// none, or does not exist.
	limitOf(placement decide.Owner) guard.Limit
	// shown returns the held removals in the status of an owner. confirms is the ID of the set of removals that a user has
	// confirmed in the owner's annotation.
	shown(o decide.Owner) (held *hubv1.RemovalHeld, confirms string)
}

// verdicts has the results of one call of the method look, in which the guard may judge all waiting removals.
type verdicts struct {
	held, released []key
	events         []ownerEvent
	moved          []decide.Owner // owners whose status must change
	settled        bool           // the held removals of all owners are known now
}

// ownerEvent is an event to record on an owner.
type ownerEvent struct {
	owner                 decide.Owner
	kind, reason, message string
}

// begin records the time at which this process becomes the leader.
func (r *removals) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times.began = r.clock.Now()
}

// of returns, for each cluster, the decision of the guard on the removal of an object. The guard limits deletions.
func (r *removals) of(id key) map[string]decide.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]decide.Verdict, len(r.objects[id]))
	for cluster, m := range r.objects[id] {
		v := decide.Verdict{Reason: m.Reason, Released: m.state == removalReleased}
		if m.state == removalHeld {
			v.HeldSince = ptr.To(m.since)
		}
		out[cluster] = v
	}
	return out
}

// decided records the removals in a decision on an object. If final is true, it drops all other removals of the object,
// because they are carried out or no longer wanted.
func (r *removals) decided(id key, claims []decide.Removal, final bool) {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	before, after := r.objects[id], map[string]*removal{}
	if !final {
		maps.Copy(after, before)
	}
	for _, c := range claims {
		m := before[c.Cluster]
		if m == nil || m.Reason != c.Reason || m.Owner != c.Owner {
			m = &removal{}
			if r.times.parked = now; r.waits == 0 {
				r.times.first = now
			}
		}
		r.changed = r.changed || !isSame(m.Removal, c)
		m.Removal = c
		after[c.Cluster] = m
	}
	r.changed = r.changed || len(before) != len(after)
	r.waits += waiting(after) - waiting(before)
	if r.objects == nil {
		r.objects = map[key]map[string]*removal{}
	}
	if r.objects[id] = after; len(after) == 0 {
		delete(r.objects, id)
	}
}

// isSame reports whether two removals look the same in status.removalHeld. They must have the same cluster, reason,
// message and owner.
func isSame(c, d decide.Removal) bool {
	return c.Cluster == d.Cluster && c.Reason == d.Reason && c.Message == d.Message && c.Owner == d.Owner
}

func waiting(all map[string]*removal) int {
	n := 0
	for _, m := range all {
		if m.state == removalWaits {
			n++
		}
	}
	return n
}

// look judges the waiting removals if it is time for that. It also lets removals be carried out that a user has
// confirmed.
func (r *removals) look(c counts) verdicts {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out verdicts
	if r.times.began.IsZero() || r.times.settled && r.waits == 0 && len(r.sets) == 0 && len(r.moved) == 0 {
		return out
	}
	if (r.waits > 0 || !r.times.settled) && r.isTime(now) {
		r.judge(c, now, &out)
		r.times.settled, out.settled = true, !r.times.settled
	}
	r.confirm(c, now, &out)
	out.moved = slices.Collect(maps.Keys(r.moved))
	r.moved = nil
	return out
}

// move records that the status of an owner of held removals must be written.
func (r *removals) move(o decide.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moves(o)
}

func (r *removals) moves(o decide.Owner) {
	if r.moved == nil {
		r.moved = map[decide.Owner]bool{}
	}
	r.moved[o] = true
}

// isTime reports whether the guard can judge the waiting removals now. Quiet must have passed since the last removal
// and since this process became the leader, or maxQuiet since the first waiting removal. The hub must also have decided
// on all objects that were queued at least Quiet/2 ago, and no later than Quiet/2 after the last removal.
func (r *removals) isTime(now time.Time) bool {
	last := r.times.parked
	if last.Before(r.times.began) {
		last = r.times.began
	}
	if now.Sub(last) < r.opts.Quiet && (r.waits == 0 || now.Sub(r.times.first) < maxQuiet) {
		return false
	}
	woken := last.Add(r.opts.Quiet / 2) // the time by which all objects of one cause are queued
	if latest := now.Add(-r.opts.Quiet / 2); latest.Before(woken) {
		woken = latest
	}
	return !r.pending.until(woken)
}

// each calls f with each removal, object by object.
func (r *removals) each(f func(key, *removal)) {
	for id, all := range r.objects {
		for _, m := range all {
			f(id, m)
		}
	}
}

func (r *removals) judge(c counts, now time.Time, out *verdicts) {
	var asked []guard.Removal
	groups, clusters := r.scopes(c, now), map[string]guard.Scope{}
	before := map[decide.Owner]bool{} // owners whose removals users have already seen as held
	r.each(func(id key, m *removal) {
		if m.state != removalWaits {
			return
		}
		if _, known := clusters[m.Cluster]; !known {
			clusters[m.Cluster] = guard.Scope{Limit: r.opts.Limit, Copies: c.copiesOn(m.Cluster), Recent: r.recent.Of(decide.MemberClusterKind+" "+m.Cluster, now)}
		}
		asked = append(asked, guard.Removal{Set: m.Owner.String(), Object: id.String(), Group: m.Group().String(), Cluster: m.Cluster, Last: m.Last})
		if m.ShownSince != nil || r.isHeld(c, m.Owner) {
			before[m.Owner] = true
		}
	})
	over := guard.Judge(asked, groups, clusters)
	mayGo := now.Sub(r.times.began) >= r.opts.Window
	r.each(func(id key, m *removal) {
		if m.state != removalWaits {
			return
		}
		breaches := over[m.Owner.String()]
		switch {
		case len(breaches) > 0 || before[m.Owner]:
			m.state, m.since = removalHeld, ptr.Deref(m.ShownSince, metav1.NewTime(now).Rfc3339Copy())
			out.held = append(out.held, id)
			r.hold(c, m, breaches)
		// A new leader has decided on all objects before it judges. All objects that were created again while no hub ran are
		// therefore judged together, and no earlier removal is missing in their number.
		case mayGo, m.Reason == hubv1.ReasonMadeAnew:
			m.state = removalReleased
			out.released = append(out.released, id)
			r.recent.Add(m.Group().String(), now)
			r.recent.Add(decide.MemberClusterKind+" "+m.Cluster, now)
		default:
			return
		}
		r.waits--
		r.changed = true
	})
}

// scopes returns the limit and the number of copies of each group (placement or bundle) with waiting removals. A bundle
// has no limit of its own: the smallest limit of the placements that its removed objects follow applies.
func (r *removals) scopes(c counts, now time.Time) map[string]guard.Scope {
	out := map[string]guard.Scope{}
	known := map[[2]decide.Owner]bool{} // pairs of a group and a placement
	r.each(func(_ key, m *removal) {
		group := m.Group()
		pair := [2]decide.Owner{group, m.Placement}
		if m.state != removalWaits || known[pair] {
			return
		}
		known[pair] = true
		name, limit := group.String(), c.limitOf(m.Placement)
		s, seen := out[name]
		if !seen {
			s = guard.Scope{Limit: limit, Copies: c.copiesOf(group), Recent: r.recent.Of(name, now)}
		}
		if limit.Of(s.Copies) < s.Limit.Of(s.Copies) {
			s.Limit = limit
		}
		out[name] = s
	})
	return out
}

// isHeld reports whether removals of the owner are held. This process or an earlier leader may have held them.
func (r *removals) isHeld(c counts, o decide.Owner) bool {
	if set := r.sets[o]; set != nil {
		return !set.confirmed
	}
	return r.shown(c, o) != nil
}

// shown returns the held removals in the status of an owner. It returns nil if this process has already ended this set
// of removals, because the status is then outdated.
func (r *removals) shown(c counts, o decide.Owner) *hubv1.RemovalHeld {
	shown, _ := c.shown(o)
	if shown != nil && shown.ID == r.ended[o].id {
		return nil
	}
	return shown
}

// hold adds a removal to the set of its owner's held removals.
func (r *removals) hold(c counts, m *removal, breaches []guard.Breach) {
	set := r.sets[m.Owner]
	if set == nil || set.confirmed {
		set = &heldSet{}
		if shown := r.shown(c, m.Owner); shown != nil {
			set.RemovalHeld = *shown.DeepCopy()
		}
		if r.sets == nil {
			r.sets = map[decide.Owner]*heldSet{}
		}
		r.sets[m.Owner] = set
	}
	if set.reason == "" || len(breaches) > 0 {
		set.reason, set.message = whyHeld(breaches)
	}
}

// whyHeld returns the reason of the condition RemovalHeld, and the first part of its message.
func whyHeld(breaches []guard.Breach) (reason, message string) {
	const named = 3
	reason = hubv1.ReasonLastCopy
	var parts []string
	for _, b := range breaches {
		if b.Group != "" || b.Cluster != "" {
			reason = hubv1.ReasonTooManyRemovals
		}
		parts = append(parts, b.String())
	}
	if len(parts) == 0 { // the removals were already held before this process led
		return hubv1.ReasonTooManyRemovals, ""
	}
	if len(parts) > named {
		parts = append(parts[:named], fmt.Sprintf("and %d more", len(parts)-named))
	}
	return reason, strings.Join(parts, "; ")
}

// gathered has the contents of one set of held removals: their objects, clusters and messages. The method confirm
// collects them.
type gathered struct {
	objects  []key
	removals []*removal
	clusters map[string]bool
	causes   map[string]string // messages by reason, each that of the first cluster by name
	first    map[string]string // the cluster of each message, by reason
}

func (g *gathered) add(id key, m *removal) {
	if n := len(g.objects); n == 0 || g.objects[n-1] != id {
		g.objects = append(g.objects, id)
	}
	g.removals = append(g.removals, m)
	g.clusters[m.Cluster] = true
	if first, known := g.first[m.Reason]; !known || m.Cluster < first {
		g.first[m.Reason], g.causes[m.Reason] = m.Cluster, m.Message
	}
}

func (g *gathered) sum() guard.Shown {
	return guard.Shown{Copies: len(g.removals), Clusters: slices.Sorted(maps.Keys(g.clusters)), Causes: slices.Sorted(maps.Keys(g.causes))}
}

// confirm updates the sets of held removals. It ends empty sets, and allows the removals of the sets that a user has
// confirmed. A set may be held for days. Its removals are therefore examined only after a change.
func (r *removals) confirm(c counts, now time.Time, out *verdicts) {
	for o, set := range r.sets {
		if _, confirms := c.shown(o); !set.confirmed && set.ID != "" && confirms == set.ID {
			r.changed = true
		}
	}
	if !r.changed {
		return
	}
	r.changed = false
	sets := map[decide.Owner]*gathered{}
	r.each(func(id key, m *removal) {
		if m.state == removalWaits || r.sets[m.Owner] == nil {
			return
		}
		g := sets[m.Owner]
		if g == nil {
			g = &gathered{clusters: map[string]bool{}, causes: map[string]string{}, first: map[string]string{}}
			sets[m.Owner] = g
		}
		g.add(id, m)
	})
	for o, set := range r.sets {
		g := sets[o]
		switch {
		case g == nil:
			r.end(o, set, out)
			continue
		case set.confirmed:
			continue
		}
		was := set.RemovalHeld
		renewed := set.refresh(g, now)
		if !equality.Semantic.DeepEqual(was, set.RemovalHeld) {
			r.moves(o)
		}
		if renewed {
			out.events = append(out.events, ownerEvent{o, "Warning", hubv1.ReasonRemovalHeld, set.text(o)})
		}
		if _, confirms := c.shown(o); confirms != set.ID {
			continue
		}
		set.confirmed = true
		r.moves(o)
		for _, m := range g.removals {
			m.state = removalReleased
		}
		out.released = append(out.released, g.objects...)
		out.events = append(out.events, ownerEvent{o, "Normal", hubv1.ReasonRemovalConfirmed, fmt.Sprintf("withdrawing %s, because the removal %s was confirmed", counted(len(g.removals), "copy", "copies"), set.ID)})
	}
}

// refresh updates the numbers and reasons of a set of held removals that users see. It returns true if the set got a
// new ID. It ignores small changes, because each visible change writes the status of the owner.
func (s *heldSet) refresh(g *gathered, now time.Time) (renewed bool) {
	is := g.sum()
	shown := guard.Shown{Copies: int(s.Copies), Clusters: s.Clusters}
	for _, cause := range s.Causes {
		reason, _, _ := strings.Cut(cause, ":")
		shown.Causes = append(shown.Causes, reason)
	}
	renewed = s.ID == "" || !shown.Covers(is)
	if renewed {
		s.ID = strings.SplitN(string(uuid.NewUUID()), "-", 2)[0]
	}
	if s.Since.IsZero() {
		s.Since = metav1.NewTime(now).Rfc3339Copy()
	}
	if !renewed && is.Copies*10 >= shown.Copies*9 && slices.Equal(is.Clusters, shown.Clusters) && slices.Equal(is.Causes, shown.Causes) {
		return false
	}
	s.Copies, s.Clusters, s.Causes = int32(is.Copies), is.Clusters, nil
	for _, reason := range is.Causes {
		const maxCauses, maxCauseBytes = 10, 400
		if len(s.Causes) == maxCauses {
			break
		}
		cause := reason
		if message := g.causes[reason]; message != "" {
			cause += ": " + message
		}
		s.Causes = append(s.Causes, strings.ToValidUTF8(cause[:min(len(cause), maxCauseBytes)], ""))
	}
	return renewed
}

// counted returns a count and its noun, such as "2 copies".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// text returns the message of the condition RemovalHeld. It tells which removals are held, and how a user can confirm
// or avoid them.
func (s *heldSet) text(o decide.Owner) string {
	stay := "stay and are still updated"
	if slices.ContainsFunc(s.Causes, func(cause string) bool { return strings.HasPrefix(cause, hubv1.ReasonMadeAnew) }) {
		stay = "stay; copies of objects that were deleted and created again are not updated"
	}
	text := fmt.Sprintf("%s on %s would be removed (%s), but %s", counted(int(s.Copies), "copy", "copies"), counted(len(s.Clusters), "cluster", "clusters"), strings.Join(s.Causes, "; "), stay)
	if s.message != "" {
		text += ": " + s.message
	}
	command := strings.ToLower(o.Kind) + " " + o.Name
	if o.Namespace != "" {
		command += " -n " + o.Namespace
	}
	return decide.Short(text + ". If the removal is a mistake, undo the change. Otherwise run: hansectl confirm " + command + " (or set the annotation " +
		hubv1.ConfirmRemovalAnnotation + ": " + s.ID + ")")
}

// end deletes a set of held removals that has no removals any more.
func (r *removals) end(o decide.Owner, set *heldSet, out *verdicts) {
	delete(r.sets, o)
	e := ending{id: set.ID, reason: hubv1.ReasonRemovalCancelled, message: "the copies are wanted again: cancelled removal " + set.ID}
	if set.confirmed {
		e.reason, e.message = hubv1.ReasonRemovalConfirmed, "the removal "+set.ID+" was confirmed and is carried out"
	} else {
		out.events = append(out.events, ownerEvent{o, "Normal", e.reason, e.message})
	}
	if r.ended == nil {
		r.ended = map[decide.Owner]ending{}
	}
	r.ended[o] = e
	r.moves(o)
}

// status returns the held removals of an owner, and the condition RemovalHeld. Both are nil if this process has held no
// removals of the owner. known is false until this process knows whether removals of the owner are held.
func (r *removals) status(o decide.Owner) (held *hubv1.RemovalHeld, c *metav1.Condition, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if set := r.sets[o]; set != nil && set.ID != "" {
		c := &metav1.Condition{Type: hubv1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: set.reason, Message: set.text(o)}
		if set.confirmed {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, hubv1.ReasonRemovalConfirmed, "the removal "+set.ID+" was confirmed and is being carried out"
		}
		return set.RemovalHeld.DeepCopy(), c, true
	}
	if e, yes := r.ended[o]; yes {
		return nil, &metav1.Condition{Type: hubv1.ConditionRemovalHeld, Status: metav1.ConditionFalse, Reason: e.reason, Message: e.message}, true
	}
	return nil, nil, r.times.settled
}
