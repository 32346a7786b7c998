package rollout

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// members returns the targets of the wave with index w, sorted by name.
func (s *step) members(w int) iter.Seq[*target] {
	return func(yield func(*target) bool) {
		for _, t := range s.targets {
			if t.Wave == w && !yield(t) {
				return
			}
		}
	}
}

// counted returns the targets for which the wave with index w waits.
func (s *step) counted(w int) iter.Seq[*target] {
	return func(yield func(*target) bool) {
		for t := range s.members(w) {
			if s.counts(t) && !yield(t) {
				return
			}
		}
	}
}

// keeps reports whether the cluster keeps its current revision.
func (t *target) keeps() bool { return t.Kept != "" || t.Evicting }

// move gives the cluster the revision that the change in progress brings.
func (s *step) move(t *target) {
	if t.Holds != s.rollout.Revision {
		t.Holds, t.Since, t.moved = s.rollout.Revision, latest(s.stamp().Time, s.rollout.Began.Time), true
	}
}

// place gives each new target its first revision (see the method first).
func (s *step) place() {
	first := map[*target]int64{}
	for _, t := range s.targets {
		if t.Holds == 0 {
			first[t] = s.first(t)
		}
	}
	for t, number := range first {
		t.Holds = number
	}
}

// first returns the first revision of a new target. If the wave of the target has passed and is approved, the target
// gets the revision of the change in progress, and in a rollback the one to which the clusters return. Otherwise it
// gets the revision before, and gets the newer one in its turn. A cluster that replaces another one gets at least the
// revision of that cluster, because the data of the object may depend on it.
func (s *step) first(t *target) int64 {
	if s.rollout.Failed == 0 && t.Wave < s.at && s.covered(t.Wave) || s.rollingBack() {
		return s.rollout.Revision
	}
	number := s.previous()
	if s.revision(t.Least) != nil {
		number = max(number, t.Least)
	}
	return number
}

// establish brings the first revision of an object to all clusters at once, without waves.
func (s *step) establish() {
	passes := true
	for _, t := range s.targets {
		if t.keeps() {
			continue
		}
		s.move(t)
		if _, ok := s.passing(t); !ok && !t.Row.Away {
			passes = false
		}
	}
	if passes {
		s.complete()
		return
	}
	s.setPhase(hubv1.RolloutProgressing, "the first revision is not yet healthy on all clusters")
}

// promote begins a promotion if a user has requested it for the change in progress. In a promotion, all clusters get
// the newest revision at once.
func (s *step) promote() {
	r := &s.rollout
	if s.at == len(s.waves) && r.Revision == r.Newest || !s.covers(s.in.Verbs.Promote) {
		return
	}
	r.Revision, r.Failed, r.RolledBack, r.Start = r.Newest, 0, 0, hubv1.StartPromotion
	s.at = len(s.waves) - 1
	r.Wave, r.Phase = s.waves[s.at].Name, hubv1.RolloutProgressing
}

// moveAll gives the revision of the promotion to all targets at once.
func (s *step) moveAll() {
	for _, t := range s.targets {
		if !t.keeps() {
			s.move(t)
		}
	}
	passes := true
	for w := range s.waves {
		passes = s.judge(w) != waveChanges && passes
	}
	if passes {
		s.complete()
		return
	}
	s.at = len(s.waves) - 1
	s.setPhase(hubv1.RolloutProgressing, join("promoted: the revision is not yet healthy on all clusters", s.late()))
}

// advance continues a change. While the current wave has passed, it goes on to the next wave. Then it lets further
// clusters of the current wave begin to change. It stops the change if too many clusters have failed.
func (s *step) advance() {
	for {
		if bad := s.failures(); len(bad) > 0 {
			s.fail(bad)
			return
		}
		if s.rollout.Failed == s.rollout.Revision && s.deserted(s.at) {
			s.setPhase(hubv1.RolloutFailed, s.desertion())
			return
		}
		if !s.passes(s.at) {
			break
		}
		s.pass(s.at)
		s.rollout.WaveBegan = nil
		if s.at = s.next(); s.at == len(s.waves) {
			s.rollout.Failed = 0
			s.complete()
			return
		}
	}
	s.rollout.Failed = 0
	s.at = s.entrance()
	s.catchUp()
	s.change()
}

// catchUp gives the revision of the change to clusters whose wave has passed without them: skipped and unreachable
// clusters, resumed clusters after a return or a promotion, and clusters that came from a later wave. They get it when
// the rollout is not paused, a time window of the policy is open, and an approval covers their wave.
func (s *step) catchUp() {
	for _, t := range s.targets {
		if t.Wave >= s.at || t.keeps() || t.Holds == s.rollout.Revision || s.in.Verbs.Pause || !s.covered(t.Wave) {
			continue
		}
		if open, _ := s.open(); open {
			s.move(t)
		}
	}
}

// complete ends a change, a rollback or a promotion. It records that the revision has passed, if a cluster of each wave
// has shown that the revision works.
func (s *step) complete() {
	r := &s.rollout
	s.at = len(s.waves)
	s.catchUp()
	unproven := s.unproven()
	if unproven == "" {
		r.Passed = r.Revision
		if entry := s.revision(r.Revision); entry != nil {
			entry.Passed = true
		}
		r.PassedWaves = s.approvedWaves()
	}
	failed := cmp.Or(r.Failed, r.RolledBack)
	phase, message := hubv1.RolloutRolledBack, ""
	switch {
	case r.Revision == r.Newest:
		phase = hubv1.RolloutComplete
	case r.Failed == 0 && s.origin() != "":
		message = fmt.Sprintf("all clusters have revision %d", r.Revision)
	case failed != 0:
		message = fmt.Sprintf("all clusters returned to revision %d: revision %d failed", r.Revision, failed)
	default:
		message = fmt.Sprintf("all clusters returned to revision %d, as annotation %s asks", r.Revision, hubv1.RolloutUndoAnnotation)
	}
	if phase == hubv1.RolloutRolledBack {
		message = join(message, StillHas(r.Newest))
	}
	s.setPhase(phase, join(message, unproven, s.lagging()))
}

// change lets further clusters of the current wave begin to change. At most as many clusters change at a time as
// maxConcurrent of the wave allows. None begins while a cordoned or suspended cluster of the wave is not healthy with
// the revision. change also sets the phase of the rollout.
func (s *step) change() {
	var waiting []*target
	var kept []*target // clusters that keep the wave from passing; if unhealthy, the first one is not healthy with the revision
	unhealthy := false
	changing, free := 0, s.limit(s.at)
	for t := range s.counted(s.at) {
		_, passed := s.passing(t)
		switch {
		case t.Kept != "" && !passed:
			kept = append(kept, t)
			if bad := t.Holds == s.rollout.Revision && !s.failing(t); bad && !unhealthy {
				unhealthy = true
				kept[0], kept[len(kept)-1] = t, kept[0]
			}
		case t.Holds != s.rollout.Revision:
			waiting = append(waiting, t)
		case s.changing(t):
			changing++
		}
	}
	if unhealthy {
		waiting = nil
	}
	waiting = waiting[:min(len(waiting), max(0, free-changing))]
	var phase hubv1.RolloutPhase
	var message string
	if len(waiting) > 0 || s.closed(s.at) {
		if phase, message = s.blocked(); phase == "" {
			for _, t := range waiting {
				s.move(t)
			}
			changing += len(waiting)
		}
	}
	w := s.waves[s.at]
	switch {
	case s.in.Verbs.Pause:
		s.setPhase(hubv1.RolloutPaused, s.pausedMessage())
	case changing > 0:
		s.setPhase(hubv1.RolloutProgressing, s.remarks())
	case phase != "":
		s.setPhase(phase, message)
	case len(kept) > 0:
		s.setPhase(hubv1.RolloutWaitingForClusters, s.keptMessage(kept))
	case s.lost():
		s.setPhase(hubv1.RolloutWaitingForClusters, s.lostMessage())
	default:
		s.setPhase(hubv1.RolloutSoaking, fmt.Sprintf("wave %s must stay healthy for %d s", w.Name, w.SoakSeconds))
	}
}

// limit returns how many clusters of the wave may change at the same time.
func (s *step) limit(w int) int {
	n := 0
	for range s.counted(w) {
		n++
	}
	maxConcurrent := s.waves[w].MaxConcurrent
	if maxConcurrent == nil {
		return n
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(maxConcurrent, n, true)
	if err != nil {
		return 1
	}
	return max(1, scaled)
}

// blocked returns a phase of the rollout and a message if no cluster of the current wave may begin to change now. The
// message has the reason. The phase is empty if clusters may begin.
func (s *step) blocked() (hubv1.RolloutPhase, string) {
	w, peers := s.waves[s.at], s.in.Peers
	if s.in.Verbs.Pause {
		return hubv1.RolloutPaused, s.pausedMessage()
	}
	if p, failed := peers.Failed(); failed {
		return hubv1.RolloutWaitingForOthers, fmt.Sprintf("revision %d of %s failed, which stops the placement: change that object or use %s", p.Revision, p.Object, s.in.Names.undo(p.Object))
	}
	if s.at > 0 && !s.entered() {
		settled := s.rollout.Began.Add(seconds(ptr.Deref(s.in.Policy.SettleSeconds, 5)))
		if !s.reached(settled) || peers.LeastPassed(settled, s.at) < s.at {
			return hubv1.RolloutWaitingForOthers,
				fmt.Sprintf("wave %s waits until all objects that changed together have passed wave %s", w.Name, s.waves[s.at-1].Name)
		}
	}
	if !s.covered(s.at) {
		return hubv1.RolloutWaitingForApproval, fmt.Sprintf("wave %s waits for approval: %s", w.Name, s.in.Names.verb("approve", w.Name))
	}
	if maxMoving := s.in.Policy.MaxObjectsMoving; maxMoving != nil && !s.moving() && peers.Moving() >= int(*maxMoving) {
		return hubv1.RolloutWaitingForOthers, fmt.Sprintf("wave %s waits until fewer than %d objects are moving", w.Name, *maxMoving)
	}
	switch open, next := s.open(); {
	case open:
		return "", ""
	case next.IsZero():
		return hubv1.RolloutWaitingForWindow, fmt.Sprintf("wave %s waits for a window, and none ever opens: correct the windows of the placement", w.Name)
	default:
		return hubv1.RolloutWaitingForWindow, fmt.Sprintf("wave %s waits for the window that opens at %s", w.Name, next.Format(time.RFC3339))
	}
}

// entered reports whether at least one cluster of the current wave began to change before this call of Step.
func (s *step) entered() bool {
	for t := range s.members(s.at) {
		if s.began(t) && !t.moved {
			return true
		}
	}
	return false
}

// open reports whether a time window of the policy is open. If none is open, next is the time of the next opening, and
// open requests a call of Step for that time.
func (s *step) open() (open bool, next time.Time) {
	if open, next = nextWindow(s.in.Policy.Windows, s.now); !next.IsZero() {
		s.reached(next)
	}
	return open, next
}

// fail records that the change has failed because of the clusters bad. It stops the change, or starts a rollback if the
// policy says so.
func (s *step) fail(bad []*target) {
	r := &s.rollout
	r.Failed = r.Revision
	back := s.in.Policy.OnFailure == hubv1.FailureRollback && !s.in.NoRollback
	if back && r.Passed != r.Revision && s.revision(r.Passed) != nil {
		r.Revision, r.Start = r.Passed, hubv1.StartReturn
		s.rollBack()
		return
	}
	s.setPhase(hubv1.RolloutFailed, s.failure(bad))
}

// rollBack returns the clusters to the last revision that passed on all clusters. It begins with the current wave, and
// goes on with earlier waves in reverse order. Waves after the current one come last, because their clusters may hold a
// revision of another change.
func (s *step) rollBack() {
	if s.in.Verbs.Pause {
		s.setPhase(hubv1.RolloutPaused, s.pausedMessage())
		return
	}
	if bad := s.failures(); len(bad) > 0 {
		s.setPhase(hubv1.RolloutFailed, s.failure(bad))
		return
	}
	var order []int
	for w := range s.waves {
		order = append(order, w)
	}
	slices.Reverse(order[:s.at+1])
	for _, w := range order {
		if !s.moveBack(w) {
			s.at = w
			break
		}
	}
	if s.returned() {
		s.complete()
		return
	}
	message := fmt.Sprintf("revision %d failed: the clusters return to revision %d", s.rollout.Failed, s.rollout.Revision)
	s.setPhase(hubv1.RolloutRollingBack, join(message, s.pausedByMember(0, len(s.waves)-1)))
}

// moveBack moves clusters of the wave with index w back to the earlier revision, as many at a time as the wave allows.
// The result is true if no cluster of the wave waits for its turn any more.
func (s *step) moveBack(w int) bool {
	free := s.limit(w)
	for t := range s.members(w) {
		if s.changing(t) {
			free--
		}
	}
	all := true
	for t := range s.members(w) {
		switch {
		case t.keeps() || t.Holds == s.rollout.Revision:
		case !s.counts(t):
			s.move(t)
		case free > 0:
			s.move(t)
			free--
		default:
			all = false
		}
	}
	return all
}

// returned reports whether the rollback is complete: all clusters have the earlier revision again, and none of them is
// still changing.
func (s *step) returned() bool {
	all := true
	for _, t := range s.targets {
		if s.counts(t) && (t.Holds != s.rollout.Revision || s.changing(t)) {
			all = false
		}
	}
	return all
}
