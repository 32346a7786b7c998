package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Steering converts a user's requests about the rollouts of a placement, such as an approval, to changes of the
// placement's annotations. It returns an error for a request that would have no effect.
type Steering struct {
	Placement hubv1.PlacementObject
	// Named is the name of the placement in errors, such as placement/web.
	Named string
	// Objects are the bindings of all objects that follow the placement.
	Objects []hubv1.BindingObject
}

// Request is a user's request about rollouts. It is only made if it would have an effect now.
type Request struct {
	// Objects is the number of objects whose change the request affects. Clusters is the number of clusters of the
	// placement.
	Objects, Clusters int
	// Change writes the request into the annotations of the placement.
	Change func(annotations map[string]string)
}

// ErrNoChange means that no change is in progress to which the request could apply.
var ErrNoChange = errors.New("no object of the placement is changing")

// maxNamed is the maximum number of clusters that the text of an error names.
const maxNamed = 20

// Follows reports whether the object of a binding follows a placement.
func Follows(b hubv1.BindingObject, p hubv1.PlacementObject) bool {
	ref := b.BindingSpec().PlacementRef
	return ref != nil && (ref.Kind == "ClusterPlacement") == (p.GetNamespace() == "") && ref.UID == p.GetUID()
}

// changes summarizes the changes in progress of all objects of the placement. latest is the start of the latest change,
// by the hub's clock. A request contains this time, so that it does not apply to later changes.
type changes struct {
	objects        int
	oldest, latest time.Time
	clusters       []string // clusters of all objects of the placement, sorted
}

// changes finds the changes in progress. If alsoRolledBack is true, it includes changes that were rolled back. It
// returns ErrNoChange if there are none.
func (s Steering) changes(alsoRolledBack bool) (changes, error) {
	var c changes
	for _, b := range s.Objects {
		for _, t := range b.BindingSpec().Clusters {
			c.clusters = append(c.clusters, t.Name)
		}
		r := b.BindingSpec().Rollout
		if !changing(r) && (!alsoRolledBack || r == nil || r.Phase != hubv1.RolloutRolledBack) {
			continue
		}
		if c.objects++; c.objects == 1 || r.Began.Time.Before(c.oldest) {
			c.oldest = r.Began.Time
		}
		if r.Began.After(c.latest) {
			c.latest = r.Began.Time
		}
	}
	slices.Sort(c.clusters)
	c.clusters = slices.Compact(c.clusters)
	if c.objects == 0 {
		return c, fmt.Errorf("%s: %w", s.Named, ErrNoChange)
	}
	return c, nil
}

func changing(r *hubv1.BindingRollout) bool {
	return r != nil && r.Phase != hubv1.RolloutComplete && r.Phase != hubv1.RolloutRolledBack
}

// State returns a digest of the placement's generation, its pause annotation, and its changes that are not complete. A
// caller compares digests to refuse a request that a user made about an older state. The digest stays the same while a
// change goes on from wave to wave.
func (s Steering) State() string {
	lines := []string{fmt.Sprintf("%s %d %s", s.Placement.GetUID(), s.Placement.GetGeneration(), s.Placement.GetAnnotations()[hubv1.RolloutPauseAnnotation])}
	for _, b := range s.Objects {
		if r := b.BindingSpec().Rollout; r != nil && r.Phase != hubv1.RolloutComplete {
			lines = append(lines, fmt.Sprintf("%s %s %s %d %d %s", b.GetUID(), b.GetNamespace(), b.GetName(), r.Revision, r.Newest, r.Began.UTC().Format(time.RFC3339)))
		}
	}
	slices.Sort(lines[1:])
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

// Pause sets the annotation that pauses the rollouts of a placement: no further clusters begin to change.
func Pause(annotations map[string]string) { annotations[hubv1.RolloutPauseAnnotation] = "true" }

// Resume removes the annotation that pauses the rollouts of a placement.
func Resume(annotations map[string]string) { delete(annotations, hubv1.RolloutPauseAnnotation) }

// Approve returns the request that the changes in progress may enter the wave with this name.
func (s Steering) Approve(wave string) (Request, error) {
	found, err := s.wave(wave)
	switch {
	case err != nil:
		return Request{}, err
	case found.Approval != hubv1.ApprovalManual:
		return Request{}, fmt.Errorf("wave %s of %s waits for no approval: its approval is %s", wave, s.Named, hubv1.ApprovalAutomatic)
	}
	c, err := s.changes(false)
	if err != nil {
		return Request{}, err
	}
	return c.entry(hubv1.RolloutApproveAnnotation, wave), nil
}

// Skip returns the request that the changes in progress do not wait for this cluster.
func (s Steering) Skip(cluster string) (Request, error) {
	c, err := s.changes(false)
	if err != nil {
		return Request{}, err
	}
	if !slices.Contains(c.clusters, cluster) {
		more := ""
		if n := len(c.clusters) - maxNamed; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return Request{}, fmt.Errorf("no object of %s goes to cluster %q: its clusters are %s%s", s.Named, cluster, strings.Join(c.clusters[:min(maxNamed, len(c.clusters))], ", "), more)
	}
	return c.entry(hubv1.RolloutSkipAnnotation, cluster), nil
}

// ErrNoReason means that a user requested a promotion without a reason.
var ErrNoReason = errors.New("the reason is missing: say why the waves are left out")

// SkipWave returns the request that the changes in progress do not wait for this wave.
func (s Steering) SkipWave(wave string) (Request, error) {
	if _, err := s.wave(wave); err != nil {
		return Request{}, err
	}
	c, err := s.changes(false)
	if err != nil {
		return Request{}, err
	}
	return c.entry(hubv1.RolloutSkipAnnotation, skippedWave+wave), nil
}

// wave returns the wave with this name, or an error with the names of all waves.
func (s Steering) wave(name string) (*hubv1.RolloutWave, error) {
	var names []string
	waves := s.Placement.PlacementSpec().Rollout.Waves
	for i := range waves {
		if names = append(names, waves[i].Name); waves[i].Name == name {
			return &waves[i], nil
		}
	}
	return nil, fmt.Errorf("%s has no wave %q: its waves are %s", s.Named, name, strings.Join(names, ", "))
}

// Promote returns the request that all clusters get the changes in progress at once, without waves. It also applies to
// changes that have failed or were rolled back.
func (s Steering) Promote(reason string) (Request, error) {
	reason = strings.Join(strings.Fields(reason), " ")
	if reason == "" {
		return Request{}, ErrNoReason
	}
	c, err := s.changes(true)
	if err != nil {
		return Request{}, err
	}
	value := c.latest.UTC().Format(time.RFC3339) + " " + reason
	return Request{c.objects, len(c.clusters), func(annotations map[string]string) { annotations[hubv1.RolloutPromoteAnnotation] = value }}, nil
}

// entry returns the request to add a name, such as that of a wave, to an annotation. The request applies only to the
// changes in progress.
func (c changes) entry(annotation, name string) Request {
	return Request{c.objects, len(c.clusters), func(annotations map[string]string) {
		annotations[annotation] = entries(annotations[annotation], name, c.latest, c.oldest)
	}}
}

// entries adds name@at to list, which has items of the form name@time. It replaces an item of the same name. oldest is
// the start of the oldest change in progress. Items with an earlier time are dropped, because they apply to no change
// any more.
func entries(list, name string, at, oldest time.Time) string {
	var kept []string
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		other, text, _ := strings.Cut(item, "@")
		if given, err := time.Parse(time.RFC3339, text); err == nil && other != name && !given.Before(oldest) {
			kept = append(kept, item)
		}
	}
	return strings.Join(append(kept, name+"@"+at.UTC().Format(time.RFC3339)), ",")
}

// ErrNothingPassed means that an undo without a revision number is impossible: no other revision has passed on all
// clusters.
var ErrNothingPassed = errors.New("no other revision has passed on all clusters")

// UndoTo returns the number of the revision to which an undo returns. to is the number that a user has named, and then
// also the result. If to is 0, the result is the newest revision, other than the current one, that has passed on all
// clusters.
func UndoTo(spec *hubv1.BindingSpec, to int64) (int64, error) {
	last := int64(0)
	for _, r := range spec.Revisions {
		if r.Passed && r.Number != spec.Rollout.Revision {
			last = max(last, r.Number)
		}
	}
	switch {
	case to != 0 && spec.Revision(to) == nil:
		return 0, fmt.Errorf("revision %d is gone: %s", to, stored(spec))
	case to != 0:
		return to, nil
	case last == 0 && len(spec.Revisions) < 2:
		return 0, fmt.Errorf("%w: %s", ErrNothingPassed, stored(spec))
	case last == 0:
		return 0, fmt.Errorf("%w: choose one with --to-revision; %s", ErrNothingPassed, stored(spec))
	}
	return last, nil
}

// stored returns a text with the numbers of the stored revisions, such as "the hub stores revisions 3, 4 and 5
// (current)".
func stored(spec *hubv1.BindingSpec) string {
	var numbers []string
	for _, r := range spec.Revisions {
		number := fmt.Sprint(r.Number)
		if spec.Rollout != nil && r.Number == spec.Rollout.Revision {
			number += " (current)"
		}
		numbers = append(numbers, number)
	}
	switch last := len(numbers) - 1; last {
	case -1:
		return "the hub stores no revision"
	case 0:
		return "the hub stores only revision " + numbers[0]
	default:
		return "the hub stores revisions " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
	}
}

// Undone reports whether the clusters already get this revision. An undo to this revision would then have no effect.
func Undone(spec *hubv1.BindingSpec, revision int64) bool {
	return spec.Rollout.Revision == revision && spec.Rollout.Failed != revision
}

// Undo returns a function that sets the annotation hanse.dev/rollout-undo of an object: its clusters return to the
// given revision. The value contains the time, so that a second request for the same revision is a new value. For a
// CustomResourceDefinition, acknowledged are the versions that the revision may lack although clusters store objects at
// them. The acknowledgement of an earlier undo ends.
func Undo(revision int64, now time.Time, acknowledged ...string) func(annotations map[string]string) {
	value := fmt.Sprintf("%d@%s", revision, now.UTC().Format(time.RFC3339))
	return func(annotations map[string]string) {
		annotations[hubv1.RolloutUndoAnnotation] = value
		delete(annotations, hubv1.RolloutUndoAcknowledgeAnnotation)
		if len(acknowledged) > 0 {
			annotations[hubv1.RolloutUndoAcknowledgeAnnotation] = strings.Join(acknowledged, ",")
		}
	}
}
