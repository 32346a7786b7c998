package placement

import (
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// WhyNotFollowed returns why an object follows the placement winner and not the placement other. Both placements select
// the object.
func WhyNotFollowed(object hubv1.SelectableObject, winner, other hubv1.PlacementObject) string {
	first, err := match(object, winner)
	if err != nil {
		return "the object stays with the placement that it follows, because the selectors of that placement are invalid"
	}
	second, _ := match(object, other) // the caller knows that other matches
	a, b := candidate{PlacementObject: winner, specificity: first}, candidate{PlacementObject: other, specificity: second}
	switch {
	case precedence(b, a) < 0:
		return "it comes first, but its preemption is not Always, so it takes over no object from another placement"
	case Outranks(winner, other):
		return fmt.Sprintf("ClusterPlacement %s is enforced: it comes before every placement that is not enforced", winner.GetName())
	case rank(a) != rank(b):
		return "a namespaced Placement comes first"
	case a.PlacementSpec().Priority != b.PlacementSpec().Priority:
		return fmt.Sprintf("its priority %d is lower than %d", b.PlacementSpec().Priority, a.PlacementSpec().Priority)
	case a.specificity != b.specificity:
		return "its selector is wider"
	}
	return "at equal priority and selectors the name decides"
}
