package view

import (
	"fmt"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// rolloutProblems have the rollouts that need a user.
type rolloutProblems struct {
	list []Problem
	// waves has the index in list of each wave that waits, and the number of objects that wait there.
	waves map[waitingWave]int
	count map[waitingWave]int
	// objects has the names of the objects whose rollouts are problems.
	objects map[string]bool
}

// waitingWave is a wave of a placement that waits for a user.
type waitingWave struct {
	placement, wave string
	phase           hubv1.RolloutPhase
}

// add examines the rollout of one object. Objects that wait in the same wave for the same reason are one problem, which
// has the message of the first one. worst finds the worst copies of the object.
func (p *rolloutProblems) add(name string, b hubv1.BindingObject, worst func(hubv1.BindingObject) worstCopies) {
	state := b.BindingSpec().Rollout
	if state == nil || b.GetDeletionTimestamp() != nil {
		return
	}
	id := hubv1.ObjectOf(b)
	of := name
	if FollowsSet(b) {
		if decide.LeadOfSet([]hubv1.BindingObject{b}) == nil {
			return // another object of the bundle shows the rollout
		}
		of = b.BindingSpec().ObjectRef.Bundle.String()
	}
	found := Problem{Of: of, Topic: TopicRollout, State: ProblemNotReady, ID: id, Since: &state.Since, Message: state.Message}
	switch state.Phase {
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
	if FollowsSet(b) {
		id = b.BindingSpec().ObjectRef.Bundle.Identity()
	}
	found.Do = "hansectl rollout status " + id.Kind + " " + id.Name
	if id.Namespace != "" {
		found.Do += " -n " + id.Namespace
	}
	if copies := worst(b); len(copies.clusters) > 0 {
		reason := found.Reason
		found = found.because(copies)
		found.Reason = reason
	}
	if p.objects == nil {
		p.objects = map[string]bool{}
	}
	p.objects[name] = true
	p.list = append(p.list, found)
}

// has reports whether the rollout of an object is a problem of its own.
func (p *rolloutProblems) has(name string) bool { return p.objects[name] }

func (p *rolloutProblems) addWave(found Problem, spec *hubv1.BindingSpec) {
	if ref := spec.PlacementRef; ref != nil {
		found.Of, found.ID = ref.Kind+" "+strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"), hubv1.ObjectIdentity{}
	}
	found.Reason, found.State, found.Wave = string(spec.Rollout.Phase), ProblemWaits, spec.Rollout.Wave
	found.Message, found.Do = withoutCommand(found.Message)
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
