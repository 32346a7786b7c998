package report

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// entry has what this process knows about one binding. A restart loses it. This loss alone causes no write of a status.
type entry struct {
	window  window
	binding shown
	results results
	last    lastWrite
	// settleUntil is the latest time until which a write of the status waits for expected results. It is zero if no result
	// is expected.
	settleUntil time.Time
	// waitingSince is the time since which a new message of the condition Scheduled waits to be written. It waits because
	// unreachable clusters may soon be reachable again. See grace.go.
	waitingSince time.Time

	drifts   drifts
	troubles troubles

	merged  merged         // the status last written to the hub object
	refusal refusal        // the status that the hub's API server refused
	states  map[string]int // number of rows by state, as counted in the metric
	unshown unshown
}

// shown is the content of the binding in the last watch event of the binding.
type shown struct {
	uid        types.UID
	generation int64
	object     types.UID             // UID of the hub object
	kind       schema.GroupKind      // kind of the hub object
	placement  types.UID             // UID of the placement; empty if there is none
	targets    []hubv1.BindingTarget // shared with the cache; must not be changed
}

// results are the outcomes that clusters have reported since the last decision.
type results struct {
	moved    map[string]bool // clusters whose copies changed since the window was opened
	outcomes map[string]member.Outcome
	reported reached // the content that all clusters had at the last complete report
	// awaited and unmoved are indexes of targets at which the last looks for a missing outcome, and for an unchanged copy,
	// have ended. The next look begins there, so that the outcomes of T targets cost T steps, and not T*T.
	awaited, unmoved int
}

// lastWrite has what is needed to see that a cached binding is older than the last write of the binding's status.
type lastWrite struct {
	written string // resourceVersion of the last write; an older cached binding is ignored
	refused string // resourceVersion of the cached binding whose write ended in a conflict
	behind  bool   // true while the reporter waits for the binding's next event
}

// reached identifies one content of a hub object and one decision on the object. The clusters have reported results for
// both.
type reached struct {
	binding int64  // generation of the binding
	hub     uint64 // content number of the hub object
}

// drifts counts the fields that the hub restored on members since the last event about drift.
type drifts struct {
	lastEvent time.Time // time of the last event about drift
	count     int
	cluster   string // cluster of the first restored field
	field     member.FieldDrift
}

// adopt copies the content of the cached binding into the entry. It returns true if the decision has changed.
func (e *entry) adopt(b hubv1.BindingObject) bool {
	spec := b.BindingSpec()
	if e.binding.uid == b.GetUID() && e.binding.generation >= b.GetGeneration() {
		return false
	}
	if e.binding.uid != "" && (e.binding.uid != b.GetUID() || e.binding.object != spec.ObjectRef.UID) {
		// The binding or its object was deleted and created again. The earlier results do not belong to the new object.
		e.results.outcomes, e.merged, e.refusal, e.last.written, e.last.refused, e.troubles = nil, merged{}, refusal{}, "", "", troubles{}
	}
	for cluster := range e.results.outcomes {
		// The new decision removes the copy that the old decision wanted on the cluster, or the reverse. An earlier result
		// must not count for the new decision.
		if opposed(stateOf(e.binding.targets, cluster), stateOf(spec.Clusters, cluster)) {
			delete(e.results.outcomes, cluster)
		}
	}
	e.binding = shown{
		uid: b.GetUID(), generation: b.GetGeneration(), object: spec.ObjectRef.UID, kind: hubv1.ObjectOf(b).GroupKind(), targets: spec.Clusters,
	}
	beginMetrics(e.binding.kind.Kind)
	if spec.PlacementRef != nil {
		e.binding.placement = spec.PlacementRef.UID
	}
	return true
}

// overtook reports whether the current decision reverses an earlier decision for the cluster: it wants a copy that the
// earlier decision removes, or the reverse. tried is the binding with the earlier decision.
func (e *entry) overtook(tried hubv1.BindingObject, cluster string) bool {
	return e.binding.generation > tried.GetGeneration() && opposed(stateOf(tried.BindingSpec().Clusters, cluster), stateOf(e.binding.targets, cluster))
}

// opposed reports whether one of the states wants a copy on a cluster, and the other one removes it.
func opposed(was, is hubv1.TargetState) bool {
	return was != "" && (is == "" || (was == hubv1.TargetAbsent) != (is == hubv1.TargetAbsent))
}

func stateOf(targets []hubv1.BindingTarget, cluster string) hubv1.TargetState {
	i := slices.IndexFunc(targets, func(t hubv1.BindingTarget) bool { return t.Name == cluster })
	if i < 0 {
		return ""
	}
	return targets[i].State
}

// record stores the outcome of one attempt to write or withdraw a copy. u tells how soon the rows must be written.
// changed is false if the outcome changes no row and causes no event.
func (e *entry) record(cluster string, o member.Outcome, away map[string]bool, holds func(string) bool) (u urgency, changed bool) {
	before, had := e.results.outcomes[cluster]
	if e.results.outcomes == nil {
		e.results.outcomes = map[string]member.Outcome{}
	}
	if o.Wrote && len(o.Drifted) > 0 {
		if e.drifts.count == 0 {
			e.drifts.cluster, e.drifts.field = cluster, o.Drifted[0]
		}
		e.drifts.count++
		driftCorrected.WithLabelValues(e.binding.kind.Kind).Inc()
		changed = true
	}
	o.Wrote, o.Drifted = false, nil
	e.results.outcomes[cluster] = o
	changed = changed || !had || !same(before, o)
	if failed(o) && (!had || before.Reason != o.Reason) {
		return failure, changed
	}
	if p, ok := e.complete(cluster, away, holds); ok && p != e.results.reported {
		e.results.reported = p
		return lastResult, true
	}
	return e.progress(), changed
}

// change records that the watch of a cluster has shown a changed copy. It returns how soon the rows must be written. If
// the copies on all clusters change at about the same time, the rows are written directly after the last change.
func (e *entry) change(cluster string, away map[string]bool, holds func(string) bool) urgency {
	if e.results.moved == nil {
		e.results.moved = map[string]bool{}
	}
	e.results.moved[cluster] = true
	u := e.progress()
	switch u {
	case whenIdle:
		if _, ok := e.complete("", away, holds); ok {
			return result // no need to wait: the watch shows that the withdrawn copy is gone
		}
		return u
	case result:
		if len(e.results.moved) < 2 || !e.allMoved(away, holds) {
			return u
		}
	default:
		return u
	}
	if p, ok := e.complete("", away, holds); !ok || p != e.results.reported {
		return u // the copies are being written, so their outcomes decide
	}
	return lastResult
}

// allMoved reports whether the copies on all reachable target clusters in this replica's shard have changed since the
// window was opened.
func (e *entry) allMoved(away map[string]bool, holds func(string) bool) bool {
	return e.all(&e.results.unmoved, func(t hubv1.BindingTarget) bool {
		return e.results.moved[t.Name] || away[t.Name] || !holds(t.Name)
	})
}

// all reports whether a condition is true for all targets. It first looks from the target at which its last call ended
// to the last target, and looks at the others only if the condition is true for these.
func (e *entry) all(from *int, is func(hubv1.BindingTarget) bool) bool {
	look := func(begin, end int) bool {
		for *from = begin; *from < end; *from++ {
			if !is(e.binding.targets[*from]) {
				return false
			}
		}
		return true
	}
	begin := min(*from, len(e.binding.targets))
	return look(begin, len(e.binding.targets)) && look(0, begin)
}

// progress returns how soon the rows must be written after one member has reported a result and others have not. While
// all copies are being withdrawn, such a result is not urgent, and only the result of the last member is.
func (e *entry) progress() urgency {
	if len(e.binding.targets) > 0 && !slices.ContainsFunc(e.binding.targets, func(t hubv1.BindingTarget) bool { return t.State != hubv1.TargetAbsent }) {
		return whenIdle
	}
	return result
}

// complete reports whether all target clusters in this replica's shard have reported about the same content, and
// returns this content. Unreachable clusters are left out. If all targets are in other replicas' shards, complete
// returns false. A binding without targets is complete. latest is the cluster that has just reported, if any: others
// with another content are then found at the first look.
func (e *entry) complete(latest string, away map[string]bool, holds func(string) bool) (reached, bool) {
	p := reached{binding: e.binding.generation}
	if t := e.target(latest); t != nil && holds(latest) && !away[latest] && !e.hasReported(*t, &p) {
		return p, false
	}
	held := len(e.binding.targets) == 0
	complete := e.all(&e.results.awaited, func(t hubv1.BindingTarget) bool {
		if !holds(t.Name) {
			return true
		}
		held = true
		return away[t.Name] || e.hasReported(t, &p)
	})
	return p, complete && held
}

// target returns the target of a cluster. It is nil if the cluster is no target.
func (e *entry) target(cluster string) *hubv1.BindingTarget {
	return (&hubv1.BindingSpec{Clusters: e.binding.targets}).Target(cluster)
}

// hasReported reports whether the cluster of a target has reported about the content p. If p has no content yet, it
// gets that of the report.
func (e *entry) hasReported(t hubv1.BindingTarget, p *reached) bool {
	o, ok := e.results.outcomes[t.Name]
	switch {
	case !ok, t.State == hubv1.TargetAbsent && o.Reason != hubv1.ReasonWithdrawn:
		return false
	case t.Revision != 0:
		return o.HubRevision == t.Revision
	case o.HubContent == 0 || p.hub == o.HubContent:
		return true
	case p.hub != 0:
		return false
	}
	p.hub = o.HubContent
	return true
}

func failed(o member.Outcome) bool {
	return rollup.Failed(o.Applied, o.Reason)
}

// same reports whether two outcomes lead to the same row.
func same(a, b member.Outcome) bool {
	return a.Applied == b.Applied && a.Reason == b.Reason && a.Message == b.Message && a.UID == b.UID && a.Hash == b.Hash &&
		a.Digest == b.Digest && a.HubGeneration == b.HubGeneration && a.HubRevision == b.HubRevision && a.HubContent == b.HubContent && a.HubVersion == b.HubVersion && a.Generation == b.Generation &&
		a.Adopted == b.Adopted && (a.Orphaned == nil) == (b.Orphaned == nil)
}

// outdated reports whether a cached binding is older than the last write of this process. It also returns true for the
// version of the binding for which the server has returned a conflict.
func (e *entry) outdated(b hubv1.BindingObject) bool {
	if e.binding.uid != "" && e.binding.uid != b.GetUID() {
		return false
	}
	return hubv1.Older(b.GetResourceVersion(), e.last.written) || (e.last.refused != "" && b.GetResourceVersion() == e.last.refused)
}
