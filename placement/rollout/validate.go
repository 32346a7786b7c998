package rollout

import (
	"fmt"
	"time"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Validate returns the errors of a rollout policy that the schema of the API cannot detect, and warnings. It does not
// check expressions.
func Validate(p *hubv1.RolloutPolicy, path *field.Path) (errs field.ErrorList, warnings []string) {
	waves := path.Child("waves")
	owner := map[string]string{}
	for i, w := range p.Waves {
		clusters, last := waves.Index(i).Child("clusters"), i == len(p.Waves)-1
		if n := w.MaxConcurrent; n != nil && n.Type == intstr.Int && n.IntVal < 1 {
			errs = append(errs, field.Invalid(waves.Index(i).Child("maxConcurrent"), n.IntVal, "must be at least 1: to stop a wave, set approval: Manual"))
		}
		if w.Clusters == nil {
			if !last {
				errs = append(errs, field.Required(clusters, "only the last wave may leave clusters unset: the waves after this one would be empty"))
			}
			continue
		}
		if w.Clusters.LabelSelector != nil {
			errs = append(errs, metav1validation.ValidateLabelSelector(w.Clusters.LabelSelector,
				metav1validation.LabelSelectorValidationOptions{}, clusters.Child("labelSelector"))...)
		}
		for j, name := range w.Clusters.Names {
			if first, taken := owner[name]; taken {
				warnings = append(warnings, fmt.Sprintf("%s: cluster %s belongs to wave %s, which names it first", clusters.Child("names").Index(j), name, first))
				continue
			}
			owner[name] = w.Name
		}
		if last {
			warnings = append(warnings, fmt.Sprintf("%s: clusters that no wave selects belong to wave %s, too", clusters, w.Name))
		}
	}
	for i, w := range p.Windows {
		errs = append(errs, validateWindow(w, path.Child("windows").Index(i))...)
	}
	return errs, warnings
}

// anyTime is a fixed date from which schedules are checked. A cron schedule has no year. The cron library looks five
// years ahead, which include a leap year. A schedule that does not run in these years never runs.
var anyTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func validateWindow(w hubv1.RolloutWindow, path *field.Path) (errs field.ErrorList) {
	fields, err := parseSchedule(w.Schedule)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("schedule"), w.Schedule, err.Error()))
	case fields.Next(anyTime).IsZero():
		errs = append(errs, field.Invalid(path.Child("schedule"), w.Schedule, "the schedule never fires"))
	}
	if _, err := parseZone(w.TimeZone); err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), w.TimeZone, err.Error()))
	}
	return errs
}
