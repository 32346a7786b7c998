package policystatus

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/rollout"
)

// foldRollouts writes a summary of rollouts into the status of a placement. It summarizes the rollouts of the objects
// that follow the placement, which means that this placement decides about them. If the placement specifies no rollout,
// foldRollouts removes the summary and the condition RolledOut.
func foldRollouts(status *hubv1.PlacementStatus, placement hubv1.PlacementObject, following []hubv1.BindingObject) {
	policy := placement.PlacementSpec().Rollout
	if policy == nil {
		status.Rollout = nil
		meta.RemoveStatusCondition(&status.Conditions, hubv1.ConditionRolledOut)
		return
	}
	out := &hubv1.PlacementRollout{Phase: hubv1.RolloutComplete}
	var slowest *hubv1.BindingRollout
	for _, b := range following {
		if b.GetDeletionTimestamp() != nil {
			continue
		}
		of := b.BindingSpec().Rollout
		count(&out.Objects, of)
		if of == nil || of.Phase == hubv1.RolloutComplete {
			continue
		}
		if of.Failed != 0 && (out.Stopped == nil || of.Since.Before(&out.Stopped.Since)) {
			out.Stopped = &hubv1.RolloutStop{Object: nameOf(b), Revision: of.Failed, Since: of.Since}
			out.Phase, out.Message = of.Phase, cut(nameOf(b)+": "+of.Message)
		}
		if slowest == nil || behind(policy, of) < behind(policy, slowest) {
			slowest = of
			out.Wave = of.Wave
			if out.Stopped == nil {
				out.Phase, out.Message = of.Phase, cut(nameOf(b)+": "+of.Message)
			}
		}
	}
	status.Rollout = out
	set(&status.Conditions, placement.GetGeneration(), rolledOut(out, faultsOf(placement)))
}

// behind returns the index of the wave that an object's rollout has reached. The object with the lowest index is
// furthest behind, and the placement's status shows the wave of this object. A wave that the policy does not have
// counts as the last wave.
func behind(policy *hubv1.RolloutPolicy, of *hubv1.BindingRollout) int {
	i := slices.IndexFunc(policy.Waves, func(w hubv1.RolloutWave) bool { return w.Name == of.Wave })
	if i < 0 {
		return len(policy.Waves)
	}
	return i
}

func count(objects *hubv1.RolloutObjects, of *hubv1.BindingRollout) {
	switch {
	case of == nil:
		objects.Pending++
	case of.Phase == hubv1.RolloutComplete:
		objects.Passed++
	case of.Phase == hubv1.RolloutFailed, of.Phase == hubv1.RolloutRollingBack, of.Phase == hubv1.RolloutRolledBack:
		objects.Failing++
	default:
		objects.Moving++
	}
}

// rolledOut returns the condition RolledOut of a placement. faults is a text about invalid annotations, or empty.
func rolledOut(r *hubv1.PlacementRollout, faults string) metav1.Condition {
	c := metav1.Condition{Type: hubv1.ConditionRolledOut, Status: metav1.ConditionFalse, Message: r.Message}
	n := r.Objects
	counts := fmt.Sprintf("%d of %d objects have their newest revision everywhere", n.Passed, n.Passed+n.Moving+n.Failing+n.Pending)
	switch {
	case r.Stopped != nil:
		c.Reason = hubv1.ReasonRolloutFailed
	case n.Moving > 0:
		c.Reason = hubv1.ReasonRolloutMoving
	case n.Failing > 0:
		c.Reason = hubv1.ReasonRolledBack
	case n.Pending > 0:
		c.Reason = hubv1.ReasonBaselinePending
		c.Message = fmt.Sprintf("objects without a revision: %d; until they have one, their changes go to all clusters at once", n.Pending)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, hubv1.ReasonRolloutComplete
	}
	if c.Message == "" {
		c.Message = counts
	} else {
		c.Message = counts + "; " + c.Message
	}
	if faults != "" {
		c.Message += "; " + faults
	}
	c.Message = cut(c.Message)
	return c
}

// faultsOf returns a text about the first invalid rollout annotation of a placement. It is empty if there is none.
func faultsOf(p hubv1.PlacementObject) string {
	_, errs := rollout.ParseVerbs(p.GetAnnotations())
	if len(errs) == 0 {
		return ""
	}
	return "ignored: " + errs[0].Error()
}
