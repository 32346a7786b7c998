package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/replicas"
)

// evicting returns the clusters whose entries the decision d changes to the state Evicting.
func (in input) evicting(d placement.Decision) []string {
	var out []string
	for _, r := range d.Evict {
		if e := in.Spec().Target(r.Cluster); e != nil && e.State != hubv1.TargetEvicting {
			out = append(out, r.Cluster)
		}
	}
	return out
}

// limited returns in hold the clusters from which the decision d evicts the object although the object must not leave
// yet. The values of hold are the reasons. Clusters that are in held, from an earlier call, are left out. c records for
// which limits the object waits. wait is the time until a limit may allow an eviction, or 0 if only an event can allow
// it.
func (in input) limited(d placement.Decision, held map[string]string, c *Claims) (hold map[string]string, wait time.Duration) {
	for _, name := range in.evicting(d) {
		m := in.Facts.Cluster(name)
		if _, known := held[name]; known || m == nil {
			continue
		}
		why, w := in.evictionHeld(m)
		wait = earlier(wait, w)
		switch why {
		case "":
			continue
		case drainFull:
			c.FullDrains = append(c.FullDrains, name)
		case evictionLater:
			c.EvictionWaits = true
		}
		if hold == nil {
			hold = map[string]string{}
		}
		hold[name] = why
	}
	return hold, wait
}

const (
	noRoom        = "the other clusters have no room for the object's replicas"
	drainFull     = "the drain limit is reached: maxUnavailable objects of the cluster are moving"
	evictionLater = "the hub has reached its limit of evictions per second"
)

// evictionHeld returns why the object must not leave the cluster yet. wait is the time after which the answer may
// change; it is 0 if only an event can change the answer. The text is empty if the object may leave now.
func (in input) evictionHeld(m *hubv1.MemberCluster) (why string, wait time.Duration) {
	drain := m.Spec.Drain
	switch {
	case in.Object.Unconfirmed:
		return "the hub has not confirmed the state of the object by an uncached read yet", 0
	case drain != nil && in.noRoom:
		return noRoom, 0
	case in.Limits == nil, drain != nil && !in.Limits.FullDrains[m.Name]:
		return "", 0
	case drain != nil:
		return drainFull, 0
	case in.Limits.Settling > 0:
		return "the hub has just started and still probes the clusters", in.Limits.Settling
	case in.Limits.Untried[m.Name]:
		return "the hub has not probed the cluster yet", 5 * time.Second
	case in.Limits.EvictionIn > 0:
		return evictionLater, in.Limits.EvictionIn
	}
	return "", 0
}

// evicted returns the new entry of spec.clusters for a cluster that the decision d replaces by other clusters. The
// entry has the state Evicting. When isReplaced returns true, the entry becomes Absent, so that the copy is removed.
func (in input) evicted(e hubv1.BindingTarget, d placement.Decision, whenUnselected hubv1.RemovalPolicy, spec *hubv1.PlacementSpec) hubv1.BindingTarget {
	if e.State == hubv1.TargetEvicting {
		if in.isReplaced(e, d, spec) {
			return in.absent(e, e.Evicting.Reason, whenUnselected)
		}
		return e
	}
	reason := hubv1.ReasonEvicted
	if in.isDrained(e.Name) {
		reason = hubv1.ReasonDrained
	}
	return hubv1.BindingTarget{Name: e.Name, State: hubv1.TargetEvicting, Replicas: e.Replicas, Evicting: &hubv1.Eviction{Reason: reason}}
}

// isReplaced reports whether the copy on a cluster with the state Evicting may be removed. The cluster must be
// reachable, and its row in the binding's status must show that the cluster has the wanted copy or refuses this copy.
// The copies on the clusters that replace it must be healthy and up to date. In addition, the decision d must keep at
// least one of the replacing clusters, and the kept clusters must have all replicas. Only a drain with evict: true does
// not need these two additional conditions.
func (in input) isReplaced(e hubv1.BindingTarget, d placement.Decision, spec *hubv1.PlacementSpec) bool {
	m := in.Facts.Cluster(e.Name)
	if m == nil || m.IsAway() || len(Awaited(in.Binding, e, in.hub())) > 0 {
		return false
	}
	row := in.Binding.BindingStatus().Row(e.Name)
	switch {
	case row == nil, row.Applied == "", row.Applied == metav1.ConditionUnknown, row.Reason == hubv1.ReasonPending:
		return false
	case row.Applied == metav1.ConditionTrue && !hubv1.Wanted(e, in.hub()).IsHeld(row.Generation, row.Revision) && row.Reason != hubv1.ReasonIsTemplate:
		return false
	}
	kept := in.keptBy(d)
	return replaces(kept, e.Evicting.Replacements) && in.coversReplicas(kept, spec) || in.drainEvicts(e.Name)
}

// keptBy returns the entries of the binding that have the state Present and whose clusters the decision d keeps. It
// also returns the entries of clusters without a MemberCluster. It leaves out entries whose removal still waits for the
// permission of package guard. These copies may be removed soon.
func (in input) keptBy(d placement.Decision) (kept []hubv1.BindingTarget) {
	names := slices.Clone(d.Missing)
	for _, t := range d.Targets {
		if t.Reason != hubv1.ReasonRemovalHeld {
			names = append(names, t.Cluster)
		}
	}
	for _, e := range in.Spec().Clusters {
		if e.State == hubv1.TargetPresent && slices.Contains(names, e.Name) {
			kept = append(kept, e)
		}
	}
	return kept
}

// replaces reports whether at least one of the kept entries is recorded as a replacement of a cluster with the state
// Evicting. If no replacement is recorded, every kept entry counts as a replacement. If the result is false, the copy
// on the cluster that is evicted may be the last copy.
func replaces(kept []hubv1.BindingTarget, replacements []hubv1.Replacement) bool {
	return slices.ContainsFunc(kept, func(e hubv1.BindingTarget) bool { return isReplacement(e.Name, replacements) })
}

// coversReplicas reports whether the kept entries together have all replicas of the object. If so, the replicas on a
// cluster with the state Evicting are not needed. The result is true if the placement does not divide replicas.
func (in input) coversReplicas(kept []hubv1.BindingTarget, spec *hubv1.PlacementSpec) bool {
	if !spec.Replicas.Divides() {
		return true
	}
	field, err := replicas.Locate(in.Object.ID.GroupKind(), spec, in.Object.Template, in.Object.ScalePath)
	if err != nil {
		return false
	}
	sum := int64(0)
	for _, t := range kept {
		sum += int64(ptr.Deref(t.Replicas, 0))
	}
	return sum >= field.Total
}

// isBack reports whether the copy on a cluster with the state Evicting is healthy again and has the wanted content.
func (in input) isBack(e hubv1.BindingTarget) bool {
	return isHealthy(in.Binding, e, "", in.hub())
}

// Awaited returns the clusters that replace the cluster of e, which has the state Evicting, and that have no healthy,
// up-to-date copy yet. If e records no replacements, all clusters with the state Present count as replacements. If the
// hub object could not be read, o is empty, and the generations of the copies are not compared.
func Awaited(b hubv1.BindingObject, e hubv1.BindingTarget, o hubv1.HubObject) []string {
	spec := b.BindingSpec()
	var out []string
	wait := func(t hubv1.BindingTarget, digest string) {
		if !isHealthy(b, t, digest, o) {
			out = append(out, t.Name)
		}
	}
	for _, r := range e.Evicting.Replacements {
		t := ptr.Deref(spec.Target(r.Cluster), hubv1.BindingTarget{Name: r.Cluster})
		wait(t, r.Digest)
	}
	if len(e.Evicting.Replacements) > 0 {
		return out
	}
	for _, t := range spec.Clusters {
		if t.State == hubv1.TargetPresent && t.Removal == nil {
			wait(t, "")
		}
	}
	return out
}

// isHealthy reports whether the status row of the target t shows a healthy copy with the wanted content. The row must
// belong to the current spec of the binding. digest is empty, or identifies the content that the copy had before its
// number of replicas changed. A copy that still has this digest does not count as healthy.
func isHealthy(b hubv1.BindingObject, t hubv1.BindingTarget, digest string, o hubv1.HubObject) bool {
	status := b.BindingStatus()
	row := status.Row(t.Name)
	if row == nil || status.ObservedGeneration != b.GetGeneration() || row.Applied != metav1.ConditionTrue || row.Health != hubv1.HealthHealthy {
		return false
	}
	if row.Reason == hubv1.ReasonIsTemplate {
		return true
	}
	return hubv1.Wanted(t, o).IsHeld(row.Generation, row.Revision) && (digest == "" || row.Digest != digest)
}

// addReplacements records in each entry with the state Evicting the clusters that replace its cluster. These are the
// clusters that get the object now, or get more replicas than before. A recorded replacement that no longer holds the
// object is removed from the record. New replacements are only recorded for new evictions, and for evictions that lost
// a replacement.
func (in input) addReplacements(p *Plan) {
	var grown []hubv1.Replacement
	for _, e := range p.Spec.Clusters {
		if r, yes := in.grows(e); yes {
			grown = append(grown, r)
		}
	}
	for i := range p.Spec.Clusters {
		e := &p.Spec.Clusters[i]
		if e.State != hubv1.TargetEvicting {
			continue
		}
		eviction := *e.Evicting
		before := eviction.Replacements
		eviction.Replacements = nil
		for _, r := range before {
			if t := p.Spec.Target(r.Cluster); t != nil && t.State == hubv1.TargetPresent {
				if now, yes := in.shareChanges(*t); yes {
					r = now
				}
				eviction.Replacements = append(eviction.Replacements, r)
			}
		}
		fresh := in.Spec().Target(e.Name) == nil || in.Spec().Target(e.Name).State != hubv1.TargetEvicting
		if fresh || len(eviction.Replacements) < len(before) {
			for _, r := range grown {
				if !slices.ContainsFunc(eviction.Replacements, func(o hubv1.Replacement) bool { return o.Cluster == r.Cluster }) {
					eviction.Replacements = append(eviction.Replacements, r)
				}
			}
		}
		if len(eviction.Replacements) > hubv1.MaxReplacements {
			eviction.Replacements = nil
		}
		e.Evicting = &eviction
	}
}

// grows reports whether a cluster gets the object now, or gets more replicas than before. The first result is a
// Replacement that names this cluster. Entries with the state Evicting list such Replacements.
func (in input) grows(e hubv1.BindingTarget) (hubv1.Replacement, bool) {
	if e.State != hubv1.TargetPresent {
		return hubv1.Replacement{}, false
	}
	before := in.Spec().Target(e.Name)
	if before == nil || before.State != hubv1.TargetPresent {
		return hubv1.Replacement{Cluster: e.Name}, true
	}
	more := e.Replicas != nil && before.Replicas != nil && *e.Replicas > *before.Replicas
	return in.replacement(e.Name), more
}

// shareChanges reports whether the number of replicas of a cluster changes. The first result is a Replacement that
// names this cluster. Entries with the state Evicting list such Replacements.
func (in input) shareChanges(e hubv1.BindingTarget) (hubv1.Replacement, bool) {
	before := in.Spec().Target(e.Name)
	other := before != nil && before.State == hubv1.TargetPresent && e.Replicas != nil && before.Replicas != nil && *e.Replicas != *before.Replicas
	return in.replacement(e.Name), other
}

// replacement returns the record of a cluster that replaces another cluster. The record has the digest of the copy that
// the cluster has now, before the decision changes the copy.
func (in input) replacement(cluster string) hubv1.Replacement {
	r := hubv1.Replacement{Cluster: cluster}
	if row := in.Binding.BindingStatus().Row(cluster); row != nil {
		r.Digest = row.Digest
	}
	return r
}

// evictionBlocked returns a text about the clusters that the object should leave but cannot leave soon. reason is why
// the object cannot leave an unreachable cluster. If there are several reasons, ReasonTooManyAway is preferred. An
// empty reason means that the condition Scheduled must not become false.
func (in input) evictionBlocked(d placement.Decision) (text, reason string) {
	const named = 3
	var parts []string
	for _, r := range d.Unmoved {
		if r.Reason == hubv1.ReasonEvictionHeld {
			continue // the eviction waits for a limit, and will be allowed soon
		}
		if !in.isDrained(r.Cluster) && reason != hubv1.ReasonTooManyAway && r.Reason != hubv1.ReasonWantedEverywhere {
			reason = r.Reason
		}
		parts = append(parts, fmt.Sprintf("stays on %s: %s", r.Cluster, r.Message))
	}
	if len(parts) > named {
		parts = append(parts[:named], fmt.Sprintf("and on %d more", len(parts)-named))
	}
	return strings.Join(parts, "; "), reason
}

// withBlocked adds the text of evictionBlocked to the message of the condition Scheduled. If evictionBlocked has a
// reason and the condition is true, the condition becomes false with this reason.
func (in input) withBlocked(c metav1.Condition, d placement.Decision) metav1.Condition {
	text, reason := in.evictionBlocked(d)
	if text == "" {
		return c
	}
	c.Message += "; " + text
	if reason != "" && c.Status == metav1.ConditionTrue {
		c.Status, c.Reason = metav1.ConditionFalse, reason
	}
	return c
}

func (in input) isDrained(cluster string) bool {
	m := in.Facts.Cluster(cluster)
	return m != nil && m.Spec.Drain != nil
}

// drainEvicts reports whether a cluster is drained with evict: true. Such a drain also evicts objects that no other
// cluster can take.
func (in input) drainEvicts(cluster string) bool {
	return in.isDrained(cluster) && in.Facts.Cluster(cluster).Spec.Drain.Evict
}

// needsRoom reports whether a cluster is drained without evict: true. Such a drain does not evict an object while the
// other clusters have no room for the object's replicas.
func (in input) needsRoom(cluster string) bool {
	return in.isDrained(cluster) && !in.drainEvicts(cluster)
}

// unreplaced returns the drained clusters that the object leaves by the decision d although no other cluster replaces
// them.
func (in input) unreplaced(d placement.Decision) []string {
	if in.Object.Unconfirmed {
		return nil
	}
	var out []string
	for _, r := range d.Withdraw {
		if r.Reason == hubv1.ReasonDraining {
			out = append(out, r.Cluster)
		}
	}
	return out
}

// drainBlocked returns the drained clusters that the object cannot leave, each with the reason.
func (in input) drainBlocked(d placement.Decision) map[string]string {
	var out map[string]string
	for _, r := range d.Unmoved {
		if !in.isDrained(r.Cluster) || (r.Reason == hubv1.ReasonEvictionHeld && r.Message != noRoom) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[r.Cluster] = r.Reason
	}
	return out
}
