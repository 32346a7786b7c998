package plan

import (
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/guard"
)

// Guard is the verdict of package guard on the removals of a plan: the guard holds large removals until a user confirms
// them. The verdict does not count removals that the hub has carried out recently.
type Guard struct {
	// Judged is the number of removals that package guard judges. It does not judge copies that stay on the member as
	// orphans, or copies that other clusters replace.
	Judged int `json:"judged"`
	// Held are the removals of copies that a user would have to confirm, grouped by their cause.
	Held []HeldSet `json:"held,omitempty"`
}

// HeldSet contains the removals that package guard holds until a user confirms them, and that one placement or one
// MemberCluster causes.
type HeldSet struct {
	// Owner is the kind and name of the placement or MemberCluster that causes the removals, such as "Placement shop/web".
	Owner  string `json:"owner"`
	Copies int    `json:"copies"`
	// Limits are the limits of package guard that the held removals exceed, as texts.
	Limits []string `json:"limits"`
}

const alreadyHeld = "removals of it are held already"

// judge asks package guard for its verdict on all removals of the plan, and adds the verdict to the plan.
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

// guardRemoval converts the loss of a copy into the type of removals that package guard judges.
func guardRemoval(o Object, l decide.Loss) guard.Removal {
	return guard.Removal{
		Set: l.Removal.Owner.String(), Object: o.Identity().String(), Placement: l.Removal.Placement.String(), Cluster: l.Cluster, Last: l.Removal.Last,
	}
}

// scopes returns for each placement and each cluster the limit of package guard for removals, and the number of copies
// before the removals. Package guard holds removals above the limit until a user confirms them. waiting has the
// placements and MemberClusters whose removals the hub already holds.
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

// addCopy adds 1 to the number of copies of the placement or cluster with this name. It ignores a name that is not in
// the map: package guard uses its default limit for this name.
func addCopy(scopes map[string]guard.Scope, name string) {
	if s, known := scopes[name]; known {
		s.Copies++
		scopes[name] = s
	}
}

// heldBy returns the MemberCluster or placement that causes a held removal. It is the MemberCluster if the cluster
// leaves, and otherwise the given placement.
func heldBy(t hubv1.BindingTarget, placement string) string {
	if t.Removal.Reason == hubv1.ReasonClusterLeaving {
		return decide.Owner{Kind: decide.MemberClusterKind, Name: t.Name}.String()
	}
	return placement
}
