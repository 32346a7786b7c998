package admission

import (
	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/rollout"
	"github.com/hanse-dev/hanse/view/preview"
)

// reviewRollout refuses an invalid rollout, and warns of settings without an effect. It never refuses a placement
// because of an annotation.
func reviewRollout(p hubv1.PlacementObject) ([]string, error) {
	var warnings []string
	_, ignored := rollout.ParseRequests(p.GetAnnotations())
	for _, err := range ignored {
		warnings = append(warnings, "it is ignored: "+err.Error())
	}
	policy := p.PlacementSpec().Rollout
	if policy == nil {
		return warnings, nil
	}
	errs, more := preview.CheckRollout(policy)
	if len(errs) > 0 {
		return nil, refusalOf(errs)
	}
	return append(warnings, more...), nil
}
