package view

import (
	"fmt"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// rolloutProblems have the rollouts that need a user.
type rolloutProblems struct {
	list []Problem
	// waves has the index in list of each wave that waits, and the number of objects that wait there.
	waves map[waitingWave]int
	count map[waitingWave]int
}

// waitingWave is a wave of a placement that waits for a user.
type waitingWave struct {
	placement, wave string
	phase           hubv1.RolloutPhase
}

// add examines the rollout of one object. Objects that wait in the same wave for the same reason are one problem, which
// has the message of the first one.
func (p *rolloutProblems) add(name string, b hubv1.BindingObject) {
	of := b.BindingSpec().Rollout
	if of == nil || b.GetDeletionTimestamp() != nil {
		return
	}
	found := Problem{Of: name, ID: hubv1.ObjectOf(b), Since: &of.Since, Message: of.Message}
	switch of.Phase {
	case hubv1.RolloutFailed:
		found.Reason = hubv1.ReasonRolloutFailed
	case hubv1.RolloutRolledBack:
		found.Reason = hubv1.ReasonRolledBack
	case hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForClusters:
		p.addWave(found, b.BindingSpec())
		return
	default:
		return
	}
	p.list = append(p.list, found)
}

func (p *rolloutProblems) addWave(found Problem, spec *hubv1.BindingSpec) {
	if ref := spec.PlacementRef; ref != nil {
		found.Of, found.ID = ref.Kind+" "+strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"), hubv1.ObjectIdentity{}
	}
	found.Reason = string(spec.Rollout.Phase)
	key := waitingWave{found.Of, spec.Rollout.Wave, spec.Rollout.Phase}
	if p.waves == nil {
		p.waves, p.count = map[waitingWave]int{}, map[waitingWave]int{}
	}
	if p.count[key]++; p.count[key] == 1 {
		p.waves[key] = len(p.list)
		p.list = append(p.list, found)
		return
	}
	first := &p.list[p.waves[key]]
	if before(found.Since, first.Since) {
		first.Since = found.Since
	}
	first.Message = fmt.Sprintf("%s (%d objects)", strings.TrimSuffix(first.Message, fmt.Sprintf(" (%d objects)", p.count[key]-1)), p.count[key])
}
