package schedule

import (
	"cmp"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// A rule says what becomes of one entry; every decision brings its own.
type rule func(hubv1.BindingTarget) hubv1.BindingTarget

// settle applies a rule to every entry, and after it what holds for every decision: clusters that leave, are gone or are given up,
// and withdrawals that are done.
func (f facts) settle(r rule) plan {
	p := plan{spec: f.spec().DeepCopy()}
	p.spec.Clusters = nil
	for _, before := range f.spec().Clusters {
		e, dropped, why := f.next(&p, before, r)
		if !dropped && f.isGuarded(before, e) {
			kept, c := f.claimed(before, e)
			p.spec.Clusters, p.claims = append(p.spec.Clusters, kept), append(p.claims, c)
			continue
		}
		if f.fate == alive {
			e.Removal = nil
		}
		taken := dropped || (before.State != e.State && (e.State == hubv1.TargetAbsent || e.State == hubv1.TargetEvicting))
		if taken && f.holdBack {
			p.spec.Clusters = append(p.spec.Clusters, before)
			continue
		}
		p.takes = p.takes || taken
		switch {
		case dropped:
			p.left = append(p.left, before.Name+": "+why)
		case !f.withdrawn(e):
			p.spec.Clusters = append(p.spec.Clusters, e)
		}
	}
	p.claimLast()
	return p
}

// next is the entry after the rule; dropped if it is given up, although its cluster may hold a copy.
func (f facts) next(p *plan, before hubv1.BindingTarget, r rule) (e hubv1.BindingTarget, dropped bool, why string) {
	e = r(before)
	c := f.world.cluster(e.Name)
	if c != nil && c.DeletionTimestamp != nil {
		if e.State != hubv1.TargetAbsent {
			e = f.absent(e, hubv1.ReasonClusterLeaving, cmp.Or(c.Spec.Leave.Policy, hubv1.RemovalOrphan))
		}
		hindrance := f.hindrance(before)
		if wait, abandon := f.abandons(c, hindrance != ""); abandon {
			switch {
			case wait > 0 || f.withdrawn(e):
			case hindrance != "":
				return e, true, hindrance + " and is abandoned (spec.leave.whenUnreachable)"
			default:
				return e, true, "the cluster does not answer and is abandoned (spec.leave.whenUnreachable)"
			}
			p.again = earlier(p.again, max(wait, 0))
		}
	}
	if c == nil && e.State == hubv1.TargetAbsent && !f.withdrawn(e) {
		return e, true, "its MemberCluster is gone"
	}
	return e, false, ""
}

// refusals are reasons of a withdrawal that a cluster answers and does not carry out: only its admin can change that.
var refusals = map[string]bool{hubv1.ReasonForbidden: true, hubv1.ReasonAdmissionDenied: true, hubv1.ReasonKindNotServed: true}

// hindrance says why a cluster that answers does not withdraw the copy of an Absent entry, or is empty: it refuses to, or others' finalizers keep the copy.
func (f facts) hindrance(e hubv1.BindingTarget) string {
	if e.State != hubv1.TargetAbsent || f.binding == nil {
		return ""
	}
	row := f.binding.BindingStatus().Row(e.Name)
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

// abandons says whether a leaving cluster is to be given up, and how long from now.
func (f facts) abandons(c *hubv1.MemberCluster, hindered bool) (wait time.Duration, abandon bool) {
	const standard = 600
	if c.Spec.Leave.WhenUnreachable != hubv1.UnreachableAbandon || !away(c) && !hindered {
		return 0, false
	}
	seconds := int32(standard)
	if c.Spec.Leave.TimeoutSeconds != nil {
		seconds = *c.Spec.Leave.TimeoutSeconds
	}
	return c.DeletionTimestamp.Add(time.Duration(seconds) * time.Second).Sub(f.now), true
}

// withdrawn is true for an Absent entry whose row says so, if the rows speak of the spec as it is or of the one just before: an entry
// that was Absent in both was not Present in between, while an older row may tell of an earlier absence. (Being deleted counts as a
// change of the spec.)
func (f facts) withdrawn(e hubv1.BindingTarget) bool {
	if e.State != hubv1.TargetAbsent || f.binding == nil {
		return false
	}
	before := f.spec().Target(e.Name)
	status := f.binding.BindingStatus()
	if before == nil || before.State != hubv1.TargetAbsent || status.ObservedGeneration < f.binding.GetGeneration()-1 {
		return false
	}
	row := status.Row(e.Name)
	return row != nil && row.Reason == hubv1.ReasonWithdrawn
}

func present(cluster string) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent}
}

// absent turns an entry Absent. The copies carry the uid that the binding names until now.
func (f facts) absent(e hubv1.BindingTarget, reason string, policy hubv1.RemovalPolicy) hubv1.BindingTarget {
	uid := f.spec().ObjectRef.UID
	if e.Absent != nil {
		uid = e.Absent.UID
	}
	return hubv1.BindingTarget{Name: e.Name, State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: reason, UID: uid, Policy: policy}}
}

// restored takes back a withdrawal that only the object's deletion asked for.
func restored(e hubv1.BindingTarget) hubv1.BindingTarget {
	if e.State == hubv1.TargetAbsent && e.Absent.Reason == hubv1.ReasonObjectDeleted {
		return present(e.Name)
	}
	return e
}

// held are the clusters that hold the object, or would if it had not been deleted in between.
func held(spec *hubv1.BindingSpec) map[string]bool {
	out := map[string]bool{}
	for _, e := range spec.Clusters {
		if restored(e).State == hubv1.TargetPresent {
			out[e.Name] = true
		}
	}
	return out
}

// evicting are the clusters that may hold a copy which others have taken the place of.
func evicting(spec *hubv1.BindingSpec) map[string]bool {
	out := map[string]bool{}
	for _, e := range spec.Clusters {
		if e.State == hubv1.TargetEvicting {
			out[e.Name] = true
		}
	}
	return out
}

func byName(a, b hubv1.BindingTarget) int { return cmp.Compare(a.Name, b.Name) }
