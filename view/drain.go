package view

import (
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// DrainEnd is the result of a drain. DrainGoesOn means that the drain has not ended.
type DrainEnd int

// These are the results of a drain.
const (
	DrainGoesOn  DrainEnd = iota
	DrainDone             // no object is left
	DrainStaying          // all remaining objects must run on every cluster
	DrainBlocked          // some remaining objects are blocked and none moves
)

// DrainProgress returns the progress of a drain as text, and the result of the drain. The cluster must have spec.drain.
func DrainProgress(cluster *hubv1.MemberCluster) (string, DrainEnd) {
	s := cluster.Status.Drain
	if s == nil {
		return "waiting for the hub to process the drain", DrainGoesOn
	}
	if s.Remaining == 0 && s.Total == 0 {
		return "drained: there were no objects to move", DrainDone
	}
	state := fmt.Sprintf("%d of %s moved", max(0, s.Total-s.Remaining-s.Evicted), counted(int(s.Total), "object"))
	if s.Evicted > 0 {
		state += fmt.Sprintf(", %d evicted until the drain ends", s.Evicted)
	}
	if s.Total < s.Remaining { // an older hub wrote the counts
		state = counted(int(s.Remaining), "object") + " left"
	}
	if s.Remaining == 0 {
		return "drained: " + state, DrainDone
	}
	if s.Message != "" {
		state += "; " + s.Message
	}
	if cluster.Spec.Drain.Evict {
		return state, DrainGoesOn // the drain also evicts the remaining objects
	}
	switch s.Remaining {
	case s.Staying:
		return state, DrainStaying
	case s.Staying + s.Blocked:
		return state, DrainBlocked
	}
	return state, DrainGoesOn
}
