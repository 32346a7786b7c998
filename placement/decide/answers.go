package decide

import (
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

const (
	// answersWithin is the maximum time for which a decision waits until all selected clusters have reported whether they
	// serve the object's kind. Only a first choice of clusters, or a first division of replicas, waits.
	answersWithin = 10 * time.Second
	// askAgain is the time after which a decision that waits for reports of clusters is made again.
	askAgain = 500 * time.Millisecond
)

// Answers says whether a decision depends on reports of clusters about the kinds that they serve.
type Answers int

const (
	// AnswersIrrelevant: the decision does not wait for reports, because it is neither a first choice of clusters nor a
	// first division of replicas.
	AnswersIrrelevant Answers = iota
	// AnswersComplete: every selected cluster has reported whether it serves the object's kind.
	AnswersComplete
	// AnswersMissing: at least one selected cluster has not reported yet whether it serves the object's kind.
	AnswersMissing
)

// answersWait returns the remaining time for which a first choice of clusters, or a first division of replicas, waits.
// It waits until the selected clusters have reported whether they serve the object's kind. The time is 0 if the
// decision need not wait. The second result says whether such reports are missing. The reports arrive one after the
// other. Without a wait, the cluster that reports first would get all replicas, and would lose most of them again. A
// cluster that never reports delays the decision by answersWithin at most.
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

// missesAnswers reports whether the decision d rejects at least one cluster only because the cluster has not reported
// yet whether it serves the object's kind.
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
