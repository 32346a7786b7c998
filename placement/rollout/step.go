package rollout

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Target is a cluster that takes part in the rollout. Its entry in the binding has the state Present or Evicting. The
// hub's own cluster is not a target.
type Target struct {
	Cluster string
	// Wave is the index of the cluster's wave in Policy.Waves.
	Wave int
	// Holds is the number of the revision that the binding records for the cluster. It is 0 if the cluster has no revision
	// yet.
	Holds int64
	// Since is the time at which the cluster got the revision in Holds. It may be zero for the first revision of the
	// entry.
	Since time.Time
	// Least is the minimum revision of a new cluster that replaces another cluster. It is the revision of the replaced
	// cluster. It is 0 for other clusters.
	Least int64
	// Kept says why the cluster keeps its current revision, as the end of a sentence about it: it is suspended or
	// cordoned, or the removal of its copy waits for a user. A wave waits for such a cluster. It is empty for other
	// clusters.
	Kept string
	// Held is true if the next revision would remove objects, and the removal waits for a user. Also a return and a
	// promotion wait for such a cluster. Kept then has the reason.
	Held bool
	// KeptHealth is the health of the copy when Kept began. Degraded includes a refused write. It is empty if Kept is
	// empty, or if the cluster does not hold the revision of the change in progress.
	KeptHealth hubv1.Health
	// Evicting is true if other clusters replace the cluster. Such a cluster keeps its current revision. Its wave waits
	// for the cluster only if the cluster has begun to change.
	Evicting bool
	Row      Row
}

// Row is the last report of a cluster about its copy, from the binding's status. The zero value means that the cluster
// has not reported.
type Row struct {
	// Revision is the revision that the report describes.
	Revision int64
	Applied  bool
	Health   hubv1.Health
	// Refused is true if the cluster cannot apply the copy until a user changes something.
	Refused         bool
	Reason, Message string
	// Changed is the time at which the report's applied, health or reason last changed.
	Changed time.Time
	// PassingSince is the time since which the copy is applied and healthy at its revision. It is zero if the copy is not
	// applied and healthy.
	PassingSince time.Time
	// Away is true if the cluster is unreachable.
	Away bool
	// HeldByMember is true if an admin of the cluster has paused the copy.
	HeldByMember bool
	// Observes is true if the health is known to describe the applied content. This is the case if the status has an
	// observedGeneration, or if the kind has no status. If Observes is false, the reported status may be older than the
	// change. The copy must then be healthy for minObservedSeconds.
	Observes bool
}

// Names are the names with which messages print the commands of hansectl.
type Names struct {
	// Placement is the argument for the placement: web or clusterplacement/web. Object is the argument for the object,
	// such as "deployment cart".
	Placement, Object string
	// PlacementNamespace and ObjectNamespace are empty for the cluster-scoped kinds.
	PlacementNamespace, ObjectNamespace string
	// Bundle is the bundle or operator that contains the object, such as "bundle shop/web". It is empty for other objects.
	Bundle string
	// Whole is true if the names are those of a bundle that is rolled out as a whole. Object then names the bundle, too.
	Whole bool
}

// NamesOf returns the names of a placement. The names of the object are empty.
func NamesOf(p hubv1.PlacementObject) Names {
	n := Names{Placement: p.GetName(), PlacementNamespace: p.GetNamespace()}
	if n.PlacementNamespace == "" {
		n.Placement = "clusterplacement/" + n.Placement
	}
	return n
}

// Input contains all inputs of Step.
type Input struct {
	Names  Names
	Policy *hubv1.RolloutPolicy
	// Before is the state of the rollout that the binding stores. It is nil if the object has no revision yet.
	Before *hubv1.BindingRollout
	// Revisions are the revisions that the binding stores.
	Revisions []hubv1.ObjectRevision
	// Live is the current state of the hub object. It has Template, Policies and Generation, but no number.
	Live    hubv1.ObjectRevision
	Targets []Target
	// Undo is the value of the object's annotation hanse.dev/rollout-undo.
	Undo string
	// UndoBlocked is the reason for which the rollout must not follow Undo. It is empty if the rollout may follow Undo.
	UndoBlocked string
	// NoRollback is true for a CustomResourceDefinition. Its rollout stops at a failure and is never rolled back.
	NoRollback bool
	// Verbs are the requests of users about the rollouts of the placement.
	Verbs Verbs
	// Peers has the progress of the other objects of the placement.
	Peers Peers
	Now   time.Time
}

// Result is the next state of a rollout.
type Result struct {
	// Revisions are the revisions to store, sorted by number: the revisions in use, and the newest other revisions.
	Revisions []hubv1.ObjectRevision
	Rollout   hubv1.BindingRollout
	// Holds has, for each target, the number of the revision that it gets or keeps.
	Holds map[string]int64
	// Moved are the names of the targets that get other content in this step. The caller sets the revisionTime of their
	// entries to Now, or to the start of the change if that is later.
	Moved []string
	// KeptHealth has the Target.KeptHealth to store, for each target that has one.
	KeptHealth map[string]hubv1.Health
	// Progress is the progress of this object, which the rollouts of the other objects of the placement read.
	Progress Progress
	// Again is the time after which the result may change without an event. It is 0 if only an event can change the
	// result.
	Again time.Duration
}

// Step returns the next state of the rollout of one object.
func Step(in Input) Result {
	s := newStep(in)
	s.identify()
	s.undo()
	s.at = s.position()
	s.place()
	s.reopen()
	s.promote()
	s.examineKept()
	switch {
	case s.baseline():
		s.establish()
	case s.promoted():
		s.moveAll()
	case s.at == len(s.waves):
		s.complete()
	case s.rollingBack():
		s.rollBack()
	default:
		s.advance()
	}
	return s.result()
}

// step is the state of one call of Step.
type step struct {
	in        Input
	now       time.Time
	waves     []hubv1.RolloutWave
	gate      gate
	rollout   hubv1.BindingRollout
	revisions []hubv1.ObjectRevision // sorted by number
	targets   []*target              // sorted by cluster
	at        int                    // index of the wave in progress; len(waves) if none is
	note      string                 // error in an annotation of the object; empty if there is none
	wakeAt    time.Time
}

// target is a Target during one call of Step. Its Holds becomes the revision that the target gets now.
type target struct {
	Target
	moved bool
}

func newStep(in Input) *step {
	s := &step{in: in, now: in.Now, waves: in.Policy.Waves, gate: newGate(in.Policy), revisions: slices.Clone(in.Revisions)}
	if len(s.waves) == 0 {
		s.waves = []hubv1.RolloutWave{{Name: "all"}}
	}
	if in.Before != nil {
		s.rollout = *in.Before
		s.rollout.PassedWaves = slices.DeleteFunc(slices.Clone(s.rollout.PassedWaves), func(p hubv1.PassedWave) bool {
			return !slices.ContainsFunc(s.waves, func(w hubv1.RolloutWave) bool { return w.Name == p.Name })
		})
	}
	slices.SortFunc(s.revisions, func(a, b hubv1.ObjectRevision) int { return cmp.Compare(a.Number, b.Number) })
	for _, t := range in.Targets {
		t.Wave = min(max(t.Wave, 0), len(s.waves)-1)
		s.targets = append(s.targets, &target{Target: t})
	}
	slices.SortStableFunc(s.targets, func(a, b *target) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return s
}

// position returns the index of the current wave. If no wave is in progress, the result is the number of waves. If the
// policy no longer has the current wave, the result is 0, so that the change starts again at the first wave.
func (s *step) position() int {
	if s.rollout.Wave == "" && (s.baseline() || s.rollout.Phase == hubv1.RolloutComplete || s.rollout.Phase == hubv1.RolloutRolledBack) {
		return len(s.waves)
	}
	at := slices.IndexFunc(s.waves, func(w hubv1.RolloutWave) bool { return w.Name == s.rollout.Wave })
	if at < 0 {
		s.rollout.WaveBegan = nil
	}
	return max(0, at)
}

// reopen continues a change that was complete if a cluster has joined a wave that no approval covers. The cluster has
// an older revision, and a user can approve the wave. The other waves have passed.
func (s *step) reopen() {
	if s.at < len(s.waves) || s.baseline() {
		return
	}
	if s.at = s.next(); s.at == len(s.waves) {
		return
	}
	for w := range s.waves {
		if !s.unapproved(w) {
			s.pass(w)
		}
	}
}

// examineKept records the health of the copies on clusters that have just begun to keep their revision.
func (s *step) examineKept() {
	for _, t := range s.targets {
		switch {
		case t.Kept == "" || t.Holds != s.rollout.Revision || s.exempt() || s.at == len(s.waves):
			t.KeptHealth = ""
		case t.KeptHealth != "":
		case s.broken(t):
			t.KeptHealth = hubv1.HealthDegraded
		default:
			t.KeptHealth = cmp.Or(t.Row.Health, hubv1.HealthUnknown)
		}
	}
}

// baseline reports whether the object's first revision still goes to the clusters. In this case no revision has passed
// on all clusters yet.
func (s *step) baseline() bool {
	return isFirst(s.rollout.Wave, s.rollout.Phase)
}

// rollingBack reports whether a revision has failed, and the clusters return or have returned to an earlier revision.
func (s *step) rollingBack() bool {
	return s.rollout.Failed != 0 && s.rollout.Failed != s.rollout.Revision
}

// promoted reports whether a user has sent the revision to all clusters at once, and it has not passed there yet.
func (s *step) promoted() bool {
	return s.rollout.Start == hubv1.StartPromotion && s.at < len(s.waves)
}

// exempt reports whether the clusters get the revision without approvals: it is the first revision, a user has promoted
// it, or the clusters return to it.
func (s *step) exempt() bool {
	return s.rollout.Start != "" || s.rollingBack() || s.baseline()
}

// setPhase sets the phase and the message of the rollout.
func (s *step) setPhase(phase hubv1.RolloutPhase, message string) {
	s.rollout.Phase, s.rollout.Message = phase, message
}

// stamp returns the time of this step in whole seconds, because the API stores times in seconds.
func (s *step) stamp() metav1.Time { return metav1.NewTime(s.now.Truncate(time.Second)) }

// reached reports whether the time at has come. If not, reached also requests a call of Step for that time.
func (s *step) reached(at time.Time) bool {
	if !s.now.Before(at) {
		return true
	}
	if s.wakeAt.IsZero() || at.Before(s.wakeAt) {
		s.wakeAt = at
	}
	return false
}

func (s *step) result() Result {
	r := &s.rollout
	s.nameWave()
	if before := s.in.Before; before == nil || before.Wave != r.Wave || before.Phase != r.Phase {
		r.Since = s.stamp()
	}
	r.Message = join(s.note, r.Message, s.origin())
	out := Result{Rollout: *r, Holds: map[string]int64{}, Progress: s.progress(), Revisions: s.pruned()}
	s.examineKept()
	for _, t := range s.targets {
		out.Holds[t.Cluster] = t.Holds
		if t.KeptHealth != "" {
			if out.KeptHealth == nil {
				out.KeptHealth = map[string]hubv1.Health{}
			}
			out.KeptHealth[t.Cluster] = t.KeptHealth
		}
		if t.moved {
			out.Moved = append(out.Moved, t.Cluster)
		}
	}
	if !s.wakeAt.IsZero() {
		out.Again = s.wakeAt.Sub(s.now)
	}
	return out
}

// nameWave records the wave in progress, and the time at which its first cluster began to change.
func (s *step) nameWave() {
	r, name := &s.rollout, ""
	if s.at < len(s.waves) {
		name = s.waves[s.at].Name
	}
	if r.Wave != name {
		r.Wave, r.WaveBegan = name, nil
	}
	if name == "" || s.exempt() {
		r.WaveBegan = nil
		return
	}
	for t := range s.members(s.at) {
		if r.WaveBegan == nil && s.began(t) {
			began := metav1.NewTime(t.Since)
			r.WaveBegan = &began
		}
	}
}

func (s *step) progress() Progress {
	r := &s.rollout
	return Progress{
		Object: s.in.Peers.object, Began: r.Began.Time, Passed: s.at, Moving: s.moving(), Done: s.at == len(s.waves),
		Failed: r.Failed != 0 && r.Phase != hubv1.RolloutComplete, Revision: cmp.Or(r.Failed, r.Revision), Since: r.Since.Time,
	}
}
