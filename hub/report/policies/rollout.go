package policies

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// foldRollouts writes a summary of rollouts into the status of a placement. It summarizes the rollouts of the objects
// that follow the placement, which means that this placement decides about them. It records the requests of users, and
// returns errors for the refused ones. If the placement specifies no rollout, foldRollouts removes the summary and the
// condition RolledOut.
func foldRollouts(status *hubv1.PlacementStatus, placement hubv1.PlacementObject, following []hubv1.BindingObject, now time.Time) (refused []error) {
	policy := placement.PlacementSpec().Rollout
	if policy == nil {
		status.Rollout = nil
		meta.RemoveStatusCondition(&status.Conditions, hubv1.ConditionRolledOut)
		return nil
	}
	requests, faults := rollout.ParseRequests(placement.GetAnnotations())
	requests, refused = requests.Record(status.Rollout, placement.GetAnnotations()[hubv1.ChangedByAnnotation], following, now)
	out := &hubv1.PlacementRollout{
		Phase: hubv1.RolloutComplete, Approvals: requests.Approvals, Skips: requests.Skips, Promotion: requests.Promotion,
	}
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
		if slowest == nil || compare(policy, of, slowest) < 0 {
			slowest = of
			out.Wave, out.Object, out.Revision = of.Wave, nameOf(b), of.Revision
			if out.Stopped == nil {
				out.Phase, out.Message = of.Phase, cut(nameOf(b)+": "+of.Message)
			}
		}
	}
	out.WaveBegan = waveBegan(out.Wave, following)
	status.Rollout = out
	fault := ""
	if len(faults) > 0 {
		fault = "ignored: " + faults[0].Error()
	}
	set(&status.Conditions, placement.GetGeneration(), rolledOut(out, fault))
	return refused
}

// compare returns a negative number if the object with rollout a speaks for the placement rather than the one with
// rollout b: it is further behind, or it waits for a user in the same wave.
func compare(policy *hubv1.RolloutPolicy, a, b *hubv1.BindingRollout) int {
	waits := func(r *hubv1.BindingRollout) int {
		return slices.Index([]hubv1.RolloutPhase{hubv1.RolloutWaitingForClusters, hubv1.RolloutWaitingForApproval}, r.Phase)
	}
	return cmp.Or(cmp.Compare(behind(policy, a), behind(policy, b)), cmp.Compare(waits(b), waits(a)))
}

// waveBegan returns the earliest time at which a cluster of the wave began to change. It returns nil if none has begun.
func waveBegan(wave string, following []hubv1.BindingObject) (first *metav1.Time) {
	for _, b := range following {
		of := b.BindingSpec().Rollout
		if b.GetDeletionTimestamp() != nil || of == nil || of.Wave != wave || of.WaveBegan == nil {
			continue
		}
		if first == nil || of.WaveBegan.Before(first) {
			first = of.WaveBegan.DeepCopy()
		}
	}
	return first
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

// rolledOut returns the condition RolledOut of a placement. fault is a text about an invalid annotation, or empty.
func rolledOut(r *hubv1.PlacementRollout, fault string) metav1.Condition {
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
	if fault != "" {
		c.Message += "; " + fault
	}
	c.Message = cut(c.Message)
	return c
}
