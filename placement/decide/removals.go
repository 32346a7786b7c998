package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

// MemberClusterKind is the Kind of an Owner if a leaving MemberCluster, and not a placement, causes the removal.
const MemberClusterKind = "MemberCluster"

// Owner is the placement, the leaving MemberCluster or the bundle that causes a removal.
type Owner struct{ Kind, Namespace, Name string }

func (o Owner) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// OwnerOf returns the placement that the reference names, as an Owner. The Owner is empty if ref is nil, because then
// the binding follows no placement.
func OwnerOf(ref *hubv1.PlacementReference) Owner {
	if ref == nil {
		return Owner{}
	}
	return Owner{ref.Kind, ref.Namespace, ref.Name}
}

// OwnerOfBundle returns the bundle that the reference names, as an Owner.
func OwnerOfBundle(ref hubv1.BundleReference) Owner { return Owner(ref) }

// Removal describes the removal of a copy that the hub deletes as soon as package guard permits it.
type Removal struct {
	Cluster, Reason, Message string
	// Owner is the placement, the leaving MemberCluster or the bundle that causes the removal. Placement is the placement
	// that the object follows, even if a MemberCluster or a bundle causes the removal.
	Owner, Placement Owner
	// Last is true if the removal deletes the last copy of the object, although the placement does not allow that no copy
	// is left.
	Last bool
	// Held is true if the copy stays until a user confirms the removal.
	Held bool
	// ShownSince is the time since which the binding's spec shows that this removal is held. It is nil if the spec does
	// not show this yet.
	ShownSince *metav1.Time
}

// Group returns the placement or bundle with whose copies package guard counts the copy. If a bundle no longer contains
// the object, it is the bundle, and otherwise the placement that the object follows.
func (r Removal) Group() Owner {
	switch r.Owner.Kind {
	case hubv1.BundleKind, hubv1.ClusterBundleKind, hubv1.FederatedOperatorKind:
		return r.Owner
	}
	return r.Placement
}

// Verdict is the judgement of package guard on a removal. The zero value means that the guard has not judged the
// removal yet.
type Verdict struct {
	// Reason is the reason of the removal that was judged. The verdict does not apply to a removal for another reason.
	Reason   string
	Released bool
	// HeldSince is the time since which package guard holds the removal. It is nil if the removal is not held.
	HeldSince *metav1.Time
}

// verdictOn returns the verdict of package guard on the removal of the copy on a cluster for this reason. If no guard
// runs, a removal that the binding shows as held stays held, and every other removal is permitted.
func (in input) verdictOn(cluster, reason string) Verdict {
	if in.Removals != nil {
		if v := in.Removals[cluster]; v.Reason == reason {
			return v
		}
		return Verdict{}
	}
	if e := in.Spec().Target(cluster); e != nil && e.Removal != nil && e.Removal.Reason == reason {
		return Verdict{Reason: reason, HeldSince: &e.Removal.Since}
	}
	return Verdict{Released: true}
}

// isGuarded reports whether the change of an entry deletes a copy although package guard has not permitted it. The
// guard does not judge copies of objects that a user has deleted, alone or with their bundle. It does not judge copies
// that other clusters have replaced, copies that a drain evicts, and copies that the revision of a bundle no longer
// has, because they are judged before the cluster gets this revision (SetStep). The guard also does not judge copies
// that no object needs any more, and copies that stay on the member as orphans.
func (in input) isGuarded(before, after hubv1.BindingTarget) bool {
	return before.State == hubv1.TargetPresent && after.State == hubv1.TargetAbsent &&
		after.Absent.Policy == hubv1.RemovalDelete && !in.isDeletion(after.Absent) && after.Absent.Reason != hubv1.ReasonDraining &&
		after.Absent.Reason != hubv1.ReasonNotReferenced && after.Absent.Reason != hubv1.ReasonNotInRevision && !(after.Absent.Reason == hubv1.ReasonMadeAnew && in.Object.DeletionSeen) &&
		!in.orphansAdopted(before.Name) && !in.verdictOn(before.Name, after.Absent.Reason).Released
}

// isDeletion reports whether the removal has its cause in a user's deletion of the object or of its bundle. It returns
// false if the bundle exists and no longer contains the object.
func (in input) isDeletion(a *hubv1.Absence) bool {
	return a.Reason == hubv1.ReasonObjectDeleted && in.Object.CutFrom == nil
}

// orphansAdopted reports whether the copy on a cluster must stay there as an orphan. This is the case if the copy
// existed before the hub adopted it, and the placement does not allow the deletion of adopted copies.
func (in input) orphansAdopted(cluster string) bool {
	if in.Binding == nil {
		return false
	}
	row := in.Binding.BindingStatus().Row(cluster)
	if row == nil || !row.Adopted {
		return false
	}
	followed := in.Facts.Placement(in.Spec().PlacementRef)
	return followed == nil || followed.PlacementSpec().Deletion.Adopted != hubv1.RemovalDelete
}

// claimed returns the entry of a copy whose removal package guard must judge first, and the removal as an input for
// package guard. The entry stays as it was before. But if the guard holds the removal, the entry shows this.
func (in input) claimed(before, after hubv1.BindingTarget) (hubv1.BindingTarget, Removal) {
	a, asks := after.Absent, OwnerOf(in.Spec().PlacementRef)
	c := Removal{Cluster: before.Name, Reason: a.Reason, Owner: asks, Placement: asks}
	switch a.Reason {
	case hubv1.ReasonClusterLeaving:
		c.Owner, c.Message = Owner{Kind: MemberClusterKind, Name: before.Name}, "the MemberCluster is being deleted"
	case hubv1.ReasonMadeAnew:
		c.Message = "the hub object was deleted and created again"
	case hubv1.ReasonObjectDeleted:
		c.Owner, c.Message = OwnerOfBundle(*in.Object.CutFrom), "the bundle no longer contains the object"
	}
	if r := before.Removal; r != nil && r.Reason == a.Reason {
		c.ShownSince = &r.Since
	}
	if v := in.verdictOn(before.Name, a.Reason); v.HeldSince != nil {
		c.Held = true
		before.Removal = &hubv1.HeldRemoval{Reason: a.Reason, Since: *v.HeldSince, Policy: a.Policy}
	}
	return before, c
}

// markLast marks all removals in p.Claims as last, if they would together leave no copy of the object. A cluster that
// gets the object again at once does not count as one that loses it.
func (p *Plan) markLast() {
	claimed := map[string]bool{}
	for _, c := range p.Claims.Removals {
		claimed[c.Cluster] = true
	}
	last := !slices.ContainsFunc(p.Spec.Clusters, func(e hubv1.BindingTarget) bool { return e.State == hubv1.TargetPresent && !claimed[e.Name] })
	for i := range p.Claims.Removals {
		p.Claims.Removals[i].Last = last && p.Claims.Removals[i].Reason != hubv1.ReasonMadeAnew
	}
}

// claimFor completes the removals in p.Claims with the data of the placement `by`. would is the decision that package
// placement makes if package guard permits all removals. If would has targets, copies of the object remain, so that no
// removal is marked as the last one.
func (p *Plan) claimFor(by hubv1.PlacementObject, would placement.Decision) {
	why := map[string]string{}
	for _, r := range would.Withdraw {
		why[r.Cluster] = r.Message
	}
	asks := OwnerOf(ReferenceTo(by))
	for i := range p.Claims.Removals {
		c := &p.Claims.Removals[i]
		c.Placement, c.Last = asks, c.Last && len(would.Targets) == 0 && !by.PlacementSpec().AllowEmpty
		if c.Owner.Kind != MemberClusterKind {
			c.Owner, c.Message = asks, cmp.Or(why[c.Cluster], c.Message)
		}
	}
}

// unreleased returns the clusters on which the decision d would delete the copy, although package guard has not
// permitted this removal yet.
func (in input) unreleased(d placement.Decision, whenUnselected hubv1.RemovalPolicy) map[string]bool {
	var out map[string]bool
	for _, r := range d.Withdraw {
		policy := whenUnselected
		if m := in.Facts.Cluster(r.Cluster); r.Reason == hubv1.ReasonClusterLeaving && m != nil {
			policy = cmp.Or(m.Spec.Leave.Policy, hubv1.RemovalOrphan)
		}
		if e := in.Spec().Target(r.Cluster); e == nil || !in.isGuarded(*e, in.absent(*e, r.Reason, policy)) {
			continue
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[r.Cluster] = true
	}
	return out
}

// withHeld adds to the message of the condition Scheduled the held removals. empty is true if the placement selects no
// cluster any more.
func withHeld(c metav1.Condition, removals []Removal, empty bool) metav1.Condition {
	const named = 3
	var held []string
	for _, r := range removals {
		if r.Held {
			held = append(held, fmt.Sprintf("%s (%s)", r.Cluster, r.Reason))
		}
	}
	if len(held) == 0 {
		return c
	}
	n := clusterCount(len(held))
	if len(held) > named {
		held = append(held[:named], fmt.Sprintf("and %d more", len(held)-named))
	}
	c.Message += fmt.Sprintf("; the hub holds the removal from %s until a user confirms it by hansectl confirm: %s", n, strings.Join(held, ", "))
	if empty {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, hubv1.ReasonNoClusterSelected, "the placement selects no cluster any more, and copies stay on "+c.Message
	}
	return c
}
