package decide

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// bounded returns the plan p if a binding can store it. Otherwise it returns a plan that only removes copies: the
// entries stay, but for those that p makes Absent, and no cluster is added. The condition Scheduled then says why.
func (in input) bounded(p Plan) Plan {
	chosen := 0
	for _, e := range p.Spec.Clusters {
		if e.State == hubv1.TargetPresent {
			chosen++
		}
	}
	if chosen <= hubv1.MaxTargets && len(p.Spec.Clusters) <= hubv1.MaxEntries {
		return p
	}
	kept := in.keep(metav1.ConditionFalse, hubv1.ReasonTooManyClusters, fmt.Sprintf(
		"an object has at most %d clusters, and %d are selected: no cluster is added, and every cluster keeps its copy until its removal: select fewer clusters, or divide the fleet between two objects",
		hubv1.MaxTargets, chosen))
	if chosen <= hubv1.MaxTargets {
		kept.Status.Scheduled.Message = fmt.Sprintf(
			"a binding has at most %d entries, and the decision needs %d with the clusters that lose their copies: no cluster is added until copies are removed", hubv1.MaxEntries, len(p.Spec.Clusters))
	}
	if kept.Spec == nil {
		return kept
	}
	after := map[string]hubv1.BindingTarget{}
	for _, e := range p.Spec.Clusters {
		after[e.Name] = e
	}
	for i, e := range kept.Spec.Clusters {
		switch e := after[e.Name]; e.State {
		case hubv1.TargetAbsent:
			kept.Spec.Clusters[i] = e
		case hubv1.TargetPresent:
			kept.Spec.Clusters[i].Removal = e.Removal
		}
	}
	kept.Withdraws = kept.Withdraws || p.Withdraws
	kept.LeftBehind = p.LeftBehind
	kept.Claims.Removals, kept.Claims.Answers = p.Claims.Removals, p.Claims.Answers
	return kept
}
