package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// entry is the memory of one binding. It may be lost at any time: a restart costs no write.
type entry struct {
	window window
	shown
	results
	lastWrite
	// settleUntil bounds the wait for expected results. Zero while nothing is waited for.
	settleUntil time.Time
	// waitingSince is when a decision began to wait for clusters that may be back in a moment; see grace.go.
	waitingSince time.Time

	drifts   drifts
	troubles troubles

	merged  merged         // what is on the hub object
	refusal refusal        // what its API server did not take
	states  map[string]int // rows by state, as counted in the metric
}

// shown is a binding as its last event showed it.
type shown struct {
	uid        types.UID
	generation int64
	object     types.UID
	kind       string
	placement  types.UID
	targets    []hubv1.BindingTarget // shared with the cache; must not be changed
}

// results are what clusters have reported.
type results struct {
	moved    map[string]bool // clusters whose copies changed since the window was opened
	outcomes map[string]member.Outcome
	reported reached // the last one that was complete
}

// lastWrite tells a binding in the cache that is older than the last write of its status.
type lastWrite struct {
	written string // resourceVersion of that write; an older binding is not acted on
	refused string // resourceVersion on which a write was decided that the server refused as too old
	behind  bool   // the cache is waited for; the next event of the binding wakes it
}

// reached identifies what clusters have reported on.
type reached struct {
	binding int64  // generation of the binding
	hub     uint64 // content of the hub object
}

// drifts are the fields that were put back on members since the last event on them.
type drifts struct {
	told    time.Time // the last event
	count   int
	cluster string // of the first
	field   member.FieldDrift
}

// adopt takes up what the cache shows of the binding, and says whether the decision is another one.
func (e *entry) adopt(b hubv1.BindingObject) bool {
	spec := b.BindingSpec()
	if e.uid == b.GetUID() && e.generation >= b.GetGeneration() {
		return false
	}
	if e.uid != "" && (e.uid != b.GetUID() || e.object != spec.ObjectRef.UID) {
		// Another object under the same name: what is known speaks of the old one.
		e.outcomes, e.merged, e.refusal, e.written, e.refused, e.troubles = nil, merged{}, refusal{}, "", "", troubles{}
	}
	for cluster := range e.outcomes {
		// A withdrawal that was done says nothing about the next one.
		if opposed(stateOf(e.targets, cluster), stateOf(spec.Clusters, cluster)) {
			delete(e.outcomes, cluster)
		}
	}
	e.uid, e.generation, e.object, e.targets = b.GetUID(), b.GetGeneration(), spec.ObjectRef.UID, spec.Clusters
	e.kind = spec.ObjectRef.Kind
	e.placement = ""
	if spec.PlacementRef != nil {
		e.placement = spec.PlacementRef.UID
	}
	return true
}

// overtook says that a later decision than the one of the binding asks for the opposite of a cluster.
func (e *entry) overtook(tried hubv1.BindingObject, cluster string) bool {
	return e.generation > tried.GetGeneration() && opposed(stateOf(tried.BindingSpec().Clusters, cluster), stateOf(e.targets, cluster))
}

// opposed says that a cluster that was to hold the object is no longer, or the other way round.
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

// record keeps an outcome and says how much it matters.
func (e *entry) record(cluster string, o member.Outcome, away map[string]bool, holds func(string) bool) (u urgency, news bool) {
	before, had := e.outcomes[cluster]
	if e.outcomes == nil {
		e.outcomes = map[string]member.Outcome{}
	}
	if o.Wrote && len(o.Drifted) > 0 {
		if e.drifts.count == 0 {
			e.drifts.cluster, e.drifts.field = cluster, o.Drifted[0]
		}
		e.drifts.count++
		driftCorrected.WithLabelValues(e.kind).Inc()
		news = true
	}
	o.Wrote, o.Drifted = false, nil
	e.outcomes[cluster] = o
	news = news || !had || !same(before, o)
	if failed(o) && (!had || before.Reason != o.Reason) {
		return failure, news
	}
	if p, ok := e.complete(away, holds); ok && p != e.reported {
		e.reported = p
		return lastResult, true
	}
	return e.progress(), news
}

// change notes that the copy on a cluster changed, and returns how soon that must be written. A change on one cluster
// is often made on all: then the last one ends the window.
func (e *entry) change(cluster string, away map[string]bool, holds func(string) bool) urgency {
	if e.moved == nil {
		e.moved = map[string]bool{}
	}
	e.moved[cluster] = true
	u := e.progress()
	p, ok := e.complete(away, holds)
	if u == whenIdle && ok {
		return result // the watch shows that a withdrawn copy is gone
	}
	if u != result || len(e.moved) < 2 || !ok || p != e.reported {
		return u // the copies are being written, and their outcomes count
	}
	if slices.ContainsFunc(e.targets, func(t hubv1.BindingTarget) bool { return !e.moved[t.Name] && !away[t.Name] && holds(t.Name) }) {
		return u
	}
	return lastResult
}

// progress is how much one more step matters. While the object is only taken away, nobody waits for the steps before
// the last.
func (e *entry) progress() urgency {
	if len(e.targets) > 0 && !slices.ContainsFunc(e.targets, func(t hubv1.BindingTarget) bool { return t.State != hubv1.TargetAbsent }) {
		return whenIdle
	}
	return result
}

// complete is true once every target has reported on the same content; targets that are away are not waited for, nor
// those that report to other replicas, unless all do.
func (e *entry) complete(away map[string]bool, holds func(string) bool) (reached, bool) {
	p := reached{binding: e.generation}
	held := len(e.targets) == 0
	for _, t := range e.targets {
		if !holds(t.Name) {
			continue
		}
		held = true
		if away[t.Name] {
			continue
		}
		o, ok := e.outcomes[t.Name]
		switch {
		case !ok, t.State == hubv1.TargetAbsent && o.Reason != hubv1.ReasonWithdrawn:
			return p, false
		case t.Revision != 0:
			if o.HubRevision != t.Revision {
				return p, false
			}
		case o.HubContent == 0 || p.hub == o.HubContent:
		case p.hub != 0:
			return p, false
		default:
			p.hub = o.HubContent
		}
	}
	return p, held
}

// underWay are reasons for which nobody has to do anything, or somebody asked.
var underWay = map[string]bool{
	hubv1.ReasonPending: true, hubv1.ReasonDeleting: true, hubv1.ReasonFinalizersRemain: true, hubv1.ReasonWithdrawn: true, hubv1.ReasonSuspended: true, hubv1.ReasonPaused: true,
	hubv1.ReasonMissing: true, hubv1.ReasonDiffers: true,
}

func failed(o member.Outcome) bool { return o.Applied == metav1.ConditionFalse && !underWay[o.Reason] }

// same says whether two outcomes lead to the same row.
func same(a, b member.Outcome) bool {
	return a.Applied == b.Applied && a.Reason == b.Reason && a.Message == b.Message && a.UID == b.UID && a.Hash == b.Hash &&
		a.Digest == b.Digest && a.HubGeneration == b.HubGeneration && a.HubRevision == b.HubRevision && a.HubContent == b.HubContent && a.Generation == b.Generation &&
		a.Adopted == b.Adopted && (a.Orphaned == nil) == (b.Orphaned == nil)
}

// outdated says that a cached binding is older than our own last write, or the one that a write was refused for.
func (e *entry) outdated(b hubv1.BindingObject) bool {
	if e.uid != "" && e.uid != b.GetUID() {
		return false
	}
	return hubv1.Older(b.GetResourceVersion(), e.written) || (e.refused != "" && b.GetResourceVersion() == e.refused)
}
