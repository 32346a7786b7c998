package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/tenancy"
)

// plan is what one decision asks for, with its reasons.
type plan struct {
	// spec is nil if there shall be no binding.
	spec *hubv1.BindingSpec
	// whenDeleted is what becomes of the copies should the object and its placement be deleted together.
	whenDeleted hubv1.RemovalPolicy
	// remove is true if nothing is left to be done on any cluster and nothing is to come.
	remove bool
	// takes is true if something is taken from a cluster, or given up there, other than what the cluster has confirmed.
	takes bool
	// left says which copies are given up, "cluster: why".
	left []string

	scheduled metav1.Condition
	rejected  *hubv1.DecisionStatus
	others    []string

	// leaves are the clusters whose place others take from now on; stays are drained ones that the object cannot leave, with the reason.
	leaves []string
	stays  map[string]string
	// waits is true if the object waits for its turn to be moved.
	waits bool

	// claims are the copies that are to go and have not been released.
	claims []claim

	// again is when time alone may change the decision; 0 if it cannot.
	again time.Duration
}

// decide returns what shall be, from what is. It is pure.
func decide(f facts) plan {
	if f.binding == nil && f.fate != alive {
		return plan{}
	}
	switch f.fate {
	case gone:
		return f.withdrawEverywhere()
	case unread, undecided:
		p := f.keep(metav1.ConditionUnknown, hubv1.ReasonTemplateMissing, "the object cannot be read, every cluster keeps what it has: "+f.why)
		if f.fate == undecided {
			p.again = earlier(p.again, 5*time.Minute)
		}
		return p
	}
	choice := f.choose()
	current := f.world.placement(f.spec().PlacementRef)
	switch {
	case choice.Winner == nil:
		return f.unselected(current)
	case suspended(choice.Winner), suspended(current) && !placement.Outranks(choice.Winner, current):
		p := f.keep(metav1.ConditionTrue, hubv1.ReasonSuspended, "scheduling is suspended by the placement: every cluster keeps what it has")
		p.others = names(choice.Others)
		return p
	case f.refused && choice.Winner.PlacementSpec().HubExecution != hubv1.HubExecutionAllowed:
		return f.keep(metav1.ConditionFalse, hubv1.ReasonHubWouldRun, fmt.Sprintf(
			"the hub itself would act on a %s: set hubExecution: Allowed in %s to place it all the same", f.id.Kind, nameOf(choice.Winner)))
	}
	if r := f.forbidden(); r != nil {
		return f.keep(metav1.ConditionFalse, r.Reason, r.Message)
	}
	return f.follow(choice)
}

// forbidden is why the object is never brought to a member, nil if it may be.
func (f facts) forbidden() *tenancy.Refusal {
	if r := tenancy.OfPlace(f.id); r != nil {
		return r
	}
	return tenancy.OfSecret(f.template)
}

// choose finds the placement to follow. A copy that another hub sent here is no template.
func (f facts) choose() placement.Choice {
	if _, copied := f.template.GetLabels()[hubv1.HubLabel]; copied {
		return placement.Choice{}
	}
	choice, invalid := placement.Choose(f.selectable(), f.world.placements, f.spec().PlacementRef)
	if f.replayed != nil {
		f.replayed.Choice, f.replayed.Invalid = choice, invalid
	}
	return choice
}

func suspended(p hubv1.PlacementObject) bool {
	return p != nil && p.PlacementSpec().Suspend.Scheduling
}

// unselected keeps the decision of a placement that is gone or no longer selects the object: editing a policy is no fleet delete.
func (f facts) unselected(current hubv1.PlacementObject) plan {
	if f.binding == nil {
		return plan{}
	}
	why := "no placement selects the object any more"
	if ref := f.spec().PlacementRef; ref != nil {
		why = fmt.Sprintf("%s/%s is gone", ref.Kind, ref.Name)
		if current != nil {
			why = fmt.Sprintf("%s no longer selects the object", nameOf(current))
		}
	}
	if asked := f.template.GetAnnotations()[hubv1.WithdrawAnnotation]; asked != "" && asked == string(f.binding.GetUID()) {
		return f.withdrawUnselected(why)
	}
	p := f.keep(metav1.ConditionTrue, hubv1.ReasonPlacementGone, why+": every cluster keeps what it has until a placement selects the object again or it is deleted; hansectl withdraw removes the copies")
	// What it has left on clusters, it takes back there should a placement select the object again.
	p.remove = len(p.spec.Clusters) == 0 && !f.holdBack && len(f.binding.BindingStatus().Orphaned) == 0
	return p
}

// withdrawUnselected takes the copies of an object away that no placement selects, because its user asked for it.
func (f facts) withdrawUnselected(why string) plan {
	policy := f.whenDeleted()
	p := f.settle(func(e hubv1.BindingTarget) hubv1.BindingTarget {
		if e.State == hubv1.TargetAbsent {
			return e
		}
		return f.absent(e, hubv1.ReasonPlacementGone, policy)
	})
	p.whenDeleted = policy
	p.remove = len(p.spec.Clusters) == 0
	p.scheduled = condition(metav1.ConditionFalse, hubv1.ReasonPlacementGone,
		why+": it is withdrawn from "+clusterCount(len(p.spec.Clusters))+", as its annotation "+hubv1.WithdrawAnnotation+" asks")
	return p
}

// follow asks the placement which clusters shall hold the object.
func (f facts) follow(choice placement.Choice) plan {
	winner := choice.Winner
	compiled, err := f.memory.compile(winner)
	if err != nil {
		return f.keep(metav1.ConditionUnknown, hubv1.ReasonInvalid, fmt.Sprintf("%s cannot be followed, every cluster keeps what it has: %v", nameOf(winner), err))
	}
	whenDeleted, whenUnselected := placement.DefaultRemoval(f.id.GroupKind(), winner.PlacementSpec().Deletion)
	d, would, waits, err := f.chosen(compiled, winner.PlacementSpec(), whenUnselected)
	if err != nil {
		return f.keep(metav1.ConditionUnknown, hubv1.ReasonOverrideInvalid, short("every cluster keeps what it has: "+strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	p := f.entered(d, would, winner.PlacementSpec(), whenUnselected)
	p.claimFor(winner, would)
	if wait := f.unanswered.wait(f, d, winner.PlacementSpec()); wait > 0 {
		p := f.keep(metav1.ConditionUnknown, hubv1.ReasonKindNotServed, "clusters and shares are chosen when every selected cluster has said whether it serves the kind")
		p.again = earlier(p.again, wait)
		return p
	}
	rest, total, err := f.divide(&p, &d, winner)
	if err != nil {
		p := f.keep(metav1.ConditionFalse, hubv1.ReasonDivisionRefused, fmt.Sprintf("%s cannot be followed, every cluster keeps what it has: %v", nameOf(winner), err))
		p.others = names(choice.Others)
		return p
	}
	if rest > 0 && !f.noRoom && slices.ContainsFunc(f.leaves(d), f.isDrained) {
		f.noRoom = true
		return f.follow(choice)
	}
	p.leaves, p.stays, p.waits = f.leaves(d), f.stays(d), waits > 0
	p.again = earlier(p.again, earlier(d.Again, waits))
	f.replace(&p)
	p.spec.ObjectRef = f.objectRef()
	p.spec.PlacementRef = refTo(winner)
	p.whenDeleted = whenDeleted
	p.others = names(choice.Others)
	p.rejected = explained(d, winner.PlacementSpec().Spread != nil)
	p.scheduled = f.withHeld(f.withUnmoved(withRest(summary(p.spec, d, len(f.world.clusters)), rest, total), d), p, len(would.Targets) == 0)
	return p
}

// entered settles the entries as a decision on clusters says. would is the decision that keeps no copy until its removal is released.
func (f facts) entered(d, would placement.Decision, spec *hubv1.PlacementSpec, whenUnselected hubv1.RemovalPolicy) plan {
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
	p := f.settle(func(e hubv1.BindingTarget) hubv1.BindingTarget {
		r, unselected := withdrawn[e.Name]
		switch {
		case targets[e.Name] && e.State == hubv1.TargetEvicting && spec.Replicas.Divides() && !f.isBack(e):
			return e // what it had of the replicas, others have until it is well
		case targets[e.Name] && (!unselected || r.Reason == hubv1.ReasonClusterLeaving):
			return present(e.Name)
		case evict[e.Name]:
			return f.evicted(restored(e), whenUnselected, spec)
		case unselected && r.Reason != hubv1.ReasonClusterLeaving: // leaving is settled for every kind of decision
			return f.absent(e, r.Reason, whenUnselected)
		}
		return restored(e)
	})
	for _, t := range d.Targets {
		if p.spec.Target(t.Cluster) == nil && t.Reason != hubv1.ReasonRemovalHeld { // whose copy was given up
			p.spec.Clusters = append(p.spec.Clusters, present(t.Cluster))
		}
	}
	slices.SortFunc(p.spec.Clusters, byName)
	return p
}

// chosen asks which clusters shall hold the object. If it is to leave one before it may, it is asked again; waits is for how long that is. So it is if
// copies are to go that have not been released; would is the decision without them. An error means that nobody can tell which clusters are excluded.
func (f facts) chosen(by *placement.Compiled, spec *hubv1.PlacementSpec, whenUnselected hubv1.RemovalPolicy) (d, would placement.Decision, waits time.Duration, err error) {
	held := held(f.spec())
	in := placement.Input{
		Placement: by,
		Kind:      f.template.GroupVersionKind(),
		Clusters:  f.world.snapshot(f.memory, f.id.Namespace, held),
		Held:      held,
		Evicting:  evicting(f.spec()),
		Divided:   spec.Replicas.Divides(),
		MostAway:  f.mostAway,
		Now:       f.now,
	}
	if in.Excluded, err = f.exclusions(); err != nil {
		return d, would, 0, err
	}
	d = f.asked(in)
	if in.Hold, waits = f.notYet(d); in.Hold != nil {
		d = f.asked(in)
	}
	would = d
	if in.Keep = f.unreleased(would, whenUnselected); in.Keep == nil {
		return d, would, waits, nil
	}
	d = f.asked(in)
	if more, wait := f.notYet(d); more != nil { // others are to leave, now that these stay
		in.Hold, waits = more, earlier(waits, wait)
		d = f.asked(in)
	}
	for i := range d.Targets {
		if t := &d.Targets[i]; in.Keep[t.Cluster] {
			t.Reason = hubv1.ReasonRemovalHeld
		}
	}
	return d, would, waits, nil
}

func (f facts) asked(in placement.Input) placement.Decision {
	if f.replayed == nil {
		return placement.Decide(in)
	}
	d, trace := placement.Explain(in)
	f.replayed.Input, f.replayed.Decision, f.replayed.Trace = &in, d, trace
	return d
}

// withdrawEverywhere is the end of an object.
func (f facts) withdrawEverywhere() plan {
	whenDeleted := f.whenDeleted()
	p := f.settle(func(e hubv1.BindingTarget) hubv1.BindingTarget {
		if e.State == hubv1.TargetAbsent {
			return e
		}
		return f.absent(e, hubv1.ReasonObjectDeleted, whenDeleted)
	})
	p.whenDeleted = whenDeleted
	p.remove = len(p.spec.Clusters) == 0
	p.scheduled = condition(metav1.ConditionFalse, hubv1.ReasonObjectDeleted, "the object is deleted: it is withdrawn from "+clusterCount(len(p.spec.Clusters)))
	return p
}

// whenDeleted is what becomes of the copies when the object goes: as its placement says or, if that is gone, as it said last.
func (f facts) whenDeleted() hubv1.RemovalPolicy {
	if followed := f.world.placement(f.spec().PlacementRef); followed != nil {
		policy, _ := placement.DefaultRemoval(f.id.GroupKind(), followed.PlacementSpec().Deletion)
		return policy
	}
	return f.recordedPolicy()
}

// keep leaves the decision as it is, but for clusters that leave, and for copies that were about to go with an object that is back.
func (f facts) keep(status metav1.ConditionStatus, reason, message string) plan {
	c := condition(status, reason, message)
	if f.binding == nil {
		return plan{scheduled: c}
	}
	p := f.settle(func(e hubv1.BindingTarget) hubv1.BindingTarget {
		if f.fate == alive {
			return restored(e)
		}
		return e
	})
	if f.fate == alive {
		p.spec.ObjectRef = f.objectRef()
	}
	p.whenDeleted = f.recordedPolicy()
	p.rejected = f.binding.BindingStatus().Decision
	p.scheduled = c
	return p
}

func (f facts) objectRef() hubv1.ObjectReference {
	return hubv1.ObjectReference{APIVersion: f.template.GetAPIVersion(), Kind: f.id.Kind, Name: f.id.Name, UID: f.template.GetUID()}
}

func (f facts) recordedPolicy() hubv1.RemovalPolicy {
	standard, _ := placement.DefaultRemoval(f.id.GroupKind(), hubv1.DeletionPolicy{})
	return cmp.Or(hubv1.RemovalPolicy(f.binding.GetAnnotations()[whenDeletedAnnotation]), standard)
}

func refTo(p hubv1.PlacementObject) *hubv1.PlacementReference {
	return &hubv1.PlacementReference{Kind: kindOf(p), Namespace: p.GetNamespace(), Name: p.GetName(), UID: p.GetUID(), Generation: p.GetGeneration()}
}

func nameOf(p hubv1.PlacementObject) string { return kindOf(p) + "/" + p.GetName() }

// names of at most as many placements as a status may hold.
func names(ps []hubv1.PlacementObject) []string {
	var out []string
	for _, p := range ps[:min(len(ps), 10)] {
		out = append(out, nameOf(p))
	}
	return out
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: hubv1.ConditionScheduled, Status: status, Reason: reason, Message: message}
}

// inWords is how a count of rejected clusters reads.
var inWords = map[string]string{
	hubv1.ReasonNotSelected:         "not selected",
	hubv1.ReasonExcluded:            "excluded",
	hubv1.ReasonExcludedByOverride:  "excluded by override policies",
	hubv1.ReasonUnschedulable:       "unschedulable",
	hubv1.ReasonTaintNotTolerated:   "tainted",
	hubv1.ReasonNamespaceNotAllowed: "not open to the namespace",
	hubv1.ReasonClusterNotReady:     "not ready",
	hubv1.ReasonClusterLeaving:      "leaving",
	hubv1.ReasonNoReplicas:          "without a share of the replicas",
	hubv1.ReasonExpressionFalse:     "do not meet the expression",
	hubv1.ReasonExpressionFailed:    "have no answer to the expression",
	hubv1.ReasonKindNotServed:       "do not serve the kind",
	hubv1.ReasonVersionNotServed:    "do not serve the version",
	hubv1.ReasonTopologyMissing:     "in no domain",
	hubv1.ReasonOtherAffinityGroup:  "in other affinity groups",
	hubv1.ReasonNotChosen:           "not needed",
	hubv1.ReasonSpreadConstraint:    "beyond a spread constraint",
	hubv1.ReasonSpreadUnsatisfied:   "wait for the spread to be satisfied",
	hubv1.ReasonDraining:            "drained",
	hubv1.ReasonEvicting:            "replaced by others",
}

// summary reads "3 of 12 clusters: 6 not selected, 2 tainted".
func summary(spec *hubv1.BindingSpec, d placement.Decision, clusters int) metav1.Condition {
	selected := 0
	for _, e := range spec.Clusters {
		if e.State == hubv1.TargetPresent {
			selected++
		}
	}
	message := fmt.Sprintf("%d of %s", selected, clusterCount(clusters))
	var parts []string
	for _, r := range rejections(d) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Count, cmp.Or(inWords[r.Reason], r.Reason)))
	}
	if len(d.Missing) > 0 {
		parts = append(parts, fmt.Sprintf("%d without a MemberCluster", len(d.Missing)))
	}
	if len(parts) > 0 {
		message += ": " + strings.Join(parts, ", ")
	}
	if d.Group != "" {
		message += "; affinity group " + d.Group
	}
	short := false
	for _, s := range d.Shortfalls {
		message += "; " + s.Message
		short = short || s.Serious
	}
	if d.Kept {
		message += "; every cluster keeps what it has"
	}
	switch {
	case selected == 0 && !d.Kept:
		return condition(metav1.ConditionFalse, hubv1.ReasonNoClusterSelected, message)
	case short:
		return condition(metav1.ConditionFalse, hubv1.ReasonSpreadUnsatisfied, message)
	}
	return condition(metav1.ConditionTrue, hubv1.ReasonScheduled, message)
}

// explained is what the binding's status keeps of a decision; nil if there is nothing to say.
func explained(d placement.Decision, spreads bool) *hubv1.DecisionStatus {
	const named = 100
	out := &hubv1.DecisionStatus{Rejected: rejections(d)}
	for _, t := range d.Targets {
		if len(out.Reasons) < named && (spreads || t.Reason != hubv1.ReasonScheduled) {
			out.Reasons = append(out.Reasons, hubv1.ChosenCluster{Cluster: t.Cluster, Reason: t.Reason, Score: t.Score})
		}
	}
	if out.Rejected == nil && out.Reasons == nil {
		return nil
	}
	return out
}

// rejections counts the clusters without the object by reason, the most frequent reason first.
func rejections(d placement.Decision) []hubv1.RejectedClusters {
	const named = 20
	byReason := map[string]*hubv1.RejectedClusters{}
	all := slices.Concat(d.Rejected, d.Withdraw)
	for _, r := range d.Evict {
		all = append(all, placement.Rejection{Cluster: r.Cluster, Reason: hubv1.ReasonEvicting, Message: r.Message})
	}
	slices.SortFunc(all, func(a, b placement.Rejection) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for _, r := range all {
		group := byReason[r.Reason]
		if group == nil {
			group = &hubv1.RejectedClusters{Reason: r.Reason}
			byReason[r.Reason] = group
		}
		if group.Count++; len(group.Examples) < named {
			group.Examples = append(group.Examples, r.Cluster+": "+r.Message)
		}
	}
	var out []hubv1.RejectedClusters
	for _, reason := range sets.List(sets.KeySet(byReason)) {
		out = append(out, *byReason[reason])
	}
	slices.SortStableFunc(out, func(a, b hubv1.RejectedClusters) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

func clusterCount(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

// earlier of two waits, of which 0 means never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
