package decide

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/rollout"
	"github.com/hanse-dev/hanse/placement/tenancy"
)

// WhenDeletedAnnotation is on a binding if the placement's deletion.whenDeleted differs from the default for the kind.
// The value of the annotation is deletion.whenDeleted. If a placement is deleted together with its objects, as by helm
// uninstall, the hub reads the removal policy from this annotation.
const WhenDeletedAnnotation = hubv1.Prefix + "when-deleted"

// Plan is a decision on one object, with its reasons.
type Plan struct {
	// Spec is the new spec of the binding. It is nil if the object shall have no binding.
	Spec *hubv1.BindingSpec
	// WhenDeleted is the removal policy for the copies if the object is deleted. The hub records it, because the placement
	// may be deleted together with the object.
	WhenDeleted hubv1.RemovalPolicy
	// Remove is true if the binding can be deleted: its spec.clusters is empty, and no cluster will get the object.
	Remove bool
	// Withdraws is true if this plan begins to withdraw, to evict or to give up a copy.
	Withdraws bool
	// Payloads are the templates and override rules of the object's revisions that are not stored yet. The hub must store
	// them before it writes the binding's spec, which names them by digest.
	Payloads []Payload
	// LeftBehind are the copies that the hub gives up although they may still be on their clusters, each as "cluster:
	// reason".
	LeftBehind []string
	// Chosen are the clusters on which the placement wants the object, sorted, even if the revision of its bundle on a
	// cluster does not have the object. It is nil if the decision chooses no clusters, as while scheduling is suspended.
	Chosen []string
	// Placed is true if the object has all the clusters and replicas that its policies ask for, and leaves none. Another
	// cluster that such an object could get then does not change the decision, unless the placement wants every cluster,
	// or arranges the objects anew (see placement.Reach).
	Placed bool
	Status Status
	Claims Claims
	// Again is the time until the decision may change without an event. It is 0 if only an event can change the decision.
	Again time.Duration
}

// Status is the part of a binding's status that comes from the decision. Other parts come from the clusters.
type Status struct {
	// Scheduled is the condition Scheduled that the decision writes to the binding, without a time.
	Scheduled metav1.Condition
	// Decision says why the decision chose or rejected clusters. It is nil if there is nothing to say.
	Decision *hubv1.DecisionStatus
	// OtherPlacements are the placements that also select the object, but that the object does not follow.
	OtherPlacements []string
}

// Claims are the shares of the hub's limits that a decision uses. The leader reserves them before it writes the
// decision.
type Claims struct {
	// Evicted are the clusters whose entries get the state Evicting by this decision.
	Evicted []string
	// Unreplaced are the drained clusters that the object leaves although no other cluster replaces them.
	Unreplaced []string
	// EvictionWaits is true if the eviction rate does not allow the eviction of the object yet.
	EvictionWaits bool
	// FullDrains are the drained clusters that the object cannot leave yet, because the maximum number of objects is
	// already leaving each of them.
	FullDrains []string
	// Blocked are the drained clusters that the object cannot leave, each with the reason.
	Blocked map[string]string
	// Answers says whether the decision waits for clusters to report the kinds that they serve.
	Answers Answers
	// Removals are the copies that the hub deletes as soon as package guard permits it.
	Removals []Removal
	// Rollout is the progress of the object's rollout. It is an input of the rollouts of other objects with the same
	// placement. It is nil if the object has no rollout.
	Rollout *rollout.Progress
}

// Decide returns the decision on one object. Equal inputs give equal plans.
func Decide(i Input) Plan { return input{Input: i}.decide() }

func (in input) decide() Plan {
	p := in.plan()
	if p.Spec != nil {
		p = in.bounded(p)
	}
	if in.Binding != nil && p.Spec != nil {
		keepRecorded(in.Spec(), p.Spec)
	}
	return p
}

// keepRecorded changes the spec after, if it differs from before only in the generation of the placement and the API
// version of the object. It then sets both to the recorded values. Otherwise each edit of a placement, and each new
// version of a CRD, would write all bindings.
func keepRecorded(before, after *hubv1.BindingSpec) {
	same := *after
	same.ObjectRef.APIVersion = before.ObjectRef.APIVersion
	if before.PlacementRef != nil && after.PlacementRef != nil {
		ref := *after.PlacementRef
		ref.Generation = before.PlacementRef.Generation
		same.PlacementRef = &ref
	}
	if equality.Semantic.DeepEqual(before, &same) {
		*after = same
	}
}

func (in input) plan() Plan {
	if in.Binding == nil && in.Object.State != Exists {
		return Plan{}
	}
	switch in.Object.State {
	case Deleted:
		return in.withdrawEverywhere()
	case Unreadable, Undecided:
		p := in.keep(metav1.ConditionUnknown, hubv1.ReasonTemplateMissing, "the object cannot be read, so every cluster keeps its copy: "+in.Object.Problem)
		if in.Object.State == Undecided {
			p.Again = earlier(p.Again, 5*time.Minute)
		}
		return p
	}
	choice := in.choose()
	current := in.Facts.Placement(in.Spec().PlacementRef)
	switch {
	case choice.Winner == nil && in.isReferenced():
		return in.followReferrers()
	case choice.Winner == nil:
		return in.unselected(current)
	case suspended(choice.Winner), suspended(current) && !placement.Outranks(choice.Winner, current):
		p := in.keep(metav1.ConditionTrue, hubv1.ReasonSuspended, "the placement suspends scheduling: every cluster keeps its copy")
		p.Status.OtherPlacements = names(choice.Others)
		return p
	case in.Object.HubRuns && choice.Winner.PlacementSpec().HubExecution != hubv1.HubExecutionAllowed:
		return in.forNoCluster(hubv1.ReasonHubWouldRun, fmt.Sprintf(
			"the hub itself would act on a %s: to place it anyway, set hubExecution: Allowed in %s", in.Object.ID.Kind, nameOf(choice.Winner)))
	}
	if r := in.forbidden(); r != nil {
		return in.forNoCluster(r.Reason, r.Message)
	}
	return in.follow(choice)
}

// forNoCluster keeps the recorded decision on an object that no cluster may get.
func (in input) forNoCluster(reason, message string) Plan {
	p := in.keep(metav1.ConditionFalse, reason, message)
	p.Placed = true
	return p
}

// forbidden returns the reason for which the object must not be sent to any member. It is nil if the object may be
// sent.
func (in input) forbidden() *tenancy.Refusal {
	if r := tenancy.OfPlace(in.Object.ID, in.selectable().IsOfOperator()); r != nil {
		return r
	}
	return tenancy.OfSecret(in.Object.Template)
}

// choose returns the placement that the object follows, if any. An object that is itself a copy, sent to this cluster
// by another hub, follows no placement.
func (in input) choose() placement.Choice {
	if _, copied := in.Object.Template.GetLabels()[hubv1.HubLabel]; copied {
		return placement.Choice{}
	}
	choice, invalid := placement.Choose(in.selectable().Placed(), in.Facts.Placements, in.Spec().PlacementRef)
	if in.replay != nil {
		in.replay.Choice, in.replay.Invalid = choice, invalid
	}
	return choice
}

func suspended(p hubv1.PlacementObject) bool {
	return p != nil && p.PlacementSpec().Suspend.Scheduling
}

// unselected decides on an object whose placement was deleted or no longer selects it. unselected keeps the recorded
// decision, because an edit of a policy must not delete copies. It withdraws the copies only if a user has requested
// this.
func (in input) unselected(current hubv1.PlacementObject) Plan {
	if in.Binding == nil {
		return Plan{}
	}
	why := "no placement selects the object"
	if ref := in.Spec().PlacementRef; ref != nil {
		why = fmt.Sprintf("%s/%s is deleted", ref.Kind, ref.Name)
		if current != nil {
			why = fmt.Sprintf("%s no longer selects the object", nameOf(current))
		}
	}
	if in.withdrawalAsked() {
		return in.withdrawUnselected(why)
	}
	p := in.keep(metav1.ConditionTrue, hubv1.ReasonPlacementGone, why+": every cluster keeps its copy until a placement selects the object or the object is deleted; hansectl withdraw removes the copies")
	// A binding whose status lists orphaned copies is not removed. The hub has left these copies on members. If a
	// placement selects the object again, the hub finds the copies by this list and adopts them.
	p.Remove = len(p.Spec.Clusters) == 0 && !in.Object.Unconfirmed && len(in.Binding.BindingStatus().Orphaned) == 0
	return p
}

// withdrawalAsked reports whether a user has requested the withdrawal of copies that no placement selects. The object's
// annotation WithdrawAnnotation then has the UID of this binding.
func (in input) withdrawalAsked() bool {
	asked := in.Object.Template.GetAnnotations()[hubv1.WithdrawAnnotation]
	return asked != "" && in.Binding != nil && asked == string(in.Binding.GetUID())
}

// withdrawUnselected withdraws the copies of an object that no placement selects, because the object's annotation
// requests the withdrawal.
func (in input) withdrawUnselected(why string) Plan {
	p := in.withdrawAll(hubv1.ReasonPlacementGone)
	p.Status.Scheduled = condition(metav1.ConditionFalse, hubv1.ReasonPlacementGone,
		why+": it is withdrawn from "+clusterCount(len(p.Spec.Clusters))+" because of its annotation "+hubv1.WithdrawAnnotation)
	return p
}

// follow decides on the object as the chosen placement says.
func (in input) follow(choice placement.Choice) Plan {
	winner := choice.Winner
	staged := winner.PlacementSpec().Rollout != nil
	if in.Set.keeps(staged) {
		return in.keep(metav1.ConditionUnknown, hubv1.ReasonPending, "every cluster keeps its copy until the hub has read which objects the bundle has")
	}
	if !staged {
		in.Set = nil // each object goes to all its clusters at once
	}
	compiled, err := in.Memo.Compile(winner)
	if err != nil {
		return in.keep(metav1.ConditionUnknown, hubv1.ReasonInvalid, fmt.Sprintf("%s is invalid, so every cluster keeps its copy: %v", nameOf(winner), err))
	}
	whenDeleted, whenUnselected := placement.DefaultRemoval(in.Object.ID.GroupKind(), winner.PlacementSpec().Deletion)
	choose, err := in.chooseClusters(compiled, winner.PlacementSpec(), whenUnselected)
	if err != nil {
		return in.keep(metav1.ConditionUnknown, hubv1.ReasonOverrideInvalid, Short("every cluster keeps its copy: "+strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	d, would, claims := choose.decision, choose.unguarded, choose.claims
	chosen := in.chosen(d)
	if in.Set != nil && in.Binding == nil && len(in.Set.Contents) == 0 {
		return Plan{Chosen: chosen, Claims: claims} // no revision of the bundle has the object yet
	}
	d, would = in.inTurn(d), in.inTurn(would)
	p := in.entered(d, would, winner.PlacementSpec(), whenUnselected)
	p.Chosen = chosen
	p.claimFor(winner, would)
	claims.Removals = p.Claims.Removals
	wait, answers := in.answersWait(d, winner.PlacementSpec())
	if claims.Answers = answers; wait > 0 {
		p := in.keep(metav1.ConditionUnknown, hubv1.ReasonKindNotServed, "the decision waits until every selected cluster has reported whether it serves the kind")
		p.Claims.Answers = answers
		p.Again = earlier(p.Again, wait)
		return p
	}
	rest, total, err := in.divide(&p, &d, winner)
	if err != nil {
		p := in.keep(metav1.ConditionFalse, hubv1.ReasonDivisionRefused, fmt.Sprintf("%s is invalid, so every cluster keeps its copy: %v", nameOf(winner), err))
		p.Claims.Answers = answers
		p.Status.OtherPlacements = names(choice.Others)
		return p
	}
	if rest > 0 && !in.noRoom && slices.ContainsFunc(in.evicting(d), in.needsRoom) {
		in.noRoom = true
		return in.follow(choice)
	}
	claims.Evicted, claims.Unreplaced, claims.Blocked = in.evicting(d), in.unreplaced(d), in.drainBlocked(d)
	p.Claims = claims
	p.Again = earlier(p.Again, earlier(d.Again, choose.again))
	in.addReplacements(&p)
	in.refer(&p)
	p.Spec.PlacementRef, p.Spec.Referenced = ReferenceTo(winner), false
	if err := in.stage(&p, winner); err != nil {
		return in.unrevised(err, answers)
	}
	if p.Spec.References, err = in.references(&p, winner); err != nil {
		p := in.keep(metav1.ConditionFalse, hubv1.ReasonReferenceInvalid, fmt.Sprintf("%s has a reference that the hub cannot follow, so every cluster keeps its copy: %v", nameOf(winner), err))
		p.Claims.Answers = answers
		return p
	}
	p.WhenDeleted = whenDeleted
	p.Status.OtherPlacements = names(choice.Others)
	p.Placed = in.isPlaced(d, p, rest)
	p.Status.Decision = explained(d, winner.PlacementSpec().Spread != nil)
	p.Status.Scheduled = withHeld(in.withBlocked(withRest(in.withEarlier(summary(p.Spec, d, len(in.Facts.Clusters)), &p), rest, total), d), p.Claims.Removals, len(would.Targets) == 0)
	return p
}

// isPlaced returns Plan.Placed of the decision d, which leads to the plan p. rest is the number of replicas for which
// no cluster has room.
func (in input) isPlaced(d placement.Decision, p Plan, rest int64) bool {
	waits := p.Claims.EvictionWaits || len(p.Claims.FullDrains) > 0 || p.Claims.Answers != AnswersIrrelevant || len(p.Claims.Removals) > 0
	lacks := rest > 0 || d.Kept || len(d.Targets) == 0 || len(d.Shortfalls) > 0 || len(d.Unmoved) > 0 || len(d.Evict) > 0 || len(d.Missing) > 0
	return !waits && !lacks && in.Set == nil && !in.Object.Unconfirmed
}

// unrevised keeps the current decision, because the current object and policies cannot be stored as a revision of a
// rollout.
func (in input) unrevised(err error, answers Answers) Plan {
	reason := hubv1.ReasonOverrideInvalid
	if errors.Is(err, ErrPayloadTooLarge) || errors.Is(err, overrides.ErrTooLarge) {
		reason = hubv1.ReasonRevisionTooLarge
	}
	p := in.keep(metav1.ConditionFalse, reason, Short("the hub cannot make a new revision for the rollout, so every cluster keeps its copy: "+strings.ReplaceAll(err.Error(), "\n", "; ")))
	p.Claims.Answers = answers
	return p
}

// entered returns a plan with the entries of spec.clusters that the decision d requires. would is the decision that
// package placement makes if package guard permits all removals.
func (in input) entered(d, would placement.Decision, spec *hubv1.PlacementSpec, whenUnselected hubv1.RemovalPolicy) Plan {
	targets, evict, withdrawn := map[string]bool{}, map[string]bool{}, map[string]placement.Rejection{}
	for _, t := range d.Targets {
		targets[t.Cluster] = true
	}
	for _, r := range d.Evict {
		evict[r.Cluster] = true
	}
	for _, r := range slices.Concat(would.Withdraw, d.Withdraw) {
		withdrawn[r.Cluster] = r
	}
	p := in.settle(in.renewing(func(e hubv1.BindingTarget) hubv1.BindingTarget {
		r, unselected := withdrawn[e.Name]
		earlier, outlived := in.outlived(e)
		switch {
		case outlived && targets[e.Name]:
			return earlier
		case outlived && evict[e.Name]:
			return in.absent(e, hubv1.ReasonEvicted, hubv1.RemovalDelete) // other clusters get the object instead
		case targets[e.Name] && e.State == hubv1.TargetEvicting && spec.Replicas.Divides() && !in.isBack(e):
			return e // stays Evicting: other clusters keep its replicas until its copy is healthy
		case targets[e.Name] && (!unselected || r.Reason == hubv1.ReasonClusterLeaving):
			return present(e.Name)
		case evict[e.Name]:
			return in.evicted(in.restored(e), d, whenUnselected, spec)
		case unselected && r.Reason != hubv1.ReasonClusterLeaving: // settle handles clusters that leave
			policy := whenUnselected
			if r.Reason == hubv1.ReasonNotInRevision {
				policy = removalOf(in.Object.ID, spec.Deletion)
			}
			return in.absent(e, r.Reason, policy)
		}
		return in.restored(e)
	}))
	if !in.keepsEarlier(&p) { // the hub writes nothing to a new cluster while the binding records an earlier hub object
		p.Spec.Clusters = append(p.Spec.Clusters, added(p.Spec, d)...)
	}
	slices.SortFunc(p.Spec.Clusters, byName)
	return p
}

// added returns the entries of the chosen clusters that have no entry yet. A chosen cluster with the reason RemovalHeld
// had an entry, which was dropped because the hub gave up the copy. It gets no entry again.
func added(spec *hubv1.BindingSpec, d placement.Decision) []hubv1.BindingTarget {
	var out []hubv1.BindingTarget
	for _, t := range d.Targets {
		if spec.Target(t.Cluster) == nil && t.Reason != hubv1.ReasonRemovalHeld {
			out = append(out, present(t.Cluster))
		}
	}
	return out
}

// clusterChoice is a choice of clusters that respects the limits of the hub.
type clusterChoice struct {
	decision placement.Decision
	// unguarded is the decision that package placement makes if package guard permits all removals.
	unguarded placement.Decision
	claims    Claims
	again     time.Duration // time until a limit may allow more; 0 if an event will tell
}

// drawnAs returns the name by which clusters of equal score are drawn. The objects of a bundle are drawn as their
// bundle, so that they land on the same clusters.
func (in input) drawnAs() string {
	if in.Object.Template != nil {
		if b := hubv1.BundleOf(in.Object.Template); b != nil {
			return b.Namespace + "/" + b.Name
		}
	}
	return in.Object.ID.Namespace + "/" + in.Object.ID.Name
}

// chooseClusters asks package placement for the clusters of the object. The limits of the hub may forbid an eviction,
// or package guard may not have permitted a removal yet. chooseClusters then asks again and keeps the copies concerned.
// It returns an error if the override rules that exclude clusters cannot be read.
func (in input) chooseClusters(by *placement.Compiled, spec *hubv1.PlacementSpec, whenUnselected hubv1.RemovalPolicy) (out clusterChoice, err error) {
	held := in.heldBy()
	ask := placement.Input{
		Placement:  by,
		Object:     in.Object.hub(),
		ObjectName: in.drawnAs(),
		Clusters:   in.snapshot(held),
		Held:       held,
		Evicting:   evictingOf(in.Spec()),
		Divided:    spec.Replicas.Divides(),
		Now:        in.Now,
	}
	if in.Limits != nil {
		ask.MaxAway = in.Limits.MaxAway
	}
	if ask.Excluded, err = in.exclusions(); err != nil {
		return out, err
	}
	d := in.askWithinLimits(&ask, &out)
	out.decision, out.unguarded = d, d
	if ask.Keep = in.unreleased(d, whenUnselected); ask.Keep == nil {
		return out, nil
	}
	d = in.askWithinLimits(&ask, &out)
	for i := range d.Targets {
		if t := &d.Targets[i]; ask.Keep[t.Cluster] {
			t.Reason = hubv1.ReasonRemovalHeld
		}
	}
	out.decision = d
	return out, nil
}

// askWithinLimits asks package placement for a decision. If the limits of the hub forbid an eviction in the decision,
// askWithinLimits asks again without this eviction. Package placement may then choose to evict from another cluster.
func (in input) askWithinLimits(ask *placement.Input, out *clusterChoice) placement.Decision {
	for {
		d := in.ask(*ask)
		hold, again := in.limited(d, ask.Hold, &out.claims)
		if hold == nil {
			return d
		}
		out.again = earlier(out.again, again)
		maps.Copy(hold, ask.Hold)
		ask.Hold = hold
	}
}

func (in input) ask(ask placement.Input) placement.Decision {
	if in.replay == nil {
		return placement.Decide(ask)
	}
	d, trace := placement.Explain(ask)
	in.replay.Input, in.replay.Decision, in.replay.Trace = &ask, d, trace
	return d
}

// withdrawAll makes every entry Absent with this reason. Entries that are already Absent do not change. While package
// guard has not permitted the removal of a Present copy, Evicting copies stay as well: the Present copy may not be
// ready to replace them.
func (in input) withdrawAll(reason string) Plan {
	policy := in.whenDeleted()
	waits := slices.ContainsFunc(in.Spec().Clusters, func(e hubv1.BindingTarget) bool {
		return in.isGuarded(e, in.absent(e, reason, policy))
	})
	p := in.settle(func(e hubv1.BindingTarget) hubv1.BindingTarget {
		if e.State == hubv1.TargetAbsent || e.State == hubv1.TargetEvicting && waits {
			return e
		}
		return in.absent(e, reason, policy)
	})
	p.WhenDeleted, p.Remove = policy, len(p.Spec.Clusters) == 0
	return p
}

// withdrawEverywhere withdraws all copies of a deleted object. If a bundle exists and no longer contains the object,
// the copies stay until package guard permits their removal.
func (in input) withdrawEverywhere() Plan {
	p := in.withdrawAll(hubv1.ReasonObjectDeleted)
	why := "the object is deleted"
	if in.Object.CutFrom != nil {
		why = in.Object.CutFrom.String() + " no longer contains the object"
	}
	if len(p.Claims.Removals) == 0 {
		p.Status.Scheduled = condition(metav1.ConditionFalse, hubv1.ReasonObjectDeleted, why+": it is withdrawn from "+clusterCount(len(p.Spec.Clusters)))
		return p
	}
	if followed := in.Facts.Placement(in.Spec().PlacementRef); followed != nil && followed.PlacementSpec().AllowEmpty {
		for i := range p.Claims.Removals {
			p.Claims.Removals[i].Last = false
		}
	}
	p.Status.Scheduled = withHeld(condition(metav1.ConditionTrue, hubv1.ReasonRemovalHeld, why), p.Claims.Removals, false)
	return p
}

// whenDeleted returns the removal policy for the copies of a deleted object. The policy comes from the object's
// placement, or from the binding if the placement was deleted.
func (in input) whenDeleted() hubv1.RemovalPolicy {
	if followed := in.Facts.Placement(in.Spec().PlacementRef); followed != nil {
		policy, _ := placement.DefaultRemoval(in.Object.ID.GroupKind(), followed.PlacementSpec().Deletion)
		return policy
	}
	return in.recordedPolicy()
}

// keep returns a plan that keeps the recorded decision, with a condition Scheduled of this status, reason and message.
// Only the entries of leaving clusters change. If the object was deleted and exists again, keep also cancels the
// withdrawals that the deletion caused.
func (in input) keep(status metav1.ConditionStatus, reason, message string) Plan {
	c := condition(status, reason, message)
	if in.Binding == nil {
		return Plan{Status: Status{Scheduled: c}}
	}
	p := in.settle(func(e hubv1.BindingTarget) hubv1.BindingTarget {
		if in.Object.State == Exists {
			return in.restored(e)
		}
		return e
	})
	if in.Object.State == Exists {
		in.refer(&p)
		c = in.withEarlier(c, &p)
	}
	p.WhenDeleted = in.recordedPolicy()
	p.Status.Decision = in.Binding.BindingStatus().Decision
	p.Status.Scheduled = c
	return p
}

func (in input) objectRef() hubv1.ObjectReference { return ReferenceOf(in.Object.Template) }

// ReferenceOf returns the reference to a hub object, as bindings store it.
func ReferenceOf(template *unstructured.Unstructured) hubv1.ObjectReference {
	ref := hubv1.ObjectReference{APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Name: template.GetName(), UID: template.GetUID()}
	if b := hubv1.BundleOf(template); b != nil {
		ref.Bundle = &b.BundleReference
	}
	return ref
}

func (in input) recordedPolicy() hubv1.RemovalPolicy {
	standard, _ := placement.DefaultRemoval(in.Object.ID.GroupKind(), hubv1.DeletionPolicy{})
	return cmp.Or(hubv1.RemovalPolicy(in.Binding.GetAnnotations()[WhenDeletedAnnotation]), standard)
}

// ReferenceTo returns the reference to a placement, as bindings store it.
func ReferenceTo(p hubv1.PlacementObject) *hubv1.PlacementReference {
	return &hubv1.PlacementReference{Kind: kindOf(p), Namespace: p.GetNamespace(), Name: p.GetName(), UID: p.GetUID(), Generation: p.GetGeneration()}
}

func nameOf(p hubv1.PlacementObject) string { return kindOf(p) + "/" + p.GetName() }

// names returns the names of the first ten placements, because a binding's status lists at most ten.
func names(ps []hubv1.PlacementObject) []string {
	var out []string
	for _, p := range ps[:min(len(ps), 10)] {
		out = append(out, nameOf(p))
	}
	return out
}

// earlier returns the shorter of two waits. 0 means that there is no wait; earlier then returns the other wait.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
