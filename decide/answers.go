package decide

import (
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

const (
	// answersWithin is how long a first choice or division waits for clusters to report whether they serve the kind.
	answersWithin = 10 * time.Second
	// askAgain is the time between two decisions that wait for answers.
	askAgain = 500 * time.Millisecond
)

// Answers says whether a decision depends on which clusters serve the kind.
type Answers int

const (
	// AnswersIrrelevant: the decision is neither a first choice nor a first division.
	AnswersIrrelevant Answers = iota
	// AnswersComplete: every selected cluster has answered.
	AnswersComplete
	// AnswersMissing: at least one selected cluster has not answered.
	AnswersMissing
)

// answersWait returns how long a first choice or division still waits for answers. It is 0 if the decision need not
// wait. The first answers for a kind arrive one after the other. Without a wait, the first cluster would get all
// replicas, or every object of a spread, and would lose most of them again. A cluster that never answers delays the
// decision by answersWithin at most.
func (in input) answersWait(d placement.Decision, spec *hubv1.PlacementSpec) (time.Duration, Answers) {
	divides := spec.Replicas.Divides() && in.Spec().Division == nil
	chooses := spec.Spread != nil && len(in.Spec().Clusters) == 0
	switch {
	case in.Limits == nil || (!divides && !chooses):
		return 0, AnswersIrrelevant
	case !in.missesAnswers(d):
		return 0, AnswersComplete
	}
	return max(0, min(answersWithin-in.Limits.AnswersAwaited, askAgain)), AnswersMissing
}

// missesAnswers reports whether a cluster is rejected only because it has not answered yet.
func (in input) missesAnswers(d placement.Decision) bool {
	for _, r := range d.Rejected {
		if r.Reason != hubv1.ReasonKindNotServed {
			continue
		}
		if m := in.Facts.Cluster(r.Cluster); m != nil {
			if _, answered := in.Memo.cluster(m).Served[in.Object.ID.GroupKind()]; !answered {
				return true
			}
		}
	}
	return false
}
