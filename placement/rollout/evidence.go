package rollout

import (
	"fmt"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// next returns the index of the next wave, which the change has still to pass. After the last wave, it is an earlier
// wave that no approval covers, if a cluster has joined that wave. The result is the number of waves if there is none.
func (s *step) next() int {
	for w := s.at + 1; w < len(s.waves); w++ {
		if s.passedWave(w) == nil || s.unapproved(w) {
			return w
		}
	}
	for w := range s.at {
		if s.unapproved(w) {
			return w
		}
	}
	return len(s.waves)
}

// passes reports whether the change may leave the wave with index w, which is the current wave. It leaves a wave at
// once if it has passed the wave before, and a cluster of the wave was healthy. The change may have passed the wave
// while it had no clusters. In this case, the wave has to pass again with the clusters that have joined.
func (s *step) passes(w int) bool {
	switch passed := s.passedWave(w); {
	case s.closed(w):
		return false
	case passed != nil && passed.Healthy:
		return true
	}
	return !s.lost() && s.judge(w) == wavePassed
}

// pass records that the change has passed the wave with index w.
func (s *step) pass(w int) {
	if s.passedWave(w) == nil {
		s.rollout.PassedWaves = append(s.rollout.PassedWaves, hubv1.PassedWave{Name: s.waves[w].Name})
	}
	entry := s.passedWave(w)
	entry.Healthy, entry.Approved = entry.Healthy || s.evidence(w), s.covered(w)
}

// passedWave returns the record that the change has passed the wave with index w. It is nil if there is no such record.
func (s *step) passedWave(w int) *hubv1.PassedWave {
	passed := s.rollout.PassedWaves
	i := slices.IndexFunc(passed, func(p hubv1.PassedWave) bool { return p.Name == s.waves[w].Name })
	if i < 0 {
		return nil
	}
	return &passed[i]
}

// evidence reports whether a cluster of the wave shows that the revision works.
func (s *step) evidence(w int) bool {
	for t := range s.members(w) {
		if _, ok := s.passing(t); ok {
			return true
		}
	}
	return false
}

// covered reports whether clusters of the wave with index w may get the revision: the wave needs no approval, or a user
// has approved it for this change.
func (s *step) covered(w int) bool {
	if s.waves[w].Approval != hubv1.ApprovalManual || s.exempt() {
		return true
	}
	passed := s.passedWave(w)
	return passed != nil && passed.Approved || s.covers(s.in.Verbs.Approved(s.waves[w].Name))
}

// unapproved reports whether the wave with index w has a cluster that would get the revision, and no approval.
func (s *step) unapproved(w int) bool {
	if s.covered(w) {
		return false
	}
	for t := range s.members(w) {
		if t.Holds != s.rollout.Revision && !t.Evicting {
			return true
		}
	}
	return false
}

// closed reports whether the wave with index w has no approval, and a cluster of it or of a later wave would get the
// revision. A wave without clusters needs its approval, too: a wrong cluster name in the policy must open no gate.
func (s *step) closed(w int) bool {
	if s.covered(w) {
		return false
	}
	for _, t := range s.targets {
		if t.Wave >= w && t.Holds != s.rollout.Revision && !t.Evicting {
			return true
		}
	}
	return false
}

// entrance returns the index of the first wave that is closed, up to the current wave. A change passes a wave without
// its approval if no cluster needs the revision, and returns to the wave if such a cluster joins a later one.
func (s *step) entrance() int {
	for w := range s.at {
		if s.closed(w) {
			return w
		}
	}
	return s.at
}

// lost reports whether clusters of the current wave have begun to change, and then all clusters of the wave have left
// it. No cluster can then show whether the revision works.
func (s *step) lost() bool {
	if s.rollout.WaveBegan == nil || s.covers(s.in.Verbs.SkippedWave(s.waves[s.at].Name)) {
		return false
	}
	for t := range s.members(s.at) {
		if !s.keepsAside(t) {
			return false
		}
	}
	return true
}

// deserted reports whether the wave has no cluster left that could show whether the revision works: all its clusters
// have left, are replaced or are unreachable. The result is false if a user has skipped the wave or one of its
// clusters.
func (s *step) deserted(w int) bool {
	if s.covers(s.in.Verbs.SkippedWave(s.waves[w].Name)) {
		return false
	}
	for t := range s.members(w) {
		if s.counts(t) || s.skipped(t) {
			return false
		}
	}
	return true
}

// unproven returns a text that names the first wave in which no cluster has shown that the revision works. It is empty
// for a revision that has passed, and for the first revision.
func (s *step) unproven() string {
	r := &s.rollout
	if r.Passed == r.Revision || s.proven() || r.Start == hubv1.StartFirst || s.baseline() {
		return ""
	}
	text := ""
	for w := range s.waves {
		s.pass(w)
		if s.passedWave(w).Healthy || !s.populated(w) || text != "" {
			continue
		}
		text = fmt.Sprintf("no cluster of wave %s has shown that revision %d is healthy", s.waves[w].Name, r.Revision)
		if r.Passed != 0 {
			text += fmt.Sprintf(": a rollback returns to revision %d", r.Passed)
		}
	}
	return text
}

// populated reports whether the wave with index w has a cluster that is not being replaced.
func (s *step) populated(w int) bool {
	for t := range s.members(w) {
		if !t.Evicting {
			return true
		}
	}
	return false
}

// approvedWaves returns the records of waves that a user has approved. They stay with a revision that has passed, so
// that clusters which join these waves get the revision.
func (s *step) approvedWaves() []hubv1.PassedWave {
	var out []hubv1.PassedWave
	for w := range s.waves {
		passed := s.passedWave(w)
		if passed != nil && passed.Approved && s.waves[w].Approval == hubv1.ApprovalManual && s.rollout.Start == "" {
			out = append(out, *passed)
		}
	}
	return out
}
