package preview

import (
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/guard"
)

// Guard is the verdict of package guard on the removals of a plan: The verdict does not count removals that the hub has
// carried out recently.
type Guard struct {
	// Judged is the number of removals that package guard judges. It does not judge copies that stay on the member as
	// orphans, or copies that other clusters replace.
	Judged int `json:"judged"`
	// Held are the removals of copies that a user would have to confirm, grouped by their cause.
	Held []HeldSet `json:"held,omitempty"`
}

// HeldSet contains the removals that package guard holds, and that one placement, one MemberCluster or one bundle
// causes.
type HeldSet struct {
	// Owner is the kind and name of the placement, MemberCluster or bundle that causes the removals, such as "Placement
	// shop/web".
	Owner  string `json:"owner"`
	Copies int    `json:"copies"`
	// Limits are the limits of package guard that the held removals exceed, as texts.
	Limits []string `json:"limits"`
}

const alreadyHeld = "its removals are already held"

// judge asks package guard for its verdict on all removals of the plan, and adds the verdict to the plan.
func (m *maker) judge() {
	copies := map[string]int{}
	var asked []guard.Removal
	for _, r := range m.judged {
		copies[r.Owner.String()]++
		asked = append(asked, guard.Removal{Set: r.Owner.String(), Object: r.object, Group: r.Group().String(), Cluster: r.Cluster, Last: r.Last})
	}
	m.plan.Guard.Judged = len(m.judged)
	groups, clusters, waiting := m.scopes()
	held := guard.Judge(asked, groups, clusters)
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

// judgedRemoval is the removal of one copy of an object, on which package guard decides.
type judgedRemoval struct {
	object string
	decide.Removal
}

// scopes returns the limit of package guard for removals, and the number of copies before the removals, of each cluster
// and of each placement and bundle with removals. A bundle has no limit of its own: the smallest limit of the
// placements that its removed objects follow applies. waiting has the placements, MemberClusters and bundles whose
// removals the hub already holds.
func (m *maker) scopes() (groups, clusters map[string]guard.Scope, waiting map[string]bool) {
	groups, clusters, waiting = map[string]guard.Scope{}, map[string]guard.Scope{}, map[string]bool{}
	copies, on := map[decide.Owner]int{}, map[string]int{}
	for i := range m.after.Objects {
		m.count(m.pair(i), copies, on, waiting)
	}
	for _, c := range m.after.Clusters {
		clusters[c.Name] = guard.Scope{Limit: m.options.RemovalLimit, Copies: m.after.Elsewhere[c.Name] + on[c.Name]}
	}
	limits := map[decide.Owner]guard.Limit{}
	for _, p := range m.after.Placements {
		if set := p.PlacementSpec().RemovalLimit; set != nil {
			limits[decide.OwnerOf(decide.ReferenceTo(p))] = m.options.RemovalLimit.With(set.Copies, set.Percent)
		}
	}
	for _, r := range m.judged {
		limit, set := limits[r.Placement]
		if !set {
			limit = m.options.RemovalLimit
		}
		n, name := copies[r.Group()], r.Group().String()
		if s, known := groups[name]; !known || limit.Of(n) < s.Limit.Of(n) {
			groups[name] = guard.Scope{Limit: limit, Copies: n}
		}
	}
	return groups, clusters, waiting
}

// count adds the copies of one object before the removals: to copies by placement and by bundle, and to `on` by
// cluster. It adds to waiting the placements, MemberClusters and bundles that hold a removal of the object.
func (m *maker) count(p pair, copies map[decide.Owner]int, on map[string]int, waiting map[string]bool) {
	binding := p.After.Binding
	if binding == nil { // the object has no copy any more
		binding = p.Before.Binding
	}
	if binding == nil {
		return
	}
	spec := binding.BindingSpec()
	for _, cluster := range slices.Concat(p.Stayed, p.Lost, p.Gained) {
		copies[decide.OwnerOf(spec.PlacementRef)]++
		if b := spec.ObjectRef.Bundle; b != nil {
			copies[decide.OwnerOfBundle(*b)]++
		}
		on[cluster]++
		if t := p.Held[cluster]; t.Removal != nil {
			waiting[heldBy(t, spec).String()] = true
		}
	}
}

// heldBy returns the MemberCluster, bundle or placement that causes a held removal. It is the MemberCluster if the
// cluster leaves, the bundle if the bundle no longer contains the object, and otherwise the placement that the object
// follows.
func heldBy(t hubv1.BindingTarget, spec *hubv1.BindingSpec) decide.Owner {
	switch b := spec.ObjectRef.Bundle; {
	case t.Removal.Reason == hubv1.ReasonClusterLeaving:
		return decide.Owner{Kind: decide.MemberClusterKind, Name: t.Name}
	case t.Removal.Reason == hubv1.ReasonObjectDeleted && b != nil:
		return decide.OwnerOfBundle(*b)
	}
	return decide.OwnerOf(spec.PlacementRef)
}
