package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// same reports whether both revisions have the same template and the same policies.
func same(a, b *hubv1.ObjectRevision) bool {
	return a.Template == b.Template && a.Policies == b.Policies
}

// revision returns the stored revision with this number. It is nil if no such revision is stored.
func (s *step) revision(number int64) *hubv1.ObjectRevision {
	i, found := slices.BinarySearchFunc(s.revisions, number, func(r hubv1.ObjectRevision, n int64) int { return cmp.Compare(r.Number, n) })
	if !found {
		return nil
	}
	return &s.revisions[i]
}

// proven reports whether the revision that the clusters shall get has passed on all clusters before.
func (s *step) proven() bool {
	r := s.revision(s.rollout.Revision)
	return r != nil && r.Passed
}

// previous returns the number of the newest stored revision that has passed and that the change in progress replaces.
// If no other revision has passed, it is the oldest stored one. In most cases this is the object's first revision,
// which needs no approval.
func (s *step) previous() int64 {
	if passed := s.rollout.Passed; passed != s.rollout.Revision && s.revision(passed) != nil {
		return passed
	}
	for _, r := range slices.Backward(s.revisions) {
		if r.Passed && r.Number != s.rollout.Revision {
			return r.Number
		}
	}
	return s.revisions[0].Number
}

// identify finds the stored revision that has the current state of the hub object, or adds a revision. An added
// revision starts a change at the first wave. After a rollback or an undo, the clusters may get another template than
// that of the hub object (see policyChange).
func (s *step) identify() {
	r, live := &s.rollout, s.in.Live
	if newest := s.revision(r.Newest); s.in.Before != nil && newest != nil && same(newest, &live) {
		newest.Generation = live.Generation
		return
	}
	desired := s.policyChange(live)
	switch {
	case desired == nil:
		r.RolledBack = 0
	case r.Failed == r.Newest:
		r.RolledBack = r.Failed
	}
	change := int64(0)
	if desired != nil {
		change = s.add(*desired)
	}
	r.Newest = s.add(live)
	change = cmp.Or(change, r.Newest)
	if s.in.Before == nil {
		r.Revision, r.Phase, r.Began, r.Start = change, hubv1.RolloutProgressing, s.beginning(), hubv1.StartFirst
		return
	}
	s.supersede(change)
	s.start(change)
}

// supersede records that the current change was not complete when another change began. by is the number of the other
// change's revision.
func (s *step) supersede(by int64) {
	r := &s.rollout
	if last := s.revision(r.Revision); last != nil && !last.Passed && r.Failed != last.Number {
		last.SupersededBy = by
	}
}

// policyChange returns the revision that the clusters shall get if only policies have changed since a rollback or an
// undo. It has the new policies, and the template of the revision to which the clusters returned. The result is nil in
// all other cases: the clusters then get the template of the hub object.
func (s *step) policyChange(live hubv1.ObjectRevision) *hubv1.ObjectRevision {
	newest, desired := s.revision(s.rollout.Newest), s.revision(s.rollout.Revision)
	if newest == nil || desired == nil || newest.Template != live.Template || desired.Template == live.Template {
		return nil
	}
	return &hubv1.ObjectRevision{
		Template: desired.Template, Generation: desired.Generation, Policies: live.Policies, TemplateOf: cmp.Or(desired.TemplateOf, desired.Number),
	}
}

// add stores a revision under the next number, and returns this number. If a stored revision has the same content, add
// does not store a second one. The stored one gets the next number instead.
func (s *step) add(added hubv1.ObjectRevision) int64 {
	added.Number, added.Time, added.Passed, added.SupersededBy = s.highest()+1, s.stamp(), false, 0
	s.revisions = slices.DeleteFunc(s.revisions, func(r hubv1.ObjectRevision) bool {
		if !same(&r, &added) {
			return false
		}
		added.Passed = added.Passed || r.Passed
		if r.TemplateOf == 0 {
			added.TemplateOf = 0
		}
		s.renumber(r.Number, added.Number)
		return true
	})
	s.revisions = append(s.revisions, added)
	return added.Number
}

// start begins a change to the given revision at the first wave.
func (s *step) start(revision int64) {
	r := &s.rollout
	r.Revision, r.Failed, r.Began, r.Start = revision, 0, s.beginning(), ""
	r.WaveBegan, r.PassedWaves = nil, nil
	if again := s.revision(revision); again != nil {
		again.SupersededBy = 0
	}
	r.Wave, r.Phase = s.waves[0].Name, hubv1.RolloutProgressing
}

// beginning returns the time of a change that begins now. It is later than each request of a user that was given
// before, and not earlier than a change of the placement that began before, even if the clock of this hub is behind.
func (s *step) beginning() metav1.Time {
	began := latest(s.stamp().Time, latest(s.in.Peers.latest(), s.rollout.Began.Time))
	if given := s.in.Verbs.latest(); !given.Before(began) {
		began = given.Add(time.Second)
	}
	return metav1.NewTime(began)
}

// highest returns the highest revision number that occurs in the stored state or in the reports of clusters.
func (s *step) highest() int64 {
	r := &s.rollout
	n := max(r.Newest, r.Revision, r.Passed, r.Failed, r.RolledBack)
	for i := range s.revisions {
		n = max(n, s.revisions[i].Number)
	}
	for _, t := range s.targets {
		n = max(n, t.Holds, t.Least, t.Row.Revision)
	}
	return n
}

// renumber replaces the number from by the number to, everywhere in the state. Both are numbers of the same revision,
// so that the content on the clusters does not change.
func (s *step) renumber(from, to int64) {
	if s.rollout.Passed == from {
		s.rollout.Passed = to
	}
	if s.rollout.RolledBack == from {
		s.rollout.RolledBack = to
	}
	for i := range s.revisions {
		for _, other := range []*int64{&s.revisions[i].TemplateOf, &s.revisions[i].SupersededBy} {
			if *other == from {
				*other = to
			}
		}
	}
	for _, t := range s.targets {
		if t.Holds == from {
			t.Holds = to
		}
		if t.Least == from {
			t.Least = to
		}
	}
}

// undo follows the request in the object's annotation hanse.dev/rollout-undo: the clusters get the revision that it
// names. undo follows each value of the annotation only once, so that a later change of the object is rolled out as
// usual. If a user removes the annotation, the clusters get the newest revision again.
func (s *step) undo() {
	r := &s.rollout
	if s.in.Undo == r.Undone {
		return
	}
	if s.in.Undo == "" {
		r.Undone = ""
		if r.Revision != r.Newest && r.Failed != r.Newest && r.RolledBack == 0 {
			s.start(r.Newest)
		}
		return
	}
	number, ok := UndoNumber(s.in.Undo)
	switch {
	case !ok:
		s.note = fmt.Sprintf("annotation %s is not the number of a revision", hubv1.RolloutUndoAnnotation)
	case s.revision(number) == nil:
		s.note = fmt.Sprintf("cannot return to revision %d, which is gone: see hansectl rollout history", number)
	case s.in.UndoBlocked != "":
		s.note = s.in.UndoBlocked
		s.reached(s.now.Add(askAgain))
	default:
		r.Undone = s.in.Undo
		if number != r.Revision || r.Failed != 0 || r.RolledBack != 0 {
			r.RolledBack = 0
			if s.start(number); s.proven() {
				r.Start = hubv1.StartReturn
			}
		}
	}
}

// askAgain is the time after which a blocked undo is tried again. The reason for the block may disappear without an
// event.
const askAgain = time.Minute

// maxUndoLength is the maximum length of a value of the annotation hanse.dev/rollout-undo.
const maxUndoLength = 64

// UndoNumber returns the number of the revision in a value of the annotation hanse.dev/rollout-undo. A value may end
// with a time: 3@2026-11-26T10:00:00Z requests revision 3 a second time. The second result is false if the value is
// invalid.
func UndoNumber(value string) (int64, bool) {
	text, _, _ := strings.Cut(value, "@")
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && number > 0 && len(value) <= maxUndoLength
}

// pruned returns the revisions to store: the revisions in use, and the newest other revisions up to
// revisionHistoryLimit.
func (s *step) pruned() []hubv1.ObjectRevision {
	r := &s.rollout
	order := []int64{r.Revision, r.Newest, r.Passed}
	for _, t := range s.targets {
		order = append(order, t.Holds)
	}
	for _, t := range s.targets {
		order = append(order, t.Row.Revision)
	}
	if slices.ContainsFunc(s.waves, func(w hubv1.RolloutWave) bool { return w.Approval == hubv1.ApprovalManual }) {
		order = append(order, s.previous()) // for clusters that join a wave without an approval
	}
	history := int(ptr.Deref(s.in.Policy.RevisionHistoryLimit, 10))
	for _, old := range slices.Backward(s.revisions) {
		if history > 0 && !slices.Contains(order, old.Number) {
			order = append(order, old.Number)
			history--
		}
	}
	keep := map[int64]bool{}
	for _, n := range order {
		if len(keep) < hubv1.MaxRevisions && s.revision(n) != nil {
			keep[n] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.revisions), func(r hubv1.ObjectRevision) bool { return !keep[r.Number] })
}
