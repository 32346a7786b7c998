// Package guard judges removals of copies: it holds removals that are too many at once until a user confirms them.
//
//   - A set has all removals caused by one placement, or by one leaving MemberCluster. It is held or released as a
//     whole.
//   - Sets that wait at the same time are judged together. The limit of a cluster is compared with the sum over all
//     sets, so that one wrong label under many small placements is noticed.
//   - A set is held if one of its placements or clusters would lose more copies than its limit. It is also held if an
//     object would lose its last copy. Sets of other placements and clusters are not held with it, so one tenant cannot
//     stop the removals of another.
//   - Removals of the last Window count as well, so that many small sets in a row do not exceed the limit.
package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limit is the number of copies that may be removed at once: Copies, or Percent of all copies if that number is larger.
type Limit struct{ Copies, Percent int }

// DefaultLimit is the limit of a cluster or placement that does not set a limit.
var DefaultLimit = Limit{Copies: 5, Percent: 20}

// Of returns how many of the given number of copies may be removed at once.
func (l Limit) Of(copies int) int { return max(l.Copies, copies*l.Percent/100) }

// With returns the limit in which copies and percent replace the numbers of l, if they are not nil.
func (l Limit) With(copies, percent *int32) Limit {
	if copies != nil {
		l.Copies = int(*copies)
	}
	if percent != nil {
		l.Percent = int(*percent)
	}
	return l
}

// Removal is the removal of one copy that the guard judges.
type Removal struct {
	// Set names the placement or the MemberCluster that causes the removal. The guard holds or releases all removals of
	// one Set together.
	Set string
	// Object names the hub object of the copy. Several removals of one object together may remove its last copy.
	Object string
	// Placement is the placement of the object, and Cluster the cluster of the copy. Each of them has a limit for
	// removals.
	Placement, Cluster string
	// Last is true if the object would lose its last copy.
	Last bool
}

// Scope is a placement or a cluster with a limit for removals.
type Scope struct {
	Limit Limit
	// Copies is the number of copies in the scope, including the copies to remove. Recent is the number of copies that
	// were removed within the last Window.
	Copies, Recent int
}

// Breach is a reason to hold a Set of removals. Placement or Cluster names the scope whose limit would be exceeded.
// Both are empty if the reason is that objects would lose their last copy.
type Breach struct {
	Placement, Cluster string
	// Removed is the number of the scope's Copies that would be removed, and Limit is the maximum. If objects would lose
	// their last copy, Removed is the number of these objects.
	Removed, Copies, Limit int
}

func (b Breach) String() string {
	switch {
	case b.Placement != "":
		return fmt.Sprintf("%d of %d copies of %s, limit %d", b.Removed, b.Copies, b.Placement, b.Limit)
	case b.Cluster != "":
		return fmt.Sprintf("%d of %d copies on cluster %s, limit %d", b.Removed, b.Copies, b.Cluster, b.Limit)
	case b.Removed == 1:
		return "the last copy of 1 object"
	}
	return fmt.Sprintf("the last copies of %d objects", b.Removed)
}

// Judge returns the Sets of removals to hold, each with the reasons. A scope that is missing in the maps has the limit
// DefaultLimit, and only the copies in removals.
func Judge(removals []Removal, placements, clusters map[string]Scope) map[string][]Breach {
	placement := func(r Removal) string { return r.Placement }
	cluster := func(r Removal) string { return r.Cluster }
	overPlacements, overClusters := over(removals, placement, placements), over(removals, cluster, clusters)
	last := map[string]map[string]bool{} // objects by set
	bad := map[string]map[Breach]bool{}
	hold := func(set string, b Breach) {
		if bad[set] == nil {
			bad[set] = map[Breach]bool{}
		}
		bad[set][b] = true
	}
	for _, r := range removals {
		if b, yes := overPlacements[r.Placement]; yes {
			b.Placement = r.Placement
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
			return cmp.Or(cmp.Compare(b.Removed, a.Removed), cmp.Compare(a.Placement, b.Placement), cmp.Compare(a.Cluster, b.Cluster))
		})
	}
	return held
}

// over returns the breaches of the scopes that would lose more copies than their limit.
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

// Window is the default time for which a past removal counts towards the limit.
const Window = time.Minute

// Recent counts the removals of each scope within the last Window. The zero value contains no removals.
type Recent struct {
	// Window is the time for which a past removal counts towards the limit. The default is the constant Window.
	Window time.Duration

	gone map[string][]batch
}

type batch struct {
	at time.Time
	n  int
}

// Add records that a copy of the scope is removed now.
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

// Of returns how many copies of the scope were removed within the last Window, and forgets older removals.
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

// Shown is a set of removals as the status shows it to users.
type Shown struct {
	Copies   int
	Clusters []string
	Causes   []string // reasons
}

// Covers reports whether a confirmation of s also confirms the later removals now. They may have at most a tenth more
// copies, and no further cluster or reason.
func (s Shown) Covers(now Shown) bool {
	within := func(all, some []string) bool {
		return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
	}
	return now.Copies*10 <= s.Copies*11 && within(s.Clusters, now.Clusters) && within(s.Causes, now.Causes)
}
