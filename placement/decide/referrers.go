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

// Referrer is an object that needs the object of the decision on the clusters of the Referrer. An example is a
// Deployment that needs a ConfigMap.
type Referrer struct {
	ID hubv1.ObjectIdentity
	// Spec is the spec of the referrer's binding.
	Spec *hubv1.BindingSpec
}

// Needs reports whether the object of a binding needs the object with this identity.
func Needs(b hubv1.BindingObject, id hubv1.ObjectIdentity) bool {
	return slices.ContainsFunc(b.BindingSpec().References, func(r hubv1.BindingReference) bool { return r.In(b.GetNamespace()) == id })
}

// ReferrersIn returns the objects that need the object with this identity. bindings are the bindings of its namespace.
// The result is never nil.
func ReferrersIn(bindings []hubv1.BindingObject, id hubv1.ObjectIdentity) []Referrer {
	out := []Referrer{}
	for _, b := range bindings {
		if Needs(b, id) {
			out = append(out, Referrer{ID: hubv1.ObjectOf(b), Spec: b.BindingSpec()})
		}
	}
	return out
}

// isReferenced reports whether other objects need this object, or needed it at the last decision. If no placement
// selects the object, the decision follows these other objects.
func (in input) isReferenced() bool { return in.Spec().Referenced || len(in.Referrers) > 0 }

// followReferrers decides on an object that no placement selects but other objects need. The object goes to the
// clusters of these other objects. It leaves a cluster when none of them is left there.
func (in input) followReferrers() Plan {
	owner := in.ownerOfReferrers()
	if p := in.keptForReferrers(owner); p != nil {
		return *p
	}
	excluded, err := in.excludedFromReference()
	if err != nil {
		return in.keep(metav1.ConditionUnknown, hubv1.ReasonOverrideInvalid, Short("every cluster keeps its copy: "+strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	needed, used := in.neededOn(excluded)
	if in.Binding != nil && !in.Spec().Referenced && !covers(used, in.Spec()) && !in.withdrawalAsked() {
		return in.addNeeded(needed)
	}
	policy := in.whenNotReferenced(owner)
	p := in.settle(in.renewing(func(e hubv1.BindingTarget) hubv1.BindingTarget {
		earlier, outlived := in.outlived(e)
		switch {
		case outlived && needed[e.Name]:
			return earlier
		case needed[e.Name]:
			return present(e.Name)
		case excluded[e.Name]:
			return in.absent(e, hubv1.ReasonExcludedByOverride, policy)
		case used[e.Name]:
			return in.restored(e)
		}
		return in.absent(e, hubv1.ReasonNotReferenced, policy)
	}))
	if !in.keepsEarlier(&p) {
		p.addPresent(needed)
	}
	p.Placed = true // another cluster matters only when a referrer is on it
	p.Spec.Referenced, p.Spec.References, p.Spec.Division = true, nil, nil
	in.refer(&p)
	p.WhenDeleted = in.recordedOr(owner)
	if owner != nil {
		p.Spec.PlacementRef = ReferenceTo(owner)
		if err := in.stage(&p, owner); err != nil {
			return in.unrevised(err, AnswersIrrelevant)
		}
	}
	p.Remove = len(p.Spec.Clusters) == 0 && !in.Object.Unconfirmed && len(in.Referrers) == 0 && (in.Binding == nil || len(in.Binding.BindingStatus().Orphaned) == 0)
	p.Status.Scheduled = withHeld(in.withEarlier(in.referencedBy(needed), &p), p.Claims.Removals, false)
	return p
}

// keptForReferrers returns a plan that keeps the current decision, if the object must not follow the objects that need
// it. This is the case if these other objects are not known, if scheduling is suspended, if the hub itself would act on
// the object, or if the object must not be sent to members. In other cases it returns nil.
func (in input) keptForReferrers(owner hubv1.PlacementObject) *Plan {
	var p Plan
	switch refusal := in.forbidden(); {
	case in.Referrers == nil: // the referrers are not known
		p = in.keep(metav1.ConditionTrue, hubv1.ReasonReferenced, "the decision follows the objects that need the object")
	case suspended(owner):
		p = in.keep(metav1.ConditionTrue, hubv1.ReasonSuspended, "the placement suspends scheduling: every cluster keeps its copy")
	case in.Object.HubRuns && (owner == nil || owner.PlacementSpec().HubExecution != hubv1.HubExecutionAllowed):
		p = in.keep(metav1.ConditionFalse, hubv1.ReasonHubWouldRun, fmt.Sprintf(
			"other objects need the object, but the hub itself would act on a %s: to place it anyway, set hubExecution: Allowed in their placement", in.Object.ID.Kind))
	case refusal != nil:
		p = in.keep(metav1.ConditionFalse, refusal.Reason, refusal.Message)
	default:
		return nil
	}
	return &p
}

// addNeeded decides on an object that other objects need and that no placement selects any more. It keeps every copy,
// because an edit of a placement must not withdraw a copy. It adds the clusters of the objects that need this object.
func (in input) addNeeded(needed map[string]bool) Plan {
	p := in.keep(metav1.ConditionTrue, hubv1.ReasonPlacementGone,
		"no placement selects the object: every cluster keeps its copy, and clusters with objects that need it get a copy; hansectl withdraw removes the copies on other clusters")
	p.addPresent(needed)
	return p
}

// addPresent adds Present entries for the needed clusters that have no entry in spec.clusters.
func (p *Plan) addPresent(needed map[string]bool) {
	for name := range needed {
		if p.Spec.Target(name) == nil {
			p.Spec.Clusters = append(p.Spec.Clusters, present(name))
		}
	}
	slices.SortFunc(p.Spec.Clusters, byName)
}

// neededOn returns as needed the clusters on which other objects need this object, without the excluded clusters. used
// has all clusters of these other objects. It also includes the excluded clusters, and the clusters from which the
// other objects are being withdrawn.
func (in input) neededOn(excluded map[string]bool) (needed, used map[string]bool) {
	needed, used = map[string]bool{}, map[string]bool{}
	for _, r := range in.Referrers {
		for _, e := range r.Spec.Clusters {
			used[e.Name] = true
			if e.State != hubv1.TargetAbsent && !excluded[e.Name] && in.Facts.Cluster(e.Name) != nil {
				needed[e.Name] = true
			}
		}
	}
	return needed, used
}

// excludedFromReference returns the clusters from which override policies exclude the object. The value is true if the
// cluster is excluded. A rule whose result may change without a user's action does not exclude clusters that already
// hold the object.
func (in input) excludedFromReference() (map[string]bool, error) {
	rules, err := in.exclusions()
	if err != nil {
		return nil, err
	}
	held, out := in.heldBy(), map[string]bool{}
	for name, x := range rules {
		out[name] = !x.Passing || !held[name]
	}
	return out, nil
}

// covers reports whether the set clusters contains every cluster that holds the object.
func covers(clusters map[string]bool, spec *hubv1.BindingSpec) bool {
	return !slices.ContainsFunc(spec.Clusters, func(e hubv1.BindingTarget) bool { return e.State != hubv1.TargetAbsent && !clusters[e.Name] })
}

// ownerOfReferrers returns the placement whose settings apply to an object that other objects need. It is a placement
// of one of these other objects. If possible, it is the placement that the object's binding names; otherwise it is the
// first one by precedence. It is nil if no such placement exists.
func (in input) ownerOfReferrers() hubv1.PlacementObject {
	var owner hubv1.PlacementObject
	current := in.Facts.Placement(in.Spec().PlacementRef)
	for _, r := range in.Referrers {
		p := in.Facts.Placement(r.Spec.PlacementRef)
		switch {
		case p == nil:
		case p == current:
			return current
		case owner == nil || byPrecedence(p, owner) < 0:
			owner = p
		}
	}
	return owner
}

// byPrecedence orders placements: enforced ones first, then by priority, then by name.
func byPrecedence(a, b hubv1.PlacementObject) int {
	switch {
	case placement.Outranks(a, b):
		return -1
	case placement.Outranks(b, a):
		return 1
	}
	return cmp.Or(cmp.Compare(b.PlacementSpec().Priority, a.PlacementSpec().Priority), cmp.Compare(nameOf(a), nameOf(b)))
}

// whenNotReferenced returns the removal policy for a copy that no object needs any more. It is Delete only if the
// placement deletes copies in both cases: if the object is deleted, and if a cluster is no longer selected. If the
// placement was deleted, the policy is the one that the binding has recorded.
func (in input) whenNotReferenced(owner hubv1.PlacementObject) hubv1.RemovalPolicy {
	if owner == nil {
		owner = in.Facts.Placement(in.Spec().PlacementRef)
	}
	if owner == nil {
		return in.recordedOr(nil)
	}
	deleted, unselected := placement.DefaultRemoval(in.Object.ID.GroupKind(), owner.PlacementSpec().Deletion)
	if deleted == hubv1.RemovalDelete {
		return unselected
	}
	return deleted
}

// recordedOr returns the removal policy that the placement owner has for deleted objects. If owner is nil, it returns
// the policy that the binding has recorded, or the default of the kind.
func (in input) recordedOr(owner hubv1.PlacementObject) hubv1.RemovalPolicy {
	switch {
	case owner != nil:
		policy, _ := placement.DefaultRemoval(in.Object.ID.GroupKind(), owner.PlacementSpec().Deletion)
		return policy
	case in.Binding != nil:
		return in.recordedPolicy()
	}
	policy, _ := placement.DefaultRemoval(in.Object.ID.GroupKind(), hubv1.DeletionPolicy{})
	return policy
}

// referencedBy returns the condition Scheduled, with a message such as "2 clusters, because Deployment.apps shop/web
// and 3 more objects need it".
func (in input) referencedBy(needed map[string]bool) metav1.Condition {
	if len(in.Referrers) == 0 {
		return condition(metav1.ConditionFalse, hubv1.ReasonNotReferenced, "no object needs the object any more: it is withdrawn")
	}
	first := slices.MinFunc(in.Referrers, func(a, b Referrer) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	who, verb := first.ID.String(), "needs"
	switch more := len(in.Referrers) - 1; more {
	case 0:
	case 1:
		who, verb = who+" and 1 more object", "need"
	default:
		who, verb = fmt.Sprintf("%s and %d more objects", who, more), "need"
	}
	return condition(metav1.ConditionTrue, hubv1.ReasonReferenced, fmt.Sprintf("%s, because %s %s it", clusterCount(len(needed)), who, verb))
}
