package decide

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/replicas"
)

// Replayed is a decision with its steps.
type Replayed struct {
	// Choice has the placement that the object follows, and the other placements that select the object. It is empty if no
	// placement selects the object.
	Choice  placement.Choice
	Invalid []placement.InvalidPlacement
	// Input is the input of package placement, which chooses the clusters. It is nil if the decision did not ask package
	// placement; the condition Scheduled then says why.
	Input    *placement.Input
	Decision placement.Decision
	Trace    placement.Trace
	// Division is the division of the object's replicas in this decision. It is nil if no replicas were divided.
	Division *ReplayedDivision
	// Spec is the spec of the binding that the decision would write.
	Spec hubv1.BindingSpec
	// Scheduled is the condition Scheduled that the decision would write.
	Scheduled metav1.Condition
}

// ReplayedDivision is a division of replicas, with the input from which it was made.
type ReplayedDivision struct {
	Field  replicas.Field
	Input  replicas.Input
	Result replicas.Division
}

// Replay decides like Decide and records the steps.
func Replay(i Input) Replayed {
	var out Replayed
	p := input{Input: i, replay: &out}.decide()
	if p.Spec != nil {
		out.Spec = *p.Spec
	}
	out.Scheduled = p.Status.Scheduled
	return out
}
