package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Verbs are the requests of users that the rollouts of a placement follow. A request has a time, and applies only to
// changes that began at or before that time. Only Pause has no time.
type Verbs struct {
	// Pause is true if a user has paused the rollouts: no further clusters may begin to change.
	Pause bool
	// Promote is the time at which a user requested that all clusters get the changes at once. It is zero if there is no
	// such request.
	Promote time.Time

	approved, skipped, skippedWaves map[string]time.Time
}

// VerbsOf returns the requests that the status of a placement records, and the pause in its annotations.
func VerbsOf(p hubv1.PlacementObject) Verbs {
	v := Verbs{Pause: p.GetAnnotations()[hubv1.RolloutPauseAnnotation] == "true"}
	v.follow(p.PlacementStatus().Rollout)
	return v
}

// follow adds the requests in a placement's status, except the refused ones.
func (v *Verbs) follow(recorded *hubv1.PlacementRollout) {
	if recorded == nil {
		return
	}
	v.approved, v.skipped, v.skippedWaves = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	add := func(times map[string]time.Time, name string, r hubv1.RolloutRequest) {
		if name != "" && !r.Refused {
			times[name] = latest(times[name], r.Time.Time)
		}
	}
	for _, r := range recorded.Approvals {
		add(v.approved, r.Wave, r)
	}
	for _, r := range recorded.Skips {
		add(v.skipped, r.Cluster, r)
		add(v.skippedWaves, r.Wave, r)
	}
	if r := recorded.Promotion; r != nil && !r.Refused {
		v.Promote = r.Time.Time
	}
}

// Approved returns the time at which a user approved the wave, or zero if no user has approved it.
func (v Verbs) Approved(wave string) time.Time { return v.approved[wave] }

// Skipped returns the time at which a user skipped the cluster, or zero if no user has skipped it.
func (v Verbs) Skipped(cluster string) time.Time { return v.skipped[cluster] }

// SkippedWave returns the time at which a user skipped the wave, or zero if no user has skipped it.
func (v Verbs) SkippedWave(wave string) time.Time { return v.skippedWaves[wave] }

// latest returns the time of the latest request, or zero if there is none.
func (v Verbs) latest() time.Time {
	last := v.Promote
	for _, times := range []map[string]time.Time{v.approved, v.skipped, v.skippedWaves} {
		for _, at := range times {
			last = latest(last, at)
		}
	}
	return last
}

// Requests are the requests in the annotations of a placement.
type Requests struct {
	Approvals, Skips []hubv1.RolloutRequest
	Promotion        *hubv1.RolloutRequest
}

// maxRequests bounds the approvals and the skips of a placement, as its status does.
const maxRequests = 100

// skippedWave precedes the name of a wave in the annotation hanse.dev/rollout-skip. Names of clusters contain no slash.
const skippedWave = "wave/"

// ParseRequests parses the annotations of a placement. It returns one error for each invalid value. The error names the
// annotation. ParseRequests ignores invalid values and uses the valid ones.
func ParseRequests(annotations map[string]string) (Requests, []error) {
	var r Requests
	var errs []error
	if value := annotations[hubv1.RolloutPauseAnnotation]; value != "" && value != "true" && value != "false" {
		errs = append(errs, fmt.Errorf(`annotation %s: %q is neither "true" nor "false"`, hubv1.RolloutPauseAnnotation, value))
	}
	r.Approvals, errs = parseTimes(annotations, hubv1.RolloutApproveAnnotation, errs)
	r.Skips, errs = parseTimes(annotations, hubv1.RolloutSkipAnnotation, errs)
	for i := range r.Skips {
		if wave, ok := strings.CutPrefix(r.Skips[i].Wave, skippedWave); ok {
			r.Skips[i].Wave = wave
		} else {
			r.Skips[i].Wave, r.Skips[i].Cluster = "", r.Skips[i].Wave
		}
	}
	if value := strings.TrimSpace(annotations[hubv1.RolloutPromoteAnnotation]); value != "" {
		text, reason, _ := strings.Cut(value, " ")
		at, err := parseTime(text)
		switch reason = strings.TrimSpace(reason); {
		case err != nil:
			errs = append(errs, fmt.Errorf("annotation %s: %q is not an RFC 3339 time", hubv1.RolloutPromoteAnnotation, hubv1.CutMessage(text, maxName)))
		case reason == "":
			errs = append(errs, fmt.Errorf("annotation %s: a reason must follow the time", hubv1.RolloutPromoteAnnotation))
		default:
			r.Promotion = &hubv1.RolloutRequest{Time: at, Reason: hubv1.CutMessage(reason, maxReason)}
		}
	}
	return r, errs
}

const (
	maxReason = 1024 // maximum length of RolloutRequest.Reason, in characters
	maxName   = 63   // maximum length of RolloutRequest.Wave and RolloutRequest.Cluster
)

// parseTime parses an RFC 3339 time. It returns the time in UTC and in whole seconds, as the API stores it. It refuses
// the zero time, which the API stores as null.
func parseTime(text string) (metav1.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	at := metav1.NewTime(t.UTC().Truncate(time.Second))
	if err == nil && at.IsZero() {
		err = errors.New("the time is zero")
	}
	return at, err
}

// parseTimes parses an annotation with a list of name@time. It returns the name as the wave of a request. It appends an
// error to errs for each invalid item, and for a list that is too long.
func parseTimes(annotations map[string]string, annotation string, errs []error) (out []hubv1.RolloutRequest, _ []error) {
	for item := range strings.SplitSeq(annotations[annotation], ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, text, _ := strings.Cut(item, "@")
		short := name
		if annotation == hubv1.RolloutSkipAnnotation {
			short = strings.TrimPrefix(name, skippedWave)
		}
		at, err := parseTime(text)
		if short == "" || err != nil || len(short) > maxName {
			errs = append(errs, fmt.Errorf("annotation %s: %q is not a name, @ and an RFC 3339 time", annotation, hubv1.CutMessage(item, 2*maxName)))
			continue
		}
		r := hubv1.RolloutRequest{Wave: name, Time: at}
		if slices.Contains(out, r) {
			continue
		}
		if len(out) == maxRequests {
			return out, append(errs, fmt.Errorf("annotation %s: it has more than %d items, of which the hub reads the first %d", annotation, maxRequests, maxRequests))
		}
		out = append(out, r)
	}
	return out, errs
}

// Record judges the requests that are new, and returns the records for the placement's status. before are the records
// so far. by is the user who changed the placement last. objects are the bindings of all objects that follow the
// placement. A request whose time is later than now, and later than the start of each change, is refused: it would
// apply to changes that no user has seen. The errors name the refused requests.
func (r Requests) Record(before *hubv1.PlacementRollout, by string, objects []hubv1.BindingObject, now time.Time) (Requests, []error) {
	var recorded Requests
	if before != nil {
		recorded = Requests{Approvals: before.Approvals, Skips: before.Skips, Promotion: before.Promotion}
	}
	j := journal{by: by, until: now}
	if len(by) > maxBy {
		j.by = "" // the beginning of a name may be the name of another user
	}
	for _, b := range objects {
		if state := b.BindingSpec().Rollout; state != nil {
			j.until = latest(j.until, state.Began.Time)
			j.changes = append(j.changes, b.BindingSpec())
		}
	}
	r.Approvals = j.record(hubv1.RolloutApproveAnnotation, r.Approvals, recorded.Approvals)
	r.Skips = j.record(hubv1.RolloutSkipAnnotation, r.Skips, recorded.Skips)
	promotions := j.record(hubv1.RolloutPromoteAnnotation, listOf(r.Promotion), listOf(recorded.Promotion))
	if r.Promotion = nil; len(promotions) > 0 {
		r.Promotion = &promotions[0]
	}
	return r, j.refused
}

func listOf(r *hubv1.RolloutRequest) []hubv1.RolloutRequest {
	if r == nil {
		return nil
	}
	return []hubv1.RolloutRequest{*r}
}

// journal records requests.
type journal struct {
	by      string
	until   time.Time // later requests are refused
	changes []*hubv1.BindingSpec
	refused []error
}

// record returns the records of the requests in an annotation, and after them the earlier records that changes still
// need.
func (j *journal) record(annotation string, requests, before []hubv1.RolloutRequest) (out []hubv1.RolloutRequest) {
	same := func(a hubv1.RolloutRequest) func(hubv1.RolloutRequest) bool {
		return func(b hubv1.RolloutRequest) bool {
			return a.Wave == b.Wave && a.Cluster == b.Cluster && a.Reason == b.Reason && a.Time.Equal(&b.Time)
		}
	}
	for _, r := range requests {
		if i := slices.IndexFunc(before, same(r)); i >= 0 {
			r = before[i]
		} else {
			r.By, r.Refused = j.by, r.Time.After(j.until)
		}
		if r.Refused {
			j.refused = append(j.refused, fmt.Errorf("annotation %s: %s: %w", annotation, r.Time.UTC().Format(time.RFC3339), errTimeToCome))
		}
		out = append(out, r)
	}
	for _, r := range before {
		if len(out) < maxRequests && !r.Refused && !slices.ContainsFunc(requests, same(r)) && j.needed(r) {
			out = append(out, r)
		}
	}
	return out
}

const maxBy = 256 // maximum length of RolloutRequest.By, in characters

var errTimeToCome = errors.New("the time was in the future when the hub read the annotation: write the time at which the change began, or use hansectl rollout")

// needed reports whether a change to which the request applies lacks a cluster.
func (j *journal) needed(r hubv1.RolloutRequest) bool {
	return slices.ContainsFunc(j.changes, func(spec *hubv1.BindingSpec) bool {
		state := spec.Rollout
		if r.Time.Before(&state.Began) {
			return false
		}
		return changing(state) || slices.ContainsFunc(spec.Clusters, func(t hubv1.BindingTarget) bool {
			return t.State == hubv1.TargetPresent && cmp.Or(t.Revision, state.Revision) != state.Revision
		})
	})
}
