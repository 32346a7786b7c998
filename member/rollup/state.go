package rollup

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// CopyState is the state of a copy in one word. A lower number is worse, but zero means that there is no copy.
type CopyState uint8

// These are the states of copies, from the worst to the best.
const (
	CopyNotApplied  CopyState = iota + 1 // the hub cannot write the desired content
	CopyDegraded                         // the status of the copy reports a failure
	CopyUnknown                          // the hub does not observe the cluster, or does not know the health
	CopyProgressing                      // the copy is being written, or is not ready yet
	CopyLeaving                          // the copy is being withdrawn, or moves to another cluster
	CopyHealthy
)

var copyStates = []string{"", "NotApplied", "Degraded", "Unknown", "Progressing", "Leaving", "Healthy"}

// String returns the word of the state, such as Healthy. It is empty for zero.
func (s CopyState) String() string { return copyStates[s] }

// ParseCopyState returns the state with the given word. It returns zero for an unknown word.
func ParseCopyState(text string) CopyState { return CopyState(max(slices.Index(copyStates, text), 0)) }

// CopyStates returns all states, the worst first.
func CopyStates() []CopyState {
	return []CopyState{CopyNotApplied, CopyDegraded, CopyUnknown, CopyProgressing, CopyLeaving, CopyHealthy}
}

// StateOf returns the state of a copy as the console, hansectl and the metrics show it. observed is true if the hub
// observes the cluster now. If observed is false, or if the row has only an earlier state (with LastObservedTime), the
// result is CopyUnknown.
func StateOf(target hubv1.TargetState, row *hubv1.ClusterRow, observed bool) CopyState {
	switch {
	case !observed || row.LastObservedTime != nil:
		return CopyUnknown
	case target != hubv1.TargetPresent:
		return CopyLeaving
	case row.Applied != metav1.ConditionTrue && row.Reason == hubv1.ReasonPending:
		return CopyProgressing
	case row.Applied == metav1.ConditionFalse:
		return CopyNotApplied
	case row.Applied != metav1.ConditionTrue:
		return CopyUnknown
	}
	switch row.Health {
	case hubv1.HealthHealthy:
		return CopyHealthy
	case hubv1.HealthDegraded:
		return CopyDegraded
	case hubv1.HealthProgressing:
		return CopyProgressing
	}
	return CopyUnknown
}
