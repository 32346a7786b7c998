package view

import (
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

// FleetGatherer counts objects and copies from bindings, for an overview of the fleet.
type FleetGatherer struct {
	// Objects has the numbers of objects by the state of their worst copy. Objects without a copy are not counted.
	Objects CopyCounts
	// Clusters has the numbers of copies by state, by cluster.
	Clusters map[string]*CopyCounts

	now     time.Time
	members map[string]*hubv1.MemberCluster
}

// NewFleetGatherer returns a gatherer that has no bindings yet.
func NewFleetGatherer(members []hubv1.MemberCluster, now time.Time) *FleetGatherer {
	g := &FleetGatherer{Clusters: map[string]*CopyCounts{}, now: now, members: map[string]*hubv1.MemberCluster{}}
	for i := range members {
		g.members[members[i].Name] = &members[i]
	}
	return g
}

// Add counts the object of a binding and its copies.
func (g *FleetGatherer) Add(b hubv1.BindingObject) {
	rows := make(map[string]*hubv1.ClusterRow, len(b.BindingStatus().Clusters))
	for i := range b.BindingStatus().Clusters {
		row := &b.BindingStatus().Clusters[i]
		rows[row.Name] = row
	}
	var copies CopyCounts
	for _, t := range b.BindingSpec().Clusters {
		state := rowOf(t, rows[t.Name], g.members[t.Name], g.now).Copy()
		copies[state]++
		if g.Clusters[t.Name] == nil {
			g.Clusters[t.Name] = &CopyCounts{}
		}
		g.Clusters[t.Name][state]++
	}
	if worst := copies.Worst(); worst != 0 {
		g.Objects[worst]++
	}
}

// Worst returns the worst state of the copies. It returns 0 if there are no copies.
func (c CopyCounts) Worst() rollup.CopyState {
	for _, s := range rollup.CopyStates() {
		if c[s] > 0 {
			return s
		}
	}
	return 0
}
