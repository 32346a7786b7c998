package view

import (
	"cmp"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
)

// Movement is how an object and its replicas move among clusters.
type Movement struct {
	// Before and After are the clusters that shall hold the object, by name.
	Before []SimulatedTarget `json:"before"`
	After  []SimulatedTarget `json:"after"`
	Gained []string          `json:"gained,omitempty"`
	Lost   []string          `json:"lost,omitempty"`
	// Away are clusters of After that no longer answer: what is there is lost, or runs on unseen.
	Away []string `json:"away,omitempty"`
	// Running is how many clusters answer and hold the object.
	RunningBefore int `json:"runningBefore"`
	Running       int `json:"running"`

	ReplicasMoved int64 `json:"replicasMoved,omitempty"`
}

// SimulatedTarget is one cluster of an object.
type SimulatedTarget struct {
	Cluster string `json:"cluster"`
	// Replicas of a divided object.
	Replicas *int32 `json:"replicas,omitempty"`
}

// movementOf compares the clusters before and after. awayBefore and away
// name the clusters that do not answer before and after.
func movementOf(from, to []SimulatedTarget, awayBefore, away map[string]bool) Movement {
	m := Movement{Before: from, After: to}
	before := map[string]*int32{}
	for _, t := range from {
		before[t.Cluster] = t.Replicas
		if !awayBefore[t.Cluster] {
			m.RunningBefore++
		}
	}
	var more, fewer int64
	for _, t := range to {
		had, held := before[t.Cluster]
		delete(before, t.Cluster)
		if !held {
			m.Gained = append(m.Gained, t.Cluster)
		}
		if !away[t.Cluster] {
			m.Running++
		} else if !awayBefore[t.Cluster] {
			m.Away = append(m.Away, t.Cluster)
		}
		if d := shareOf(t.Replicas) - shareOf(had); d > 0 {
			more += d
		} else {
			fewer -= d
		}
	}
	for name, had := range before {
		m.Lost = append(m.Lost, name)
		fewer += shareOf(had)
	}
	slices.Sort(m.Lost)
	m.ReplicasMoved = min(more, fewer)
	return m
}

func shareOf(n *int32) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

// nowhere is true if the last cluster that answers is lost.
func (m *Movement) nowhere() bool { return m.Running == 0 && m.RunningBefore > 0 }

func targetsOf(o decide.Outcome) []SimulatedTarget {
	out := []SimulatedTarget{}
	if o.Binding == nil {
		return out
	}
	for _, t := range o.Binding.BindingSpec().Clusters {
		if t.State == hubv1.TargetPresent {
			out = append(out, SimulatedTarget{t.Name, t.Replicas})
		}
	}
	slices.SortFunc(out, func(a, b SimulatedTarget) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

func sameTargets(before, after []SimulatedTarget) bool {
	return slices.EqualFunc(before, after, func(a, b SimulatedTarget) bool {
		return a.Cluster == b.Cluster && (a.Replicas == nil) == (b.Replicas == nil) && shareOf(a.Replicas) == shareOf(b.Replicas)
	})
}
