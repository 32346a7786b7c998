package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// DefaultMaxAway is the default of Input.MaxAway: the maximum percentage of clusters that may be unreachable at once.
// If more clusters are unreachable, the hub assumes that the fault is on the side of the hub, and moves no object.
const DefaultMaxAway = 50

// maxTolerationSeconds is the limit for tolerationSeconds. A longer toleration never expires, because the sum with the
// time of a taint could overflow.
const maxTolerationSeconds = 1 << 32

// tolerance reports whether a taint is tolerated, and for how many seconds. If limit is nil, the taint is tolerated
// without end. If several tolerations match, the shortest one applies, as for pods.
func tolerance(tolerations []corev1.Toleration, taint corev1.Taint) (limit *int64, yes bool) {
	for _, t := range tolerations {
		if !tolerates(t, taint) {
			continue
		}
		yes = true
		if s := t.TolerationSeconds; s != nil && *s < maxTolerationSeconds && (limit == nil || *s < *limit) {
			limit = s
		}
	}
	return limit, yes
}

// limitOf returns for how many seconds a NoExecute taint is tolerated. It returns nil if the taint is tolerated without
// end, or not at all. For the taint that the hub sets on unreachable clusters, failover.evictAfterSeconds of the
// placement applies, unless a toleration has the key of that taint.
func (c *Compiled) limitOf(t corev1.Taint) *int64 {
	if t.Effect != corev1.TaintEffectNoExecute {
		return nil
	}
	if t.Key != hubv1.UnreachableTaint {
		limit, _ := tolerance(c.tolerations, t)
		return limit
	}
	named := slices.DeleteFunc(slices.Clone(c.tolerations), func(t corev1.Toleration) bool { return t.Key == "" })
	if limit, yes := tolerance(named, t); yes {
		return limit
	}
	return c.evictAfter
}

// left returns for how long a taint is still tolerated. limit is the whole time in seconds, or nil if the taint is
// tolerated without end. passed is true if this time is over. A taint without timeAdded is tolerated without end,
// because its start is not known.
func left(t corev1.Taint, limit *int64, now time.Time) (wait time.Duration, passed bool) {
	if limit == nil || t.TimeAdded == nil {
		return 0, false
	}
	wait = t.TimeAdded.Add(time.Duration(*limit) * time.Second).Sub(now)
	return max(wait, 0), wait <= 0
}

// patience returns the time until the first NoExecute taint of the cluster is no longer tolerated. It returns 0 if no
// toleration ends in the future.
func (c *Compiled) patience(cl *Cluster, now time.Time) time.Duration {
	var least time.Duration
	for _, t := range cl.Taints {
		if wait, _ := left(t, c.limitOf(t), now); wait > 0 && (least == 0 || wait < least) {
			least = wait
		}
	}
	return least
}

// eviction says whether the object must leave a cluster that holds it, and whether the object can leave now.
type eviction struct {
	// due is the reason why the object must leave the cluster. stays is the reason why the object cannot leave yet. evict
	// is true if the decision replaces the cluster by other clusters.
	due, stays cause
	evict      bool
	// takenAway is true if a drain removes the object from the cluster although no other cluster can take it.
	takenAway bool
}

// due returns the reason why the object must leave a cluster that holds it. The object leaves as soon as another
// cluster can replace this one. The result is empty if the object may remain.
func due(in *Input, c *Cluster) cause {
	if c.Draining {
		return draining(in, c)
	}
	for _, t := range c.Taints {
		if t.Key != hubv1.UnreachableTaint || c.Ready {
			continue
		}
		limit := in.Placement.limitOf(t)
		if _, passed := left(t, limit, in.Now); passed {
			return cause{hubv1.ReasonEvicted, fmt.Sprintf("taint %s is set since %s and is tolerated for %d s",
				t.ToString(), t.TimeAdded.UTC().Format(time.RFC3339), max(*limit, 0))}
		}
	}
	return cause{}
}

// stays returns why the object cannot leave a cluster that it should leave. The result is empty if the object can
// leave. outage is the reason why no object leaves unreachable clusters, or empty if objects may leave them.
func stays(in *Input, c *contender, outage cause) cause {
	if why := in.Hold[c.cluster.Name]; why != "" {
		return cause{hubv1.ReasonEvictionHeld, why}
	}
	if c.eviction.due.reason == hubv1.ReasonEvicted {
		return outage
	}
	return cause{}
}

// outage returns why the hub moves no object from unreachable clusters: more than MaxAway percent of the clusters are
// unreachable at once. In this case, the fault may be on the side of the hub. The result is empty if objects may move.
func outage(in *Input) cause {
	maxAway := cmp.Or(in.MaxAway, DefaultMaxAway)
	away, all := 0, 0
	for i := range in.Clusters {
		if c := &in.Clusters[i]; !c.Leaving {
			all++
			if !c.Ready {
				away++
			}
		}
	}
	if away*100 <= all*maxAway {
		return cause{}
	}
	share := "half"
	if maxAway != 50 {
		share = fmt.Sprintf("%d %%", maxAway)
	}
	return cause{hubv1.ReasonTooManyAway, fmt.Sprintf("%d of %d clusters do not answer: the hub moves no object while more than %s do not answer", away, all, share)}
}

// evict chooses the clusters from which the object moves to other clusters. It chooses only as many as other clusters
// can replace, so that the object is not on fewer clusters than before. For each further cluster that the object should
// leave, evict records why it cannot leave.
func (s *spread) evict(all []*contender) {
	var due []*contender
	for _, c := range all {
		if c.held && c.eviction.due.reason != "" && c.eviction.stays.reason == "" {
			due = append(due, c)
		}
	}
	if len(due) == 0 {
		return
	}
	trace := s.trace
	s.trace = nil
	defer func() { s.trace = trace }()

	before := s.try(all)
	for _, c := range due {
		c.eviction.stays = cause{hubv1.ReasonNoReplacement, "no other cluster can replace it"}
		c.eviction.evict = before.chosen[c]
	}
	// The spread does not choose a cluster with evict == false, even if the object leaves no cluster. Such a cluster needs
	// no replacement.
	due = slices.DeleteFunc(due, func(c *contender) bool { return !c.eviction.evict })
	defer func() { takeAway(due) }()
	if s.makesUp(before, s.try(all)) {
		return
	}
	for _, c := range due {
		c.eviction.evict = false
	}
	if s.number == 0 && len(s.constraints) == 0 && len(s.groups) == 0 && !s.divided {
		for _, c := range due {
			c.eviction.stays = cause{hubv1.ReasonWantedEverywhere, "the placement wants the object on every cluster, so no other cluster can replace this one"}
		}
		return
	}
	// An unreachable cluster is replaced before a drained one.
	slices.SortStableFunc(due, func(a, b *contender) int { return cmp.Compare(b.eviction.due.reason, a.eviction.due.reason) })
	for _, c := range due {
		c.eviction.evict = true
		after := s.try(all)
		if s.makesUp(before, after) {
			before = after
			continue
		}
		c.eviction.evict = false
		if len(after.lacks) > 0 {
			c.eviction.stays.message += ": without it, " + strings.Join(after.lacks, "; ")
		}
	}
}

// takeAway marks the drained clusters that the object leaves without a replacement, because their drain also evicts
// objects that no other cluster can take.
func takeAway(due []*contender) {
	for _, c := range due {
		c.eviction.takenAway = c.cluster.Draining && c.cluster.TakesAway && !c.eviction.evict && !c.keep
	}
}

// result is the result of the method try: the clusters that the spread would choose.
type result struct {
	chosen map[*contender]bool
	answer int // how many of the chosen clusters may get the object now
	lacks  []string
	breaks bool
}

// try returns the clusters that the spread would choose now. It changes no cluster.
func (s *spread) try(all []*contender) result {
	a := s.attempt(s.members(s.group(all), all, eligible), kept(all)...)
	r := result{chosen: map[*contender]bool{}, lacks: messages(a.shortfalls()), breaks: a.breaks()}
	for _, c := range all {
		if c.chosen || (r.breaks && c.held && !c.eviction.evict) {
			r.chosen[c] = true
			r.answer += first(c.open())
		}
	}
	s.undo(all)
	return r
}

// makesUp reports whether other clusters can replace the evicted clusters, and no further cluster loses the object.
// before is the choice before these clusters are evicted, and after is the choice without them. If the replicas are
// divided, larger shares on the remaining clusters are enough as a replacement.
func (s *spread) makesUp(before, after result) bool {
	if after.breaks {
		return false
	}
	for c := range before.chosen {
		if !c.eviction.evict && !after.chosen[c] && !s.rebalance {
			return false
		}
	}
	if s.divided {
		return after.answer > 0
	}
	for c := range after.chosen {
		if !before.chosen[c] && !c.open() {
			return false // a replacement that no filter accepts, such as an unreachable cluster
		}
	}
	return len(after.chosen) >= len(before.chosen)
}
