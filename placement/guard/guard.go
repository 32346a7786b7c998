// Package guard decides which removals of copies must wait. If too many copies would be removed at once, it holds the
// removals until a user confirms them.
//
//   - A set has all removals caused by one placement, by one leaving MemberCluster, or by the new content of one
//     bundle. It is held or released as a whole.
//   - Sets that wait at the same time are judged together. The limit of a cluster is compared with the sum over all
//     sets, so that one wrong label under many small placements is noticed.
//   - A group has all copies of the objects of one placement, or of one bundle. A set is held if one of its groups or
//     clusters would lose more copies than the limit of that group or cluster. It is also held if an object would lose
//     its last copy. Sets of other groups and clusters are not held with it, so one tenant cannot stop the removals of
//     another.
//   - Removals of the last Window (a time span) count as well, so that many small sets in a row do not exceed the
//     limit.
package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limit says how many copies may be removed at once: the number Copies, or Percent of all copies if that is more.
type Limit struct{ Copies, Percent int }

// DefaultLimit is the limit of a cluster or group for which no other limit is set.
var DefaultLimit = Limit{Copies: 5, Percent: 20}

// Of returns how many of the given number of copies may be removed at once.
func (l Limit) Of(copies int) int { return max(l.Copies, copies*l.Percent/100) }

// With returns the limit l with other values of Copies and Percent. An argument that is nil leaves the value of l as it
// is.
func (l Limit) With(copies, percent *int32) Limit {
	if copies != nil {
		l.Copies = int(*copies)
	}
	if percent != nil {
		l.Percent = int(*percent)
	}
	return l
}

// Removal is one copy that the hub wants to remove. The guard decides whether the removal must wait.
type Removal struct {
	// Set is the name of the placement, MemberCluster or bundle that causes the removal. All removals with the same Set
	// wait together, or none of them waits.
	Set string
	// Object is the name of the hub object of the copy. Several removals of one object can together remove its last copy.
	Object string
	// Group is the name of the placement or bundle with whose copies this copy is counted, and Cluster the name of the
	// cluster with the copy. Groups and clusters each have a limit for removals.
	Group, Cluster string
	// Last is true if the hub object would lose its last copy.
	Last bool
}

// Scope is a group or a cluster, with its limit for removals and its number of copies.
type Scope struct {
	Limit Limit
	// Copies is the number of all copies in the scope. It includes the copies that shall be removed. Recent is the number
	// of copies that were removed within Window before now (one minute by default).
	Copies, Recent int
}

// Breach is a reason for which all removals of one Set must wait. If they would exceed a limit, Group or Cluster is the
// name of the scope with this limit. If objects would lose their last copies, Group and Cluster are empty.
type Breach struct {
	Group, Cluster string
	// Removed is the sum of two numbers: the copies of the scope that would be removed, and the copies that were removed
	// within Window (one minute by default). Copies is the number of all copies of the scope. Limit is the number of
	// copies that may be removed. If objects would lose their last copies, Removed is the number of these objects.
	Removed, Copies, Limit int
}

func (b Breach) String() string {
	switch {
	case b.Group != "":
		return fmt.Sprintf("%d of %d copies of %s, limit %d", b.Removed, b.Copies, b.Group, b.Limit)
	case b.Cluster != "":
		return fmt.Sprintf("%d of %d copies on cluster %s, limit %d", b.Removed, b.Copies, b.Cluster, b.Limit)
	case b.Removed == 1:
		return "the last copy of 1 object"
	}
	return fmt.Sprintf("the last copies of %d objects", b.Removed)
}

// Judge returns the Sets whose removals must wait, each with the reasons. A Set is the name of the placement,
// MemberCluster or bundle that causes removals. groups and clusters have the limits and numbers of copies by name. For
// a group or cluster without a Scope, Judge uses DefaultLimit and counts only the copies in removals.
func Judge(removals []Removal, groups, clusters map[string]Scope) map[string][]Breach {
	group := func(r Removal) string { return r.Group }
	cluster := func(r Removal) string { return r.Cluster }
	overGroups, overClusters := over(removals, group, groups), over(removals, cluster, clusters)
	last := map[string]map[string]bool{} // last has, by set, the objects that lose their last copy
	bad := map[string]map[Breach]bool{}
	hold := func(set string, b Breach) {
		if bad[set] == nil {
			bad[set] = map[Breach]bool{}
		}
		bad[set][b] = true
	}
	for _, r := range removals {
		if b, yes := overGroups[r.Group]; yes {
			b.Group = r.Group
			hold(r.Set, b)
		}
		if b, yes := overClusters[r.Cluster]; yes {
			b.Cluster = r.Cluster
			hold(r.Set, b)
		}
		if r.Last {
			if last[r.Set] == nil {
				last[r.Set] = map[string]bool{}
			}
			last[r.Set][r.Object] = true
		}
	}
	for set, objects := range last {
		hold(set, Breach{Removed: len(objects)})
	}
	held := map[string][]Breach{}
	for set, breaches := range bad {
		held[set] = slices.SortedFunc(maps.Keys(breaches), func(a, b Breach) int {
			return cmp.Or(cmp.Compare(b.Removed, a.Removed), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Cluster, b.Cluster))
		})
	}
	return held
}

// over returns a Breach for each scope that would lose more copies than its limit. name returns the scope of a removal.
func over(removals []Removal, name func(Removal) string, scopes map[string]Scope) map[string]Breach {
	counts := map[string]int{}
	for _, r := range removals {
		counts[name(r)]++
	}
	out := map[string]Breach{}
	for scope, n := range counts {
		s, known := scopes[scope]
		if !known {
			s.Limit = DefaultLimit
		}
		copies := max(s.Copies, n) + s.Recent
		if limit := s.Limit.Of(copies); n+s.Recent > limit {
			out[scope] = Breach{Removed: n + s.Recent, Copies: copies, Limit: limit}
		}
	}
	return out
}

// Window is the default time for which a past removal counts towards a limit.
const Window = time.Minute

// Recent counts, for each scope, the copies that were removed in the time Window before now. The zero value has no
// removals.
type Recent struct {
	// Window is the time for which a past removal counts towards a limit. If it is zero, the constant Window is used.
	Window time.Duration

	gone map[string][]batch
}

type batch struct {
	at time.Time
	n  int
}

// Add records that one copy of the scope was removed at the time now.
func (r *Recent) Add(scope string, now time.Time) {
	if r.gone == nil {
		r.gone = map[string][]batch{}
	}
	all := r.gone[scope]
	if n := len(all); n > 0 && all[n-1].at.Equal(now) {
		all[n-1].n++
		return
	}
	r.gone[scope] = append(all, batch{at: now, n: 1})
}

// Of returns how many copies of the scope were removed in the time Window before now. It forgets older removals.
func (r *Recent) Of(scope string, now time.Time) int {
	all := slices.DeleteFunc(r.gone[scope], func(b batch) bool { return now.Sub(b.at) >= cmp.Or(r.Window, Window) })
	if len(all) == 0 {
		delete(r.gone, scope)
		return 0
	}
	r.gone[scope] = all
	sum := 0
	for _, b := range all {
		sum += b.n
	}
	return sum
}

// Shown describes the held removals that one placement, MemberCluster or bundle causes, as status.removalHeld shows
// them to users.
type Shown struct {
	Copies   int
	Clusters []string
	Causes   []string // reasons of the removals
}

// Covers reports whether a user's confirmation of the held removals s also applies to now, a later state of these
// removals. This is so if now has no cluster and no cause that s lacks, and at most a tenth more copies.
func (s Shown) Covers(now Shown) bool {
	within := func(all, some []string) bool {
		return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
	}
	return now.Copies*10 <= s.Copies*11 && within(s.Clusters, now.Clusters) && within(s.Causes, now.Causes)
}
