package rollout

import (
	"time"

	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// gate is the healthGate of a policy with its defaults.
type gate struct {
	timeout, observed time.Duration
	skipAway          bool
}

// doubt is how long the state of a row must last if the row is older than the decision to change the cluster. Such a
// row may describe another revision.
const doubt = time.Minute

func newGate(p *hubv1.RolloutPolicy) gate {
	return gate{
		timeout:  seconds(ptr.Deref(p.HealthGate.TimeoutSeconds, 900)),
		observed: seconds(ptr.Deref(p.HealthGate.MinObservedSeconds, 60)),
		skipAway: p.HealthGate.Unreachable == hubv1.UnreachableSkip,
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// counts reports whether the wave of a cluster waits for this cluster. A rollback never waits for a cluster that does
// not answer.
func (s *step) counts(t *target) bool {
	away := t.Row.Away && (s.gate.skipAway || s.rollingBack())
	evicting := t.Evicting && (s.rollingBack() || !s.began(t))
	return !t.Kept && !evicting && !away && !s.covers(s.in.Verbs.Skipped(t.Cluster))
}

// covers reports whether a user's request, made at the time verb, applies to the change in progress.
func (s *step) covers(verb time.Time) bool {
	return !verb.IsZero() && !verb.Before(s.rollout.Began.Time)
}

// healthy reports whether the last row shows that the cluster holds the desired revision and is healthy.
func (s *step) healthy(t *target) bool {
	row := &t.Row
	return t.Holds == s.rollout.Revision && row.Revision == s.rollout.Revision &&
		row.Applied && row.Health == hubv1.HealthHealthy && !row.PassingSince.IsZero() && !row.Away
}

// passing returns the time since which the cluster meets the healthGate. ok is false if the cluster does not meet it.
func (s *step) passing(t *target) (since time.Time, ok bool) {
	if !s.healthy(t) {
		return time.Time{}, false
	}
	passing := t.Row.PassingSince
	var wait time.Duration
	if !t.Row.Observes {
		wait = s.gate.observed
	}
	since = latest(passing, t.Since)
	return since, s.reached(since.Add(s.wait(wait, passing, t.Since)))
}

// wait returns how long the state of a row must last before Step uses it. This is the usual time, or longer if the row
// is older than order, the decision to change the cluster.
func (s *step) wait(usual time.Duration, report, order time.Time) time.Duration {
	switch report.Compare(order) {
	case -1:
		return max(s.gate.observed, doubt)
	case 0: // Stored times have seconds, so the report may be older.
		return max(usual, time.Second)
	}
	return usual
}

// failing reports whether the cluster has failed with the desired revision.
func (s *step) failing(t *target) bool {
	row := &t.Row
	if t.Holds != s.rollout.Revision || row.HeldByMember || s.healthy(t) {
		return false
	}
	start := latest(t.Since, s.rollout.Began.Time)
	if t.Since.IsZero() {
		start = latest(row.Changed, s.rollout.Began.Time)
	}
	if s.broken(t) && s.reached(latest(start, row.Changed).Add(s.wait(s.gate.observed, row.Changed, start))) {
		return true
	}
	if t.Since.IsZero() && row.Changed.IsZero() {
		return false // A new entry without a report.
	}
	return s.reached(s.deadline(start, row.Changed))
}

// broken reports whether the row shows that the desired revision does not work on the cluster.
func (s *step) broken(t *target) bool {
	row := &t.Row
	return row.Revision == s.rollout.Revision && !row.Away && (row.Refused || row.Health == hubv1.HealthDegraded)
}

// deadline returns the time by which a cluster must be healthy, or has failed. start is the time at which it began to
// change. If its state changed after the deadline, it was healthy until then, and gets a new deadline.
func (s *step) deadline(start, changed time.Time) time.Time {
	due := start.Add(s.gate.timeout)
	if changed.After(due) {
		return changed.Add(s.gate.timeout)
	}
	return due
}

// began reports whether the cluster's entry got the desired revision during this change.
func (s *step) began(t *target) bool {
	return t.Holds == s.rollout.Revision && !t.Since.Before(s.rollout.Began.Time)
}

// changing reports whether the cluster has begun to change and has neither passed nor failed.
func (s *step) changing(t *target) bool {
	if t.Holds != s.rollout.Revision || !s.counts(t) || s.rollingBack() && !s.began(t) {
		return false
	}
	_, passed := s.passing(t)
	return !passed && !s.failing(t)
}

// moving reports whether at least one cluster of this object is changing.
func (s *step) moving() bool {
	if s.at == len(s.waves) {
		return false
	}
	moving := false
	for _, t := range s.targets {
		if t.Wave <= s.at || s.rollingBack() {
			moving = s.changing(t) || moving
		}
	}
	return moving
}

// failures returns the clusters that stop the change. They belong to the first wave with more failed clusters than the
// wave allows. A failed change continues when these clusters become healthy. After a failure, clusters of the wave that
// are not healthy yet are therefore included.
func (s *step) failures() []*target {
	waves := s.at + 1
	if s.rollingBack() {
		waves = len(s.waves)
	}
	var failed, waiting []*target
	for w := range waves {
		bad, open := s.unwell(w)
		switch most := int(s.waves[w].MaxFailures); {
		case failed == nil && len(bad) > most:
			failed = bad
		case waiting == nil && len(bad)+len(open) > most && s.rollout.Failed == s.rollout.Revision:
			if waiting = bad; len(bad) == 0 {
				waiting = open
			}
		}
	}
	if failed == nil {
		return waiting
	}
	return failed
}

// unwell returns two lists of clusters of a wave: clusters that have failed with the desired revision, and clusters
// that do not meet the healthGate yet.
func (s *step) unwell(w int) (failed, open []*target) {
	for t := range s.counted(w) {
		switch _, passed := s.passing(t); {
		case passed || t.Holds != s.rollout.Revision || s.rollingBack() && !s.began(t):
		case s.failing(t):
			failed = append(failed, t)
		case !t.Row.HeldByMember:
			open = append(open, t)
		}
	}
	return failed, open
}

// verdict is the state of a wave, as judge returns it.
type verdict int

const (
	waveChanges verdict = iota
	waveSoaks
	wavePassed
)

// judge returns the state of a wave.
func (s *step) judge(w int) verdict {
	var since time.Time
	failures, open := 0, false
	for t := range s.counted(w) {
		at, ok := s.passing(t)
		switch {
		case ok:
			since = latest(since, at)
		case s.failing(t):
			failures++
		default:
			open = true
		}
	}
	switch {
	case open || failures > int(s.waves[w].MaxFailures):
		return waveChanges
	case s.proven() || s.reached(since.Add(seconds(s.waves[w].SoakSeconds))):
		return wavePassed
	}
	return waveSoaks
}
