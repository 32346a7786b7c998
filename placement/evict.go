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

// DefaultMostAway is the percentage of clusters that may be away at once: if more are, the hub looks for the fault in
// itself.
const DefaultMostAway = 50

// longestToleration bounds what is added to a time: longer ones never end.
const longestToleration = 1 << 32

// tolerance says whether a taint is tolerated, and for how many seconds if not for ever. The shortest of several
// counts, as for pods.
func tolerance(tolerations []corev1.Toleration, taint corev1.Taint) (limit *int64, yes bool) {
	for _, t := range tolerations {
		if !tolerates(t, taint) {
			continue
		}
		yes = true
		if s := t.TolerationSeconds; s != nil && *s < longestToleration && (limit == nil || *s < *limit) {
			limit = s
		}
	}
	return limit, yes
}

// limitOf a NoExecute taint that is tolerated for a time; nil if it is tolerated for ever, or not at all. The hub's own
// taint is tolerated as failover says, unless a toleration names it: one of every key was not written with it in mind.
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

// left is how much of a limit is left; passed is true if nothing is. A taint without a time is tolerated for ever:
// nobody knows since when it is there.
func left(t corev1.Taint, limit *int64, now time.Time) (wait time.Duration, passed bool) {
	if limit == nil || t.TimeAdded == nil {
		return 0, false
	}
	wait = t.TimeAdded.Add(time.Duration(*limit) * time.Second).Sub(now)
	return max(wait, 0), wait <= 0
}

// patience is the time until one more taint of the cluster is no longer tolerated; 0 if time alone changes nothing.
func (c *Compiled) patience(cl *Cluster, now time.Time) time.Duration {
	var least time.Duration
	for _, t := range cl.Taints {
		if wait, _ := left(t, c.limitOf(t), now); wait > 0 && (least == 0 || wait < least) {
			least = wait
		}
	}
	return least
}

// eviction says whether the object is to leave a cluster that holds it.
type eviction struct {
	// due says why the object is to leave, stays what keeps it there. evict is true if others take its place.
	due, stays cause
	evict      bool
	// takenAway is true if a drain takes the object away although no other cluster takes its place.
	takenAway bool
}

// due says why an object is to leave a cluster that holds it for another one, as soon as one can take it.
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

// stays says what keeps the object on a cluster that it is to leave; empty if nothing does.
func stays(in *Input, c *contender, outage cause) cause {
	if why := in.Hold[c.cluster.Name]; why != "" {
		return cause{hubv1.ReasonEvictionHeld, why}
	}
	if c.due.reason == hubv1.ReasonEvicted {
		return outage
	}
	return cause{}
}

// outage is why the hub moves nothing from clusters that are away, if so many are that the fault may be its own.
func outage(in *Input) cause {
	most := cmp.Or(in.MostAway, DefaultMostAway)
	away, all := 0, 0
	for i := range in.Clusters {
		if c := &in.Clusters[i]; !c.Leaving {
			all++
			if !c.Ready {
				away++
			}
		}
	}
	if away*100 <= all*most {
		return cause{}
	}
	share := "half"
	if most != 50 {
		share = fmt.Sprintf("%d %%", most)
	}
	return cause{hubv1.ReasonTooManyAway, fmt.Sprintf("%d of %d clusters do not answer: the hub moves no object while more than %s do not answer", away, all, share)}
}

// evict marks the clusters that lose the object to others: as many of those that are due as can be replaced, while the
// object stays on all others. What stands against it is said of the rest.
func (s *spread) evict(all []*contender) {
	var due []*contender
	for _, c := range all {
		if c.held && c.due.reason != "" && c.stays.reason == "" {
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
		c.stays = cause{hubv1.ReasonNoReplacement, "no other cluster can replace it"}
		c.evict = before.chosen[c]
	}
	due = slices.DeleteFunc(due, func(c *contender) bool { return !c.evict }) // that one goes in any case
	defer func() { takeAway(due) }()
	if s.makesUp(before, s.try(all)) {
		return
	}
	for _, c := range due {
		c.evict = false
	}
	if s.number == 0 && len(s.constraints) == 0 && len(s.groups) == 0 && !s.divided {
		for _, c := range due {
			c.stays = cause{hubv1.ReasonWantedEverywhere, "the placement wants the object on every cluster, so no other cluster can replace this one"}
		}
		return
	}
	// One that is away is rather replaced than one that is drained.
	slices.SortStableFunc(due, func(a, b *contender) int { return cmp.Compare(b.due.reason, a.due.reason) })
	for _, c := range due {
		c.evict = true
		after := s.try(all)
		if s.makesUp(before, after) {
			before = after
			continue
		}
		c.evict = false
		if len(after.lacks) > 0 {
			c.stays.message += ": without it, " + strings.Join(after.lacks, "; ")
		}
	}
}

// takeAway marks clusters that keep the object for want of a replacement, and that a drain empties of such objects,
// too.
func takeAway(due []*contender) {
	for _, c := range due {
		c.takenAway = c.cluster.Draining && c.cluster.TakesAway && !c.evict && !c.keep
	}
}

// result is what a spread comes to.
type result struct {
	chosen map[*contender]bool
	answer int // of them are open for the object
	lacks  []string
	breaks bool
}

// try chooses and takes it back.
func (s *spread) try(all []*contender) result {
	a := s.attempt(s.members(s.group(all), all, eligible), kept(all)...)
	r := result{chosen: map[*contender]bool{}, lacks: messages(a.shortfalls()), breaks: a.breaks()}
	for _, c := range all {
		if c.chosen || (r.breaks && c.held && !c.evict) {
			r.chosen[c] = true
			r.answer += first(c.open())
		}
	}
	s.undo(all)
	return r
}

// makesUp is true if others take the place of what was taken out, and nothing else loses the object. The replicas of a
// division are taken over by those that are left.
func (s *spread) makesUp(before, after result) bool {
	if after.breaks {
		return false
	}
	for c := range before.chosen {
		if !c.evict && !after.chosen[c] && !s.rebalance {
			return false
		}
	}
	if s.divided {
		return after.answer > 0
	}
	for c := range after.chosen {
		if !before.chosen[c] && !c.open() {
			return false // it holds the object, and is away itself
		}
	}
	return len(after.chosen) >= len(before.chosen)
}
