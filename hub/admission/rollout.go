package admission

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/rollout"
)

// reviewRollout refuses an invalid rollout, and warns of settings without an effect. Annotations of users never refuse
// the placement.
func reviewRollout(p hubv1.PlacementObject) ([]string, error) {
	var warnings []string
	_, ignored := rollout.ParseVerbs(p.GetAnnotations())
	for _, err := range ignored {
		warnings = append(warnings, "it is ignored: "+err.Error())
	}
	policy, path := p.PlacementSpec().Rollout, field.NewPath("spec", "rollout")
	if policy == nil {
		return warnings, nil
	}
	errs, more := rollout.Validate(policy, path)
	for i, w := range policy.Waves {
		for _, err := range overrides.ValidateClusters(w.Clusters, path.Child("waves").Index(i).Child("clusters")) {
			if !slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.HasPrefix(e.Field, err.Field) }) {
				errs = append(errs, err)
			}
		}
	}
	if len(errs) > 0 {
		return nil, refusalOf(errs)
	}
	return append(warnings, more...), nil
}
