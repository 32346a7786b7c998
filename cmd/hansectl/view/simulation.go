package view

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
)

// Simulation is the output of the command simulate. It compares the final placement of all objects with and without
// changes.
type Simulation struct {
	Summary SimulationSummary `json:"summary"`
	// Changes are the simulated changes.
	Changes []string `json:"changes,omitempty"`
	// Objects whose placement differs, by name.
	Objects []SimulatedObject `json:"objects"`
	// Clusters before or after the changes, by name.
	Clusters []SimulatedCluster `json:"clusters"`
	// Notes name unknown inputs.
	Notes []string `json:"notes,omitempty"`

	all bool // name every object
}

// SimulationSummary counts objects, replicas and copies.
type SimulationSummary struct {
	Objects int `json:"objects"`
	Changed int `json:"changed"`
	// Nowhere counts the objects that lose their last cluster that answers.
	Nowhere int `json:"nowhere"`
	// TooFew counts the changed objects that still run, but on fewer clusters than the placement requests.
	TooFew int `json:"tooFew"`
	// ReplicasMoved is the number of replicas that move to another cluster.
	ReplicasMoved int64 `json:"replicasMoved"`
	// ReplicasWithoutRoom is the increase of replicas without room.
	ReplicasWithoutRoom int64 `json:"replicasWithoutRoom"`
	// CopiesAway is the number of copies on clusters that no longer answer. ReplicasAway counts their replicas, if
	// divided.
	CopiesAway   int   `json:"copiesAway"`
	ReplicasAway int64 `json:"replicasAway"`
}

// SimulatedObject is one object whose placement differs.
type SimulatedObject struct {
	Object Object `json:"object"`
	// Placement that the object follows, such as "Placement shop/web"; PlacementBefore is empty if it is the same.
	Placement       string `json:"placement"`
	PlacementBefore string `json:"placementBefore,omitempty"`
	Movement
	// NoRoom is how many replicas have none.
	NoRoomBefore int64 `json:"noRoomBefore,omitempty"`
	NoRoom       int64 `json:"noRoom,omitempty"`

	ScheduledBefore Said `json:"scheduledBefore,omitzero"`
	Scheduled       Said `json:"scheduled"`
}

// SimulatedCluster is what a cluster has before and after.
type SimulatedCluster struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region,omitempty"`
	// Away is true if the cluster does not answer after the changes.
	Away           bool  `json:"away,omitempty"`
	ObjectsBefore  int   `json:"objectsBefore"`
	Objects        int   `json:"objects"`
	ReplicasBefore int64 `json:"replicasBefore"`
	Replicas       int64 `json:"replicas"`
}

// Simulate compares two simulated results. If before is nil, it compares after with the bindings' recorded state.
func Simulate(before, after *decide.Settlement, changes, notes []string, all bool) Simulation {
	s := Simulation{Changes: changes, Notes: notes, Objects: []SimulatedObject{}, all: all}
	past := pastOf(before, after)
	away := awayIn(after.Clusters())
	count := fleetCount{}
	count.clusters(past.clusters)
	count.clusters(after.Clusters())
	for i, outcome := range after.Outcomes {
		if outcome.Restless {
			s.Notes = append(s.Notes, after.Object(i).Identity().String()+" does not come to rest: each decision leads to another one")
		}
		was := past.outcomes[after.Object(i).Identity()]
		if was.Binding == nil && outcome.Binding == nil && was.Scheduled.Reason == "" && outcome.Scheduled.Reason == "" {
			continue // no placement selects the object
		}
		o := SimulatedObject{
			Object:    objectOf(after.Object(i).Identity(), after.Object(i).Object),
			Placement: followed(outcome), PlacementBefore: followed(was),
			Movement:        movementOf(targetsOf(was), targetsOf(outcome), past.away, away),
			ScheduledBefore: saidOf(was), Scheduled: saidOf(outcome),
		}
		count.add(o.Before, func(c *SimulatedCluster) (*int, *int64) { return &c.ObjectsBefore, &c.ReplicasBefore })
		count.add(o.After, func(c *SimulatedCluster) (*int, *int64) { return &c.Objects, &c.Replicas })
		s.Summary.Objects++
		if o.same() {
			continue
		}
		o.NoRoom = roomless(after, i)
		if before != nil {
			if j, ok := past.index[after.Object(i).Identity()]; ok {
				o.NoRoomBefore = roomless(before, j)
			}
		}
		if o.PlacementBefore == o.Placement {
			o.PlacementBefore = ""
		}
		s.Summary.add(o)
		s.Objects = append(s.Objects, o)
	}
	slices.SortFunc(s.Objects, func(a, b SimulatedObject) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Group, b.Object.Group), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	s.Clusters = count.sorted(away)
	if slices.ContainsFunc(s.Objects, func(o SimulatedObject) bool { return o.Scheduled.Reason == hubv1.ReasonTooManyAway }) {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d clusters would be away: the hub would blame itself and move nothing from them", len(away), len(after.Clusters())))
	}
	return s
}

// past is the result to which a simulation is compared.
type past struct {
	outcomes map[hubv1.ObjectIdentity]decide.Outcome
	index    map[hubv1.ObjectIdentity]int
	clusters []*hubv1.MemberCluster
	away     map[string]bool
}

func pastOf(before, after *decide.Settlement) past {
	p := past{outcomes: map[hubv1.ObjectIdentity]decide.Outcome{}, index: map[hubv1.ObjectIdentity]int{}}
	if before == nil {
		for i := range after.Outcomes {
			p.outcomes[after.Object(i).Identity()] = recorded(after.Object(i).Binding)
		}
		return p
	}
	for i, o := range before.Outcomes {
		id := before.Object(i).Identity()
		p.outcomes[id], p.index[id] = o, i
	}
	p.clusters, p.away = before.Clusters(), awayIn(before.Clusters())
	return p
}

// recorded returns the outcome that a binding has recorded.
func recorded(b hubv1.BindingObject) decide.Outcome {
	o := decide.Outcome{Binding: b}
	if b == nil {
		return o
	}
	for _, c := range b.BindingStatus().Conditions {
		if c.Type == hubv1.ConditionScheduled {
			o.Scheduled = c
		}
	}
	return o
}

func awayIn(clusters []*hubv1.MemberCluster) map[string]bool {
	out := map[string]bool{}
	for _, c := range clusters {
		if decide.IsAway(c) {
			out[c.Name] = true
		}
	}
	return out
}

func followed(o decide.Outcome) string {
	if o.Binding == nil || o.Binding.BindingSpec().PlacementRef == nil {
		return ""
	}
	ref := o.Binding.BindingSpec().PlacementRef
	if ref.Namespace == "" {
		return ref.Kind + " " + ref.Name
	}
	return ref.Kind + " " + ref.Namespace + "/" + ref.Name
}

func saidOf(o decide.Outcome) Said {
	return Said{o.Scheduled.Status, o.Scheduled.Reason, o.Scheduled.Message}
}

// roomless returns the number of an object's replicas without room.
func roomless(s *decide.Settlement, i int) int64 {
	if b := s.Outcomes[i].Binding; b == nil || b.BindingSpec().Division == nil {
		return 0
	}
	if d := s.Replay(i).Division; d != nil {
		return d.Result.Rest
	}
	return 0
}

// same is true if nothing has changed but words.
func (o *SimulatedObject) same() bool {
	return sameTargets(o.Before, o.After) && len(o.Away) == 0 && o.Placement == o.PlacementBefore &&
		(o.ScheduledBefore.Reason == "" || o.Scheduled.Status == o.ScheduledBefore.Status && o.Scheduled.Reason == o.ScheduledBefore.Reason)
}

// fewerThanAsked are reasons of decisions that could not choose, or replace, all clusters that they should.
var fewerThanAsked = []string{hubv1.ReasonNoClusterSelected, hubv1.ReasonSpreadUnsatisfied, hubv1.ReasonNoReplacement, hubv1.ReasonTooManyAway}

// short reports whether fewer answering clusters hold the object than the placement requests.
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

// Underway returns the number of objects that are not at their final clusters yet.
func Underway(s *decide.Settlement) int {
	n := 0
	for i, o := range s.Outcomes {
		if !sameTargets(targetsOf(recorded(s.Object(i).Binding)), targetsOf(o)) {
			n++
		}
	}
	return n
}

// fleetCount has the counts of each cluster.
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
