package decide

import (
	"cmp"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// A rule returns the next state of one entry of spec.clusters. Each kind of decision, such as following a placement,
// has its own rule.
type rule func(hubv1.BindingTarget) hubv1.BindingTarget

// settle applies a rule to every entry of spec.clusters. It then handles the cases that are the same for all rules:
// clusters that leave, clusters whose MemberCluster is deleted, removals that package guard must judge, and completed
// withdrawals.
func (in input) settle(r rule) Plan {
	p := Plan{Spec: in.Spec().DeepCopy()}
	p.Spec.Clusters = nil
	for _, before := range in.Spec().Clusters {
		e, dropped, why := in.next(&p, before, r)
		if !dropped && in.isGuarded(before, e) {
			kept, c := in.claimed(before, e)
			p.Spec.Clusters, p.Claims.Removals = append(p.Spec.Clusters, kept), append(p.Claims.Removals, c)
			continue
		}
		if in.Object.State == Exists {
			e.Removal = nil
		}
		taken := dropped || (before.State != e.State && (e.State == hubv1.TargetAbsent || e.State == hubv1.TargetEvicting))
		if taken && in.Object.Unconfirmed {
			p.Spec.Clusters = append(p.Spec.Clusters, before)
			continue
		}
		p.Withdraws = p.Withdraws || taken
		switch {
		case dropped:
			p.LeftBehind = append(p.LeftBehind, before.Name+": "+why)
		case !in.withdrawn(e):
			p.Spec.Clusters = append(p.Spec.Clusters, e)
		}
	}
	p.markLast()
	return p
}

// next returns the entry after the rule r was applied. It also handles clusters that leave, and clusters whose
// MemberCluster is deleted. dropped is true if the plan drops the entry although the cluster may still hold a copy. why
// is the reason for this.
func (in input) next(p *Plan, before hubv1.BindingTarget, r rule) (e hubv1.BindingTarget, dropped bool, why string) {
	e = r(before)
	c := in.Facts.Cluster(e.Name)
	if c != nil && c.DeletionTimestamp != nil {
		// A removal that package guard holds for another reason must not delay the leave.
		if e.State != hubv1.TargetAbsent || in.isGuarded(before, e) {
			e = in.absent(before, hubv1.ReasonClusterLeaving, cmp.Or(c.Spec.Leave.Policy, hubv1.RemovalOrphan))
		}
		hindrance := in.hindrance(before)
		if wait, abandon := in.abandons(c, hindrance != ""); abandon {
			switch {
			case wait > 0 || in.withdrawn(e):
			case hindrance != "":
				return e, true, hindrance + " and is abandoned (spec.leave.whenUnreachable)"
			default:
				return e, true, "the cluster does not answer and is abandoned (spec.leave.whenUnreachable)"
			}
			p.Again = earlier(p.Again, max(wait, 0))
		}
	}
	if c == nil && e.State == hubv1.TargetAbsent && !in.withdrawn(e) {
		return e, true, "its MemberCluster is deleted"
	}
	return e, false, ""
}

// refusals has the reasons of status rows that mean: the cluster refuses a withdrawal until its administrator changes
// something.
var refusals = map[string]bool{
	hubv1.ReasonForbidden: true, hubv1.ReasonAdmissionDenied: true, hubv1.ReasonKindNotServed: true, hubv1.ReasonDefinitionKept: true,
}

// hindrance returns why a reachable cluster does not withdraw the copy of an Absent entry: the cluster refuses the
// deletion, or finalizers keep the copy. The text is empty if no such reason is known.
func (in input) hindrance(e hubv1.BindingTarget) string {
	if e.State != hubv1.TargetAbsent || in.Binding == nil {
		return ""
	}
	row := in.Binding.BindingStatus().Row(e.Name)
	switch {
	case row == nil:
		return ""
	case row.Reason == hubv1.ReasonFinalizersRemain:
		return row.Message
	case refusals[row.Reason]:
		return "the cluster refuses the withdrawal (" + row.Reason + ")"
	}
	return ""
}

// abandons reports whether the hub gives up the copies on the leaving cluster c, now or later. wait is the time until
// then. It is zero or negative if the hub gives them up now.
func (in input) abandons(c *hubv1.MemberCluster, hindered bool) (wait time.Duration, abandon bool) {
	const standard = 600
	if c.Spec.Leave.WhenUnreachable != hubv1.UnreachableAbandon || !c.IsAway() && !hindered {
		return 0, false
	}
	seconds := int32(standard)
	if c.Spec.Leave.TimeoutSeconds != nil {
		seconds = *c.Spec.Leave.TimeoutSeconds
	}
	return c.DeletionTimestamp.Add(time.Duration(seconds) * time.Second).Sub(in.Now), true
}

// withdrawn reports whether the withdrawal of an Absent entry is confirmed, by a row of the status or by
// Input.Withdrawn. A row counts only if it belongs to the current or the previous spec of the binding. An older row may
// confirm an earlier withdrawal from the same cluster.
func (in input) withdrawn(e hubv1.BindingTarget) bool {
	if e.State != hubv1.TargetAbsent || in.Binding == nil {
		return false
	}
	before := in.Spec().Target(e.Name)
	if before == nil || before.State != hubv1.TargetAbsent {
		return false
	}
	status := in.Binding.BindingStatus()
	row := status.Row(e.Name)
	return in.Withdrawn || status.ObservedGeneration >= in.Binding.GetGeneration()-1 && row != nil && row.Reason == hubv1.ReasonWithdrawn
}

func present(cluster string) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent}
}

// absent returns the entry with the state Absent for the cluster of e. The entry has the UID of the hub object whose
// copy is removed. This is the UID in the binding, or the UID in e if e is already Absent.
func (in input) absent(e hubv1.BindingTarget, reason string, policy hubv1.RemovalPolicy) hubv1.BindingTarget {
	uid := in.Spec().ObjectRef.UID
	if e.Absent != nil {
		uid = e.Absent.UID
	}
	return hubv1.BindingTarget{Name: e.Name, State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: reason, UID: uid, Policy: policy}}
}

// wasDeleted reports whether the only reason of an Absent entry is that the object, or an earlier object of its name,
// was deleted.
func wasDeleted(e hubv1.BindingTarget) bool {
	return e.State == hubv1.TargetAbsent && (e.Absent.Reason == hubv1.ReasonObjectDeleted || e.Absent.Reason == hubv1.ReasonMadeAnew)
}

// restored makes an Absent entry Present again if its only reason is that the object was deleted, and if the same
// object exists again. If another object of its name exists, the copy of the deleted object is removed first. Other
// entries do not change, nor do those of clusters whose revision of the bundle does not have the object.
func (in input) restored(e hubv1.BindingTarget) hubv1.BindingTarget {
	if !wasDeleted(e) || in.Set != nil && in.Set.Holds[e.Name] == 0 {
		return e
	}
	if earlier, outlived := in.outlived(e); outlived {
		return earlier
	}
	return present(e.Name)
}

// heldBy returns the clusters that hold the object: those with a Present entry, and those whose copy is withdrawn only
// because the object was deleted.
func (in input) heldBy() map[string]bool {
	out := map[string]bool{}
	for _, e := range in.Spec().Clusters {
		if e.State == hubv1.TargetPresent || wasDeleted(e) {
			out[e.Name] = true
		}
	}
	return out
}

// evictingOf returns the clusters with an Evicting entry.
func evictingOf(spec *hubv1.BindingSpec) map[string]bool {
	out := map[string]bool{}
	for _, e := range spec.Clusters {
		if e.State == hubv1.TargetEvicting {
			out[e.Name] = true
		}
	}
	return out
}

func byName(a, b hubv1.BindingTarget) int { return cmp.Compare(a.Name, b.Name) }

// Forgotten returns the copies that stay on their clusters because the hub deletes the binding of the object. Each copy
// is a text of the form "cluster: reason".
func Forgotten(i Input, p Plan) []string {
	in, left := input{Input: i}, p.LeftBehind
	if in.Object.State == Deleted {
		return left
	}
	for _, e := range in.Spec().Clusters {
		if (e.State == hubv1.TargetAbsent && !in.withdrawn(e)) || in.Object.State == Undecided {
			left = append(left, e.Name+": the binding was deleted")
		}
	}
	return left
}
