package rollout

import (
	"fmt"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Verbs are the requests of users about the rollouts of a placement, parsed from the placement's annotations. A request
// has a time, and applies only to changes that began at or before that time. Only Pause has no time.
type Verbs struct {
	// Pause is true if a user has paused the rollouts: no further clusters may begin to change.
	Pause bool
	// Promote is the time at which a user requested that all clusters get the changes at once, and Reason is the user's
	// reason. Both are zero if there is no such request.
	Promote time.Time
	Reason  string

	approved, skipped map[string]time.Time
}

// Approved returns the time at which a user approved the wave, or zero if no user has approved it.
func (v Verbs) Approved(wave string) time.Time { return v.approved[wave] }

// Skipped returns the time at which a user skipped the cluster, or zero if no user has skipped it.
func (v Verbs) Skipped(cluster string) time.Time { return v.skipped[cluster] }

// ParseVerbs parses the annotations of a placement. It returns one error for each invalid value. The error names the
// annotation. ParseVerbs ignores invalid values and uses the valid ones.
func ParseVerbs(annotations map[string]string) (Verbs, []error) {
	var v Verbs
	var errs []error
	switch value := annotations[hubv1.RolloutPauseAnnotation]; value {
	case "true":
		v.Pause = true
	case "", "false":
	default:
		errs = append(errs, fmt.Errorf(`annotation %s: %q is neither "true" nor "false"`, hubv1.RolloutPauseAnnotation, value))
	}
	v.approved, errs = parseTimes(annotations, hubv1.RolloutApproveAnnotation, errs)
	v.skipped, errs = parseTimes(annotations, hubv1.RolloutSkipAnnotation, errs)
	if value := strings.TrimSpace(annotations[hubv1.RolloutPromoteAnnotation]); value != "" {
		text, reason, _ := strings.Cut(value, " ")
		at, err := time.Parse(time.RFC3339, text)
		switch reason = strings.TrimSpace(reason); {
		case err != nil:
			errs = append(errs, fmt.Errorf("annotation %s: %q is not an RFC 3339 time", hubv1.RolloutPromoteAnnotation, text))
		case reason == "":
			errs = append(errs, fmt.Errorf("annotation %s: a reason must follow the time", hubv1.RolloutPromoteAnnotation))
		default:
			v.Promote, v.Reason = at, reason
		}
	}
	return v, errs
}

// parseTimes parses an annotation with a list of name@time. If a name occurs several times, the latest time is used. It
// appends an error to errs for each invalid item.
func parseTimes(annotations map[string]string, annotation string, errs []error) (map[string]time.Time, []error) {
	times := map[string]time.Time{}
	for item := range strings.SplitSeq(annotations[annotation], ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, text, _ := strings.Cut(item, "@")
		at, err := time.Parse(time.RFC3339, text)
		if name == "" || err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: %q is not a name, @ and an RFC 3339 time", annotation, item))
			continue
		}
		times[name] = latest(times[name], at)
	}
	return times, errs
}
