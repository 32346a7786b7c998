package rollout

import (
	"time"

	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// gate is the healthGate of a rollout policy, with defaults. It says when a cluster has passed the change, or has
// failed.
type gate struct {
	timeout, observed time.Duration
	skipAway          bool
}

// staleReportWait is the minimum wait before Step uses a cluster's report that is older than the decision to change the
// cluster. Such a report may describe another revision. The wait begins with the decision, so that the cluster has time
// to send a newer report.
const staleReportWait = time.Minute

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

// counts reports whether the wave of a cluster waits for this cluster. The result is false if a user has skipped the
// cluster or its wave, and if other clusters replace it before it has begun to change. It is false for a cluster that
// does not answer, if the policy says unreachable: Skip. A rollback waits for none of the clusters that do not answer.
// A return, a promotion and the first revision do not wait for clusters that keep their revision, unless a removal
// there waits for a user.
func (s *step) counts(t *target) bool {
	away := t.Row.Away && (s.gate.skipAway || s.rollingBack())
	return !away && !s.keepsAside(t) && !s.skipped(t)
}

// keepsAside reports whether the cluster keeps its current revision, and its wave does not wait for it.
func (s *step) keepsAside(t *target) bool {
	return t.Kept != "" && !t.Held && s.exempt() || t.Evicting && (s.rollingBack() || !s.began(t))
}

// skipped reports whether a user has skipped the cluster or its wave.
func (s *step) skipped(t *target) bool {
	return s.covers(s.in.Verbs.Skipped(t.Cluster)) || s.covers(s.in.Verbs.SkippedWave(s.waves[t.Wave].Name))
}

// covers reports whether a user's request applies to the change in progress. verb is the time of the request, or zero
// if there is none. The request does not apply if the change began later.
func (s *step) covers(verb time.Time) bool {
	return !verb.IsZero() && !verb.Before(s.rollout.Began.Time)
}

// healthy reports whether the cluster has the revision that it shall get, and the cluster's last report says that its
// copy of this revision is healthy.
func (s *step) healthy(t *target) bool {
	row := &t.Row
	return t.Holds == s.rollout.Revision && row.Revision == s.rollout.Revision &&
		row.Applied && row.Health == hubv1.HealthHealthy && !row.PassingSince.IsZero() && !row.Away
}

// passing returns the time since which the cluster passes the healthGate with the revision that it shall get. ok is
// false if the cluster does not pass the healthGate yet.
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

// wait returns how long a reported state must last before Step uses it. report is the time at which the state began,
// and order is the time of the decision to change the cluster. The result is usual if the state is newer than the
// decision. Otherwise it is longer, because the state may belong to another revision.
func (s *step) wait(usual time.Duration, report, order time.Time) time.Duration {
	switch report.Compare(order) {
	case -1:
		return max(s.gate.observed, staleReportWait)
	case 0: // Stored times have seconds, so the report may be older.
		return max(usual, time.Second)
	}
	return usual
}

// failing reports whether the cluster has failed with the revision that it shall get. It has failed if its copy is
// refused or degraded, or did not become healthy in time. A cluster that is cordoned or suspended has failed only if
// its copy was broken before: work on its nodes is no failure of the revision.
func (s *step) failing(t *target) bool {
	row := &t.Row
	if t.Holds != s.rollout.Revision || row.HeldByMember || s.healthy(t) {
		return false
	}
	serviced := t.Kept != "" && !s.exempt()
	if serviced && t.KeptHealth != hubv1.HealthDegraded {
		return false
	}
	start := latest(t.Since, s.rollout.Began.Time)
	if t.Since.IsZero() {
		start = latest(row.Changed, s.rollout.Began.Time)
	}
	if s.broken(t) && s.reached(latest(start, row.Changed).Add(s.wait(s.gate.observed, row.Changed, start))) {
		return true
	}
	if serviced || t.Since.IsZero() && row.Changed.IsZero() {
		return false // no time limit ends the service; a cluster that is new in the binding has reported nothing
	}
	return s.reached(s.deadline(start, row.Changed))
}

// broken reports whether the cluster says that it refuses the revision that it shall get, or that its copy of this
// revision is degraded.
func (s *step) broken(t *target) bool {
	row := &t.Row
	return row.Revision == s.rollout.Revision && !row.Away && (row.Refused || row.Health == hubv1.HealthDegraded)
}

// deadline returns the time at which a cluster counts as failed if it is not healthy by then. start is the time at
// which the cluster began to change, and changed is the time of its last change of state. If changed is later than the
// first deadline, the cluster was healthy until changed. It then gets a new deadline.
func (s *step) deadline(start, changed time.Time) time.Time {
	due := start.Add(s.gate.timeout)
	if changed.After(due) {
		return changed.Add(s.gate.timeout)
	}
	return due
}

// began reports whether the cluster got its present revision, which is the one that it shall have, during the change in
// progress.
func (s *step) began(t *target) bool {
	return t.Holds == s.rollout.Revision && !t.Since.Before(s.rollout.Began.Time)
}

// changing reports whether the cluster has got the revision that it shall get, and has neither passed the healthGate
// nor failed yet. It is false for a cluster for which no wave waits, and for a cluster that keeps its revision.
func (s *step) changing(t *target) bool {
	if t.Holds != s.rollout.Revision || t.Kept != "" || !s.counts(t) || s.rollingBack() && !s.began(t) {
		return false
	}
	_, passed := s.passing(t)
	return !passed && !s.failing(t)
}

// moving reports whether at least one cluster is still changing.
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

// failures returns the clusters because of which the change stops, or nil if it need not stop. They are the failed
// clusters of the first wave with more failures than maxFailures allows. A change that has failed before also stops if
// too many clusters of a wave are failed or not healthy yet. It looks at all waves, because an edit of the waves does
// not end a failure. If the revision has passed before, and only a cluster that has joined still gets it, failures
// looks at the current wave alone.
func (s *step) failures() []*target {
	waves := s.at + 1
	if s.rollout.Failed != 0 {
		waves = len(s.waves)
	}
	var failed, waiting []*target
	for w := range waves {
		if w != s.at && s.rollout.Failed == 0 && s.proven() {
			continue
		}
		bad, open := s.failedAndOpen(w)
		switch maxFailures := int(s.waves[w].MaxFailures); {
		case failed == nil && len(bad) > maxFailures:
			failed = bad
		case waiting == nil && len(bad)+len(open) > maxFailures && s.rollout.Failed == s.rollout.Revision:
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

// failedAndOpen returns two lists of clusters of the wave with index w. failed are the clusters that have failed with
// the revision that they shall get. open are the clusters that have this revision but have not passed the healthGate
// yet. A cordoned or suspended cluster stops only the wave in progress, unless the change has failed already.
func (s *step) failedAndOpen(w int) (failed, open []*target) {
	for t := range s.counted(w) {
		switch _, passed := s.passing(t); {
		case passed || t.Holds != s.rollout.Revision || s.rollingBack() && !s.began(t):
		case t.Kept != "" && w < s.at && s.rollout.Failed == 0:
		case s.failing(t):
			failed = append(failed, t)
		case !t.Row.HeldByMember:
			open = append(open, t)
		}
	}
	return failed, open
}

// verdict is the state of a wave. Its clusters still change (waveChanges), it must stay healthy for soakSeconds
// (waveSoaks), or it has passed (wavePassed).
type verdict int

const (
	waveChanges verdict = iota
	waveSoaks
	wavePassed
)

// judge returns the state of the wave with index w.
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
	case s.exempt() || s.reached(since.Add(seconds(s.waves[w].SoakSeconds))):
		return wavePassed
	}
	return waveSoaks
}
