package plan

import (
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/guard"
)

// Guard is the guard's verdict on the removals of a plan. It assumes that no other removals are waiting.
type Guard struct {
	// Judged is the number of removals that the guard judges. Orphaned copies and replaced copies are not judged.
	Judged int `json:"judged"`
	// Held are the removals that a user would have to confirm, grouped by their cause.
	Held []HeldSet `json:"held,omitempty"`
}

// HeldSet contains the removals caused by one placement, or by one MemberCluster.
type HeldSet struct {
	// Owner is the kind and name, such as "Placement shop/web".
	Owner  string `json:"owner"`
	Copies int    `json:"copies"`
	// Limits are the limits that the set exceeds.
	Limits []string `json:"limits"`
}

const alreadyHeld = "removals of it are held already"

// judge asks the guard for its verdict on all removals.
func (m *maker) judge() {
	copies := map[string]int{}
	for _, r := range m.judged {
		copies[r.Set]++
	}
	m.plan.Guard.Judged = len(m.judged)
	placements, clusters, waiting := m.scopes()
	held := guard.Judge(m.judged, placements, clusters)
	for _, set := range slices.Sorted(maps.Keys(copies)) {
		var limits []string
		for _, b := range held[set] {
			limits = append(limits, b.String())
		}
		if len(limits) == 0 && waiting[set] {
			limits = []string{alreadyHeld}
		}
		if len(limits) > 0 {
			m.plan.Guard.Held = append(m.plan.Guard.Held, HeldSet{Owner: set, Copies: copies[set], Limits: limits})
			m.plan.Summary.Held += copies[set]
		}
	}
}

// guardRemoval returns a loss in the form that the guard judges.
func guardRemoval(o Object, l decide.Loss) guard.Removal {
	return guard.Removal{
		Set: l.Removal.Owner.String(), Object: o.Identity().String(), Placement: l.Removal.Placement.String(), Cluster: l.Cluster, Last: l.Removal.Last,
	}
}

// scopes returns the number of copies and the limit of each placement and each cluster, before the removals. waiting
// are the owners of removals that the hub already holds.
func (m *maker) scopes() (placements, clusters map[string]guard.Scope, waiting map[string]bool) {
	placements, clusters, waiting = map[string]guard.Scope{}, map[string]guard.Scope{}, map[string]bool{}
	for _, p := range m.after.Placements {
		limit := m.options.RemovalLimit
		if set := p.PlacementSpec().RemovalLimit; set != nil {
			limit = limit.With(set.Copies, set.Percent)
		}
		placements[decide.OwnerOf(decide.ReferenceTo(p)).String()] = guard.Scope{Limit: limit}
	}
	for _, c := range m.after.Clusters {
		clusters[c.Name] = guard.Scope{Limit: m.options.RemovalLimit, Copies: m.after.Elsewhere[c.Name]}
	}
	for i := range m.after.Objects {
		p := m.pair(i)
		binding := p.After.Binding
		if binding == nil {
			continue
		}
		owner := decide.OwnerOf(binding.BindingSpec().PlacementRef).String()
		for _, cluster := range slices.Concat(p.Stayed, p.Lost, p.Gained) {
			addCopy(placements, owner)
			addCopy(clusters, cluster)
			if t := p.Held[cluster]; t.Removal != nil {
				waiting[heldBy(t, owner)] = true
			}
		}
	}
	return placements, clusters, waiting
}

// addCopy counts a copy of a scope. A scope that is not in the map has no limit, so that the guard uses its default.
func addCopy(scopes map[string]guard.Scope, name string) {
	if s, known := scopes[name]; known {
		s.Copies++
		scopes[name] = s
	}
}

// heldBy returns the placement or MemberCluster that causes a held removal.
func heldBy(t hubv1.BindingTarget, placement string) string {
	if t.Removal.Reason == hubv1.ReasonClusterLeaving {
		return decide.Owner{Kind: decide.MemberClusterKind, Name: t.Name}.String()
	}
	return placement
}
