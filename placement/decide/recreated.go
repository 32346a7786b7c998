package decide

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// A hub object with another UID is another object, even if it has the name of an earlier one. The copies of the earlier
// object are deleted, as after any deletion of a hub object, and the clusters then get copies of the present object.
// If the hub has not seen the deletion, package guard judges this, because a restore of many objects looks the same.
//
//   - Until the guard permits the removals, the binding records the earlier object, so that no copy is written.
//   - Then the binding records the present object, and the entries are Absent, with the UID of the earlier object.
//   - If the earlier object was deleted with its kind, no user deleted it: the copies stay, and get the present object.
//   - An entry becomes Present again when its cluster has confirmed the removal. One cluster does not wait for another.

// isEarlier reports whether uid is the UID of an earlier hub object of the same name. It is false if the template has
// no UID, as in a simulation.
func (in input) isEarlier(uid types.UID) bool {
	return in.Object.State == Exists && uid != "" && in.Object.Template.GetUID() != "" && uid != in.Object.Template.GetUID()
}

// isRecreated reports whether the binding still records an earlier hub object of the same name, which a user has
// deleted.
func (in input) isRecreated() bool {
	return in.isEarlier(in.Spec().ObjectRef.UID) && !in.Object.KindRecreated
}

// isRenewed reports whether the copy of an earlier hub object on this cluster is deleted before the cluster gets a copy
// of the present one. Otherwise the copy stays, and the hub writes the present object into it: if the removal policy is
// Orphan, if the copy was adopted, if the object has a rollout, and if the cluster is the hub itself. It also stays on
// a cluster that leaves or has no MemberCluster.
func (in input) isRenewed(cluster string) bool {
	m := in.Facts.Cluster(cluster)
	return m != nil && m.DeletionTimestamp == nil && in.whenDeleted() == hubv1.RemovalDelete && in.Spec().Rollout == nil && !in.orphansAdopted(cluster) && !in.isTemplate(cluster)
}

// outlived returns the entry of a cluster that still has to remove its copy of an earlier hub object. ok is false if
// the cluster has no such copy.
func (in input) outlived(e hubv1.BindingTarget) (absent hubv1.BindingTarget, ok bool) {
	if e.State != hubv1.TargetAbsent || e.Absent.Policy != hubv1.RemovalDelete || !in.isEarlier(e.Absent.UID) || in.Spec().Rollout != nil {
		return e, false
	}
	return in.absent(e, hubv1.ReasonMadeAnew, hubv1.RemovalDelete), true
}

// renewing returns the rule r, changed for a hub object that was created again: an entry that r would keep becomes
// Absent. It is the rule r as long as package guard has not permitted all these removals; the guard then judges the
// entries that renewing leaves Absent.
func (in input) renewing(r rule) rule {
	renewed := func(e hubv1.BindingTarget) hubv1.BindingTarget {
		after := r(e)
		switch {
		case after.State == hubv1.TargetAbsent || !in.isRecreated() || !in.isRenewed(e.Name):
			return after
		case after.State == hubv1.TargetEvicting:
			return in.absent(e, after.Evicting.Reason, hubv1.RemovalDelete) // other clusters replace this one
		case e.State == hubv1.TargetAbsent:
			return after
		}
		return in.absent(e, hubv1.ReasonMadeAnew, hubv1.RemovalDelete)
	}
	waits := slices.ContainsFunc(in.Spec().Clusters, func(e hubv1.BindingTarget) bool {
		after := renewed(e)
		return after.Returns() && in.isGuarded(e, after)
	})
	if !waits {
		return renewed
	}
	return func(e hubv1.BindingTarget) hubv1.BindingTarget {
		if after := renewed(e); after.Returns() && in.isGuarded(e, after) {
			return after
		}
		return r(e)
	}
}

// keepsEarlier reports whether the plan leaves a copy of an earlier hub object on a cluster until it is deleted.
func (in input) keepsEarlier(p *Plan) bool {
	return in.isRecreated() && slices.ContainsFunc(p.Spec.Clusters, func(e hubv1.BindingTarget) bool {
		before := in.Spec().Target(e.Name)
		return e.State != hubv1.TargetAbsent && before != nil && before.State != hubv1.TargetAbsent && in.isRenewed(e.Name)
	})
}

// refer records the present hub object in the plan. While a cluster keeps a copy of an earlier object, the plan keeps
// the reference to the earlier one, so that the hub does not write the present object into the copy.
func (in input) refer(p *Plan) {
	if in.keepsEarlier(p) {
		return
	}
	p.Spec.ObjectRef = in.objectRef()
}

// withEarlier adds to the message of the condition Scheduled that clusters have copies of an earlier hub object.
func (in input) withEarlier(c metav1.Condition, p *Plan) metav1.Condition {
	const why = "the hub object was deleted and created again"
	returning := 0
	for _, e := range p.Spec.Clusters {
		if e.Returns() {
			returning++
		}
	}
	switch {
	case in.keepsEarlier(p):
		c.Message += fmt.Sprintf("; %s: the copies of the earlier object stay unchanged until they are removed", why)
	case returning > 0:
		c.Message += fmt.Sprintf("; %s: the copies of the earlier object are first removed from %s", why, clusterCount(returning))
	}
	return c
}
