package view

import (
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
)

// Movement describes how an object and its replicas move among clusters.
type Movement struct {
	// Before and After are the clusters that shall hold the object before and after a simulated change, sorted by name.
	Before []SimulatedTarget `json:"before"`
	After  []SimulatedTarget `json:"after"`
	Gained []string          `json:"gained,omitempty"`
	Lost   []string          `json:"lost,omitempty"`
	// Away are the clusters that shall hold the object after the change, and that answer before the change but not after
	// it. Their copies are lost, or run without the hub.
	Away []string `json:"away,omitempty"`
	// RunningBefore and Running are the numbers of clusters that hold the object and answer, before and after the change.
	RunningBefore int `json:"runningBefore"`
	Running       int `json:"running"`

	ReplicasMoved int64 `json:"replicasMoved,omitempty"`
}

// SimulatedTarget is one cluster that shall hold an object.
type SimulatedTarget struct {
	Cluster string `json:"cluster"`
	// Replicas is the number of replicas on this cluster, if the placement divides the replicas among clusters.
	Replicas *int32 `json:"replicas,omitempty"`
}

// movementOf returns how an object moves. awayBefore has the clusters that do not answer before the change, and away
// has those that do not answer after it.
func movementOf(p preview.Pair, awayBefore, away map[string]bool) Movement {
	m := Movement{Before: targetsOf(p.HeldBefore), After: targetsOf(p.Held), Gained: p.Gained, Lost: p.Lost, ReplicasMoved: p.ReplicasMoved()}
	for _, t := range m.Before {
		if !awayBefore[t.Cluster] {
			m.RunningBefore++
		}
	}
	for _, t := range m.After {
		if !away[t.Cluster] {
			m.Running++
		} else if !awayBefore[t.Cluster] {
			m.Away = append(m.Away, t.Cluster)
		}
	}
	return m
}

func shareOf(n *int32) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

// nowhere reports whether the change leaves the object on no cluster that answers, although such a cluster held the
// object before.
func (m *Movement) nowhere() bool { return m.Running == 0 && m.RunningBefore > 0 }

func targetsOf(held map[string]hubv1.BindingTarget) []SimulatedTarget {
	out := []SimulatedTarget{}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		out = append(out, SimulatedTarget{name, held[name].Replicas})
	}
	return out
}
