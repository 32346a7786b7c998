package view

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view/preview"
)

// Simulation is the output of the command simulate. It compares where all objects finally run with the changes and
// without them.
type Simulation struct {
	Summary SimulationSummary `json:"summary"`
	// Changes describes the changes that are simulated, one text for each change.
	Changes []string `json:"changes,omitempty"`
	// Objects are the objects whose placement, clusters or replicas change, sorted by name.
	Objects []SimulatedObject `json:"objects"`
	// Clusters are the clusters that exist before or after the simulated changes, sorted by name.
	Clusters []SimulatedCluster `json:"clusters"`
	// Notes name inputs that the simulation does not know.
	Notes []string `json:"notes,omitempty"`

	all bool // whether to name every object
}

// SimulationSummary counts objects, replicas and copies.
type SimulationSummary struct {
	Objects int `json:"objects"`
	Changed int `json:"changed"`
	// Nowhere is the number of objects that lose their last reachable cluster by the simulated changes.
	Nowhere int `json:"nowhere"`
	// TooFew is the number of changed objects that still run, but on fewer clusters than the placement requests.
	TooFew int `json:"tooFew"`
	// ReplicasMoved is the number of replicas that move to another cluster.
	ReplicasMoved int64 `json:"replicasMoved"`
	// ReplicasWithoutRoom is the number of replicas for which no cluster has room after the simulated changes. It does not
	// include replicas for which no cluster had room before.
	ReplicasWithoutRoom int64 `json:"replicasWithoutRoom"`
	// CopiesAway is the number of copies on clusters that become unreachable. ReplicasAway is the number of replicas of
	// these copies. It counts only objects whose replicas are divided among clusters.
	CopiesAway   int   `json:"copiesAway"`
	ReplicasAway int64 `json:"replicasAway"`
}

// SimulatedObject is one object whose placement, clusters or replicas change.
type SimulatedObject struct {
	Object Object `json:"object"`
	// Placement is the placement that the object follows, such as "Placement shop/web". PlacementBefore is the earlier
	// placement. It is empty if the placement does not change.
	Placement       string `json:"placement"`
	PlacementBefore string `json:"placementBefore,omitempty"`
	Movement
	// NoRoomBefore and NoRoom are the numbers of the object's replicas for which no cluster has room, before and after the
	// simulated changes.
	NoRoomBefore int64 `json:"noRoomBefore,omitempty"`
	NoRoom       int64 `json:"noRoom,omitempty"`

	ScheduledBefore ConditionSummary `json:"scheduledBefore,omitzero"`
	Scheduled       ConditionSummary `json:"scheduled"`
}

// SimulatedCluster has the number of objects and replicas on a cluster, before and after the changes.
type SimulatedCluster struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region,omitempty"`
	// Away is true if the cluster does not answer after the simulated changes.
	Away           bool  `json:"away,omitempty"`
	ObjectsBefore  int   `json:"objectsBefore"`
	Objects        int   `json:"objects"`
	ReplicasBefore int64 `json:"replicasBefore"`
	Replicas       int64 `json:"replicas"`
}

// Simulate returns the differences between the decisions before and after the changes. If all is true, the text of the
// result names every object that differs.
func Simulate(d *preview.Decisions, changes, notes []string, all bool) Simulation {
	s := Simulation{Changes: changes, Notes: append(notes, d.Notes()...), Objects: []SimulatedObject{}, all: all}
	before, after := d.Clusters()
	awayBefore, away := awayIn(before), awayIn(after)
	count := fleetCount{}
	count.clusters(before)
	count.clusters(after)
	for p := range d.Pairs() {
		if p.Before.Binding == nil && p.After.Binding == nil && p.Before.Scheduled.Reason == "" && p.After.Scheduled.Reason == "" {
			continue // no placement selects the object
		}
		o := SimulatedObject{
			Object:    objectOf(p.New.Identity(), p.New.Object),
			Placement: followed(p.After), PlacementBefore: followed(p.Before),
			Movement:        movementOf(p, awayBefore, away),
			ScheduledBefore: summaryOf(p.Before), Scheduled: summaryOf(p.After),
		}
		count.add(o.Before, func(c *SimulatedCluster) (*int, *int64) { return &c.ObjectsBefore, &c.ReplicasBefore })
		count.add(o.After, func(c *SimulatedCluster) (*int, *int64) { return &c.Objects, &c.Replicas })
		s.Summary.Objects++
		if !p.Moves() && o.same() {
			continue
		}
		o.NoRoomBefore, o.NoRoom = d.NoRoom(p)
		if o.PlacementBefore == o.Placement {
			o.PlacementBefore = ""
		}
		s.Summary.add(o)
		s.Objects = append(s.Objects, o)
	}
	s.Clusters = count.sorted(away)
	if slices.ContainsFunc(s.Objects, func(o SimulatedObject) bool { return o.Scheduled.Reason == hubv1.ReasonTooManyAway }) {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d clusters would be away: the hub would blame itself and move nothing from them", len(away), len(after)))
	}
	return s
}

func awayIn(clusters []*hubv1.MemberCluster) map[string]bool {
	out := map[string]bool{}
	for _, c := range clusters {
		if c.IsAway() {
			out[c.Name] = true
		}
	}
	return out
}

func followed(o decide.Outcome) string {
	if o.Binding == nil || o.Binding.BindingSpec().PlacementRef == nil {
		return ""
	}
	return decide.OwnerOf(o.Binding.BindingSpec().PlacementRef).String()
}

func summaryOf(o decide.Outcome) ConditionSummary {
	return ConditionSummary{o.Scheduled.Status, o.Scheduled.Reason, o.Scheduled.Message}
}

// same reports whether the placement and the reason of the decision stay the same, and no cluster that holds the object
// becomes unreachable.
func (o *SimulatedObject) same() bool {
	return len(o.Away) == 0 && o.Placement == o.PlacementBefore &&
		(o.ScheduledBefore.Reason == "" || o.Scheduled.Status == o.ScheduledBefore.Status && o.Scheduled.Reason == o.ScheduledBefore.Reason)
}

// fewerThanAsked are the reasons of decisions that have found fewer clusters, or fewer replacements, than the placement
// requests.
var fewerThanAsked = []string{hubv1.ReasonNoClusterSelected, hubv1.ReasonSpreadUnsatisfied, hubv1.ReasonNoReplacement, hubv1.ReasonTooManyAway}

// short reports whether the object runs on fewer clusters that answer than the placement requests, but on at least one.
func (o *SimulatedObject) short() bool {
	return o.Running > 0 && o.Scheduled.Status != metav1.ConditionTrue && slices.Contains(fewerThanAsked, o.Scheduled.Reason)
}

func (s *SimulationSummary) add(o SimulatedObject) {
	s.Changed++
	if o.nowhere() {
		s.Nowhere++
	}
	if o.short() {
		s.TooFew++
	}
	s.ReplicasMoved += o.ReplicasMoved
	s.ReplicasWithoutRoom += max(0, o.NoRoom-o.NoRoomBefore)
	s.CopiesAway += len(o.Away)
	for _, t := range o.After {
		if slices.Contains(o.Away, t.Cluster) {
			s.ReplicasAway += shareOf(t.Replicas)
		}
	}
}

// Changed reports whether the changes affect any object.
func (s Simulation) Changed() bool { return s.Summary.Changed > 0 }

// fleetCount has the numbers of objects and replicas of each cluster.
type fleetCount map[string]*SimulatedCluster

func (f fleetCount) clusters(all []*hubv1.MemberCluster) {
	for _, c := range all {
		f.of(c.Name).Region = region(c)
	}
}

func (f fleetCount) of(cluster string) *SimulatedCluster {
	if f[cluster] == nil {
		f[cluster] = &SimulatedCluster{Cluster: cluster}
	}
	return f[cluster]
}

func (f fleetCount) add(targets []SimulatedTarget, to func(*SimulatedCluster) (objects *int, replicas *int64)) {
	for _, t := range targets {
		objects, replicas := to(f.of(t.Cluster))
		*objects++
		*replicas += shareOf(t.Replicas)
	}
}

func (f fleetCount) sorted(away map[string]bool) []SimulatedCluster {
	out := []SimulatedCluster{}
	for _, c := range f {
		c.Away = away[c.Cluster]
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b SimulatedCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}
