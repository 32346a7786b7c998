package decide

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// SetInput contains all inputs of one step of the rollout of a bundle as a whole.
type SetInput struct {
	// Spec is the state that the SetRollout stores.
	Spec *hubv1.SetRolloutSpec
	// Lists has the lists of objects, by digest: that of Spec.Newest, and those of the revisions that are in use.
	Lists map[string]SetList
	// Policies is the digest of the list of the newest override rules of the objects in Spec.Newest.
	Policies  string
	Placement hubv1.PlacementObject
	Clusters  []*hubv1.MemberCluster
	// Objects are the objects of all Lists, and the other objects of the bundle that have a binding.
	Objects map[hubv1.ObjectIdentity]SetObject
	// Digests returns the digests by which the binding of an object may name a stored content of the object.
	Digests func(id hubv1.ObjectIdentity, part string) ([]string, error)
	// Undo is the value of the bundle's annotation hanse.dev/rollout-undo. If it requests another revision, Lists has the
	// list of this revision too, or UndoBlocked says why the bundle must not return to it.
	Undo, UndoBlocked string
	Peers             rollout.Peers
	Now               time.Time
}

// SetObject is an object of a bundle.
type SetObject struct {
	// Binding is the binding of the object, or nil if it has none.
	Binding hubv1.BindingObject
	// Followed is true if the binding has followed a SetRollout that is lost since.
	Followed bool
	// Chosen are the clusters on which the placement wants the object, whatever revision of the bundle they hold.
	Chosen map[string]bool
	// Removals has, by cluster, the verdicts of package guard on the removal of the object with a change of the bundle.
	Removals map[string]Verdict
}

// spec returns the spec of the object's binding. It is empty if there is no binding.
func (o SetObject) spec() *hubv1.BindingSpec {
	if o.Binding == nil {
		return &hubv1.BindingSpec{}
	}
	return o.Binding.BindingSpec()
}

// SetPlan is the next state of the rollout of a bundle.
type SetPlan struct {
	Spec *hubv1.SetRolloutSpec
	// Removals are the copies that clusters would lose with their next revision, and that package guard has not permitted
	// yet. The clusters keep their whole revision until then.
	Removals map[hubv1.ObjectIdentity][]Removal
	Progress rollout.Progress
	Again    time.Duration
}

// UndoOfSet returns the revision to which a user wants to return a bundle. undo is the value of the bundle's annotation
// hanse.dev/rollout-undo. It returns nil if no undo is requested, or if the rollout has already returned to it.
func UndoOfSet(spec *hubv1.SetRolloutSpec, undo string) *hubv1.SetRevision {
	number, ok := rollout.UndoNumber(undo)
	if !ok || spec.Rollout == nil || undo == spec.Rollout.Undone {
		return nil
	}
	return spec.Revision(number)
}

// SetInUse returns the numbers of the revisions of a bundle that clusters hold or return to, sorted.
func SetInUse(spec *hubv1.SetRolloutSpec) []int64 {
	numbers := map[int64]bool{}
	if r := spec.Rollout; r != nil {
		numbers[r.Revision], numbers[r.Newest], numbers[r.Passed] = true, true, true
	}
	for _, c := range spec.Clusters {
		numbers[c.Revision], numbers[c.Definitions] = true, true
	}
	maps.DeleteFunc(numbers, func(n int64, _ bool) bool { return spec.Revision(n) == nil })
	return slices.Sorted(maps.Keys(numbers))
}

// setStep is the state of one call of SetStep.
type setStep struct {
	SetInput
	view     *SetView
	removals map[hubv1.ObjectIdentity][]Removal
	kept     map[string]string // clusters whose removals wait, with the reason
	waits    bool              // a removal waits for its first verdict
}

// SetStep returns the next state of the rollout of a bundle as a whole. The bundle is rolled out like one object, whose
// content is the list of its objects. The rollout policy of the placement must not be nil.
//
//   - The report of a cluster about the bundle is the sum of its reports about the objects (rollout.Fold).
//   - A cluster that would lose too many copies with its next revision keeps its whole revision, until a user confirms
//     the removals.
//   - CustomResourceDefinitions only go forward: a cluster that returns to an earlier revision keeps them.
func SetStep(in SetInput) (SetPlan, error) {
	s := setStep{SetInput: in, view: ViewSet(in.Spec, in.Lists), removals: map[hubv1.ObjectIdentity][]Removal{}, kept: map[string]string{}}
	live := hubv1.ObjectRevision{Template: in.Spec.Newest.List, Policies: in.Policies, Generation: in.Spec.Newest.Generation}
	for {
		targets, err := s.targets()
		if err != nil {
			return SetPlan{}, err
		}
		now := metav1.NewTime(in.Now).Rfc3339Copy()
		r := rollout.Step(rollout.Input{
			Names: nameOfSet(in.Placement, in.Spec.Bundle), Policy: in.Placement.PlacementSpec().Rollout, Before: in.Spec.Rollout,
			Revisions: toObjectRevisions(in.Spec.Revisions), Live: live, Targets: targets, Verbs: rollout.VerbsOf(in.Placement), Peers: in.Peers, Now: now.Time,
			Undo: in.Undo, UndoBlocked: in.UndoBlocked,
		})
		if s.holdsMore(r, targets) {
			continue // a cluster that would lose too many copies keeps its revision
		}
		return s.plan(r, targets, now), nil
	}
}

// plan returns the plan for the result of a step.
func (s *setStep) plan(r rollout.Result, targets []rollout.Target, now metav1.Time) SetPlan {
	p := SetPlan{Spec: s.next(r, targets, now), Removals: s.removals, Progress: r.Progress, Again: r.Again}
	p.Progress.Object = s.Spec.Bundle.String()
	before := s.Spec.Rollout
	if s.waits && len(r.Moved) == 0 && r.Rollout.Phase == hubv1.RolloutWaitingForClusters && (before == nil || before.Phase != r.Rollout.Phase) {
		p.Spec, p.Again = s.Spec, earlier(r.Again, time.Second) // the first verdict comes soon: until then, nothing is said
	}
	return p
}

// names returns the clusters that take part in the rollout: those that the placement chooses for an object, and those
// that still have one.
func (s *setStep) names() []string {
	names := map[string]bool{}
	for _, o := range s.Objects {
		for name := range o.Chosen {
			names[name] = true
		}
		for _, e := range o.spec().Clusters {
			names[e.Name] = names[e.Name] || e.State != hubv1.TargetAbsent
		}
	}
	maps.DeleteFunc(names, func(_ string, in bool) bool { return !in })
	return slices.Sorted(maps.Keys(names))
}

// targets returns the clusters in the form that package rollout reads.
func (s *setStep) targets() ([]rollout.Target, error) {
	entries := s.entries()
	var out []rollout.Target
	for _, name := range s.names() {
		m := s.cluster(name)
		t := rollout.Target{Cluster: name, Wave: WaveOf(s.Placement.PlacementSpec().Rollout, m), Kept: cmp.Or(s.keeps(name, m), s.kept[name]), Held: s.kept[name] != ""}
		if before := s.Spec.Cluster(name); before != nil {
			t.Holds, t.KeptHealth = before.Revision, before.KeptHealth
			if before.Since != nil {
				t.Since = before.Since.Time
			}
		} else {
			t.Least = s.least(name)
		}
		t.Evicting = len(entries[name]) > 0
		for _, e := range entries[name] {
			t.Evicting = t.Evicting && e.State == hubv1.TargetEvicting
		}
		parts, err := s.parts(name, t.Holds)
		if err != nil {
			return nil, err
		}
		t.Row = rollout.Fold(t.Holds, t.Since, parts)
		t.Row.Away = m == nil || m.IsAway()
		out = append(out, t)
	}
	return out, nil
}

// entries returns the entries of each cluster in the bindings of the objects, without those that are Absent.
func (s *setStep) entries() map[string][]*hubv1.BindingTarget {
	out := map[string][]*hubv1.BindingTarget{}
	for _, o := range s.Objects {
		spec := o.spec()
		for i := range spec.Clusters {
			if e := &spec.Clusters[i]; e.State != hubv1.TargetAbsent {
				out[e.Name] = append(out[e.Name], e)
			}
		}
	}
	return out
}

// least returns the highest revision of the clusters that a new cluster replaces. It is 0 if the cluster replaces none.
func (s *setStep) least(name string) (revision int64) {
	for _, o := range s.Objects {
		for _, e := range o.spec().Clusters {
			before := s.Spec.Cluster(e.Name)
			if e.State == hubv1.TargetEvicting && before != nil && isReplacement(name, e.Evicting.Replacements) {
				revision = max(revision, before.Revision)
			}
		}
	}
	return revision
}

func (s *setStep) cluster(name string) *hubv1.MemberCluster {
	return Facts{Clusters: s.Clusters}.Cluster(name)
}

// keeps says why a cluster must keep the revision that it has now. It is empty for a cluster that may change.
func (s *setStep) keeps(name string, m *hubv1.MemberCluster) string {
	switch {
	case m == nil:
		return "has no MemberCluster"
	case m.Spec.Unschedulable:
		return "is cordoned: hansectl uncordon " + name
	case s.Placement.PlacementSpec().Suspend.SuspendsWrites(name, m):
		return "is suspended by spec.suspend of the placement: see hansectl resume"
	}
	return ""
}

// parts returns the reports of a cluster about the objects of its revision. It leaves out objects that the placement
// does not want there. While the cluster has newer definitions than its revision, it leaves out the definitions.
func (s *setStep) parts(name string, holds int64) ([]rollout.Part, error) {
	var out []rollout.Part
	entry := s.Spec.Cluster(name)
	for _, id := range s.list(holds).Objects() {
		o := s.Objects[id]
		target := o.spec().Target(name)
		here := target != nil && target.State != hubv1.TargetAbsent
		if !here && o.Chosen != nil && !o.Chosen[name] || entry != nil && entry.Definitions != 0 && NoRollback(id) {
			continue
		}
		part := rollout.Part{Object: id.String(), Needed: operator.Needs(id)}
		var err error
		if part.Wants, err = s.wants(id, o, holds); err != nil {
			return nil, err
		}
		if o.Binding != nil && here {
			part.Row = rowOf(o.Binding.BindingStatus().Row(name), target.Revision, false)
		}
		out = append(out, part)
	}
	return out, nil
}

// wants returns the number of the revision of an object that belongs to a revision of the bundle. If the binding does
// not list it yet, the number is one that no cluster reports.
func (s *setStep) wants(id hubv1.ObjectIdentity, o SetObject, revision int64) (int64, error) {
	for _, c := range s.view.Contents(id) {
		if !slices.Contains(c.Numbers, revision) {
			continue
		}
		known, err := c.Known(o.spec(), func() ([]string, error) { return s.Digests(id, c.Part) })
		if err != nil || known == nil {
			return -1, err
		}
		return known.Number, nil
	}
	return -1, nil
}

// list returns the list of objects of a revision. It is empty if there is no such revision.
func (s *setStep) list(revision int64) SetList {
	if r := s.Spec.Revision(revision); r != nil {
		return s.Lists[r.List]
	}
	return nil
}

// holdsMore adds to the clusters that keep their revision those that would lose copies in this step, although package
// guard has not permitted the removals. It returns true if there are more of them. The objects that a failed change
// has added go without a verdict when it is rolled back.
func (s *setStep) holdsMore(r rollout.Result, targets []rollout.Target) bool {
	more := false
	if r.Rollout.Failed != 0 && r.Rollout.Failed != r.Rollout.Revision {
		return false
	}
	for _, t := range targets {
		next := r.Holds[t.Cluster]
		if t.Kept != "" || t.Holds == 0 || next == t.Holds || !slices.Contains(r.Moved, t.Cluster) {
			continue
		}
		if why := s.losses(t.Cluster, s.lists(r)[next]); why != "" {
			s.kept[t.Cluster], more = why, true
		}
	}
	return more
}

// lists returns the lists of the revisions in the result of a step, by number.
func (s *setStep) lists(r rollout.Result) map[int64]SetList {
	out := map[int64]SetList{}
	for _, revision := range r.Revisions {
		out[revision.Number] = s.Lists[revision.Template]
	}
	return out
}

// losses records the removals on a cluster that gets another list of objects, and says why the cluster keeps its
// revision. It is empty if package guard permits all removals, or if there are none.
func (s *setStep) losses(cluster string, next SetList) string {
	why := ""
	asks := OwnerOf(ReferenceTo(s.Placement))
	deletion := s.Placement.PlacementSpec().Deletion
	for id, o := range s.Objects {
		e := o.spec().Target(cluster)
		if _, stays := next[id]; stays || e == nil || e.State != hubv1.TargetPresent || removalOf(id, deletion) != hubv1.RemovalDelete {
			continue
		}
		c := Removal{
			Cluster: cluster, Reason: hubv1.ReasonNotInRevision, Message: "the bundle no longer contains the object", Owner: OwnerOfBundle(s.Spec.Bundle), Placement: asks,
		}
		v := o.Removals[cluster]
		switch {
		case v.Released && v.Reason == hubv1.ReasonNotInRevision:
		case v.HeldSince != nil:
			c.Held = true
			why = cmp.Or(why, "waits for a confirmation of the removal of objects: see hansectl confirm")
		default:
			s.waits = true
			why = cmp.Or(why, "waits until the hub has judged the removal of objects")
		}
		s.removals[id] = append(s.removals[id], c)
	}
	return why
}

// next returns the SetRollout's next spec.
func (s *setStep) next(r rollout.Result, targets []rollout.Target, now metav1.Time) *hubv1.SetRolloutSpec {
	spec := s.Spec.DeepCopy()
	spec.PlacementRef = ReferenceTo(s.Placement)
	if before := s.Spec.PlacementRef; before != nil && before.UID == spec.PlacementRef.UID {
		spec.PlacementRef.Generation = before.Generation
	}
	spec.Revisions, spec.Rollout, spec.Clusters = toSetRevisions(r.Revisions), &r.Rollout, nil
	began := now // the clock of the leader that began the change may have been ahead
	if now.Before(&r.Rollout.Began) {
		began = r.Rollout.Began
	}
	for _, t := range targets {
		c := hubv1.SetCluster{Name: t.Cluster, Revision: r.Holds[t.Cluster], KeptHealth: r.KeptHealth[t.Cluster]}
		before := s.Spec.Cluster(t.Cluster)
		switch {
		case slices.Contains(r.Moved, t.Cluster), before == nil && s.Spec.Rollout != nil:
			c.Since = &began
		case before != nil:
			c.Since = before.Since
		}
		if before != nil {
			c.Adopted, c.Definitions = before.Adopted, s.definitions(spec, *before, c.Revision)
		}
		spec.Clusters = append(spec.Clusters, c)
	}
	return spec
}

// definitions returns the revision whose definitions a cluster keeps, because they are newer than those of its
// revision. It returns 0 if there is no such revision. The spec keeps this revision.
func (s *setStep) definitions(spec *hubv1.SetRolloutSpec, before hubv1.SetCluster, holds int64) int64 {
	newest := s.Spec.Revision(before.Definitions)
	if held := s.Spec.Revision(before.Revision); newest == nil || held != nil && listNumber(held) > listNumber(newest) {
		newest = held
	}
	next := spec.Revision(holds)
	if newest == nil || next == nil || next.List == newest.List {
		return 0
	}
	for i := range spec.Revisions {
		if r := &spec.Revisions[i]; r.List == newest.List && r.Policies == newest.Policies {
			if listNumber(r) <= listNumber(next) {
				return 0
			}
			return r.Number
		}
	}
	if listNumber(newest) <= listNumber(next) {
		return 0
	}
	spec.Revisions = append(spec.Revisions, *newest)
	slices.SortFunc(spec.Revisions, func(a, b hubv1.SetRevision) int { return cmp.Compare(a.Number, b.Number) })
	return newest.Number
}

// listNumber orders the lists of revisions by age. A revision with the list of an earlier one is as old as that one.
func listNumber(r *hubv1.SetRevision) int64 { return cmp.Or(r.ListOf, r.Number) }
