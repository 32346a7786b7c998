package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Reach says which of the objects that follow a placement, and that have no entry for a cluster, a change of this
// cluster may concern.
type Reach int

const (
	// ReachesNone: the change concerns no such object.
	ReachesNone Reach = iota
	// ReachesLacking: it concerns objects that lack a cluster, or that must leave one.
	ReachesLacking
	// ReachesEvery: it concerns every such object.
	ReachesEvery
)

// Standing is what a placement finds about a cluster that does not hold the object, without the filters that depend on
// the object. Two states of a cluster with equal Standings lead to the same decisions on such objects.
type Standing struct {
	// Selected is true if no filter with unselects rejects the cluster, and Open if no filter rejects it.
	Selected, Open bool
	score          int64
	domains        []string
	groups         []bool
	allocatable    corev1.ResourceList // only if the placement weighs it
	causes         []cause             // why filters reject the cluster
}

// StandingOf returns the standing of a cluster. A cluster that does not exist is nil, and has the zero Standing.
func (c *Compiled) StandingOf(cl *Cluster) Standing {
	if cl == nil {
		return Standing{}
	}
	state := *cl
	state.Revision = "" // no result for a past state is cached
	in := &Input{Placement: c}
	found := c.find(in, &state)
	s := Standing{Selected: true, Open: true, score: found.score, domains: found.domains, groups: found.groups, causes: found.causes}
	if c.capacity != 0 {
		s.allocatable = cl.Allocatable
	}
	for i, f := range filters {
		r := found.causes[i]
		if f.name == filterNoExecute {
			r = f.check(in, &state)
		}
		if r.reason != "" {
			s.Open, s.Selected = false, s.Selected && !f.unselects
		}
	}
	return s
}

func (s Standing) same(o Standing) bool {
	return s.Selected == o.Selected && s.Open == o.Open && s.score == o.score && slices.Equal(s.domains, o.domains) && slices.Equal(s.groups, o.groups) &&
		equality.Semantic.DeepEqual(s.allocatable, o.allocatable)
}

// ExplainedAs reports whether the placement rejects the cluster for the same reasons, with the same messages, in both
// states.
func (s Standing) ExplainedAs(o Standing) bool { return slices.Equal(s.causes, o.causes) }

// Reaches returns which objects without an entry for the cluster a change between two standings may concern.
//
// An object keeps its clusters while they pass the filters. If its placement has neither constraints nor groups, and
// does not rebalance, a change of another cluster therefore matters only while the object lacks a cluster. If the
// placement wants every cluster, each object gets the cluster that begins to pass.
func (c *Compiled) Reaches(before, after Standing, divided bool) Reach {
	switch {
	case !before.Selected && !after.Selected, before.same(after):
		return ReachesNone
	case before.Open != after.Open:
		return c.ReachOfOpening(after.Open, divided)
	case c.arranges():
		return ReachesEvery
	}
	return ReachesLacking
}

// ReachOfOpening returns which objects without an entry for a cluster are concerned if the cluster begins or ends to be
// open to them.
func (c *Compiled) ReachOfOpening(opens, divided bool) Reach {
	if c.arranges() || divided || c.number == 0 && opens {
		return ReachesEvery
	}
	return ReachesLacking
}

// arranges reports whether the choice among the open clusters depends on all of them, even for an object that has all
// its clusters.
func (c *Compiled) arranges() bool { return c.rebalance || len(c.constraints) > 0 }

// TooManyAway reports whether so many clusters are unreachable that no object leaves an unreachable cluster.
func TooManyAway(clusters []Cluster, maxAway int) bool {
	return outage(&Input{Clusters: clusters, MaxAway: maxAway}).reason != ""
}
