package schedule

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// decisions has the last decision of this process for each binding.
type decisions struct {
	onChange func(binding types.NamespacedName, asBefore bool)

	mu   sync.RWMutex
	last map[types.NamespacedName]decide.Status
}

// Decision returns the parts of the last decision that hub/report shows in the binding's status. These are the
// condition Scheduled without a time, the rejected clusters, and the matching placements that the object does not
// follow. known is false until this process has decided on the object. The caller must not change the values.
func (s *Scheduler) Decision(binding types.NamespacedName) (scheduled metav1.Condition, rejected *hubv1.DecisionStatus, otherPlacements []string, known bool) {
	d, ok := s.results.decisions.get(binding)
	return d.Scheduled, d.Decision, d.OtherPlacements, ok
}

func (d *decisions) get(key types.NamespacedName) (decide.Status, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	last, ok := d.last[key]
	return last, ok
}

func (d *decisions) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.last, key)
}

// set stores a decision. changed is true if it differs from the last one. asBefore is true if the condition Scheduled
// has the same status, reason and generation as before.
func (d *decisions) set(key types.NamespacedName, now decide.Status) (changed, asBefore bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, known := d.last[key]
	if known && reflect.DeepEqual(before, now) {
		return false, true
	}
	if d.last == nil {
		d.last = map[types.NamespacedName]decide.Status{}
	}
	d.last[key] = now
	was, is := before.Scheduled, now.Scheduled
	return true, known && was.ObservedGeneration == is.ObservedGeneration && was.Status == is.Status && was.Reason == is.Reason
}

// eventReasons are the reasons of the condition Scheduled for which an object gets a Warning event.
var eventReasons = map[string]bool{
	hubv1.ReasonNoClusterSelected: true,
	hubv1.ReasonHubWouldRun:       true,
	hubv1.ReasonNamespaceRefused:  true,
	hubv1.ReasonSecretTypeRefused: true,
	hubv1.ReasonPlacementGone:     true,
	hubv1.ReasonDivisionRefused:   true,
	hubv1.ReasonOverrideInvalid:   true,
	hubv1.ReasonReplicasUnplaced:  true,
	hubv1.ReasonNoReplacement:     true,
	hubv1.ReasonTooManyAway:       true,
	hubv1.ReasonTooManyClusters:   true,
}

// announce stores the decision for hub/report, and records an event if the reason has changed. It does nothing if the
// decision brings no news, because removals wait for the verdict of the guard.
func (r *run) announce(context.Context) error {
	if r.released || r.after != nil && !r.wrote && awaitsVerdict(r.out) {
		return nil
	}
	key := r.in.Object.ID.BindingKey()
	if r.out.Status.Scheduled.Reason == "" {
		r.s.results.decisions.forget(key)
		return nil
	}
	before := r.s.phase(r.in)
	now := r.out.Status
	if r.after != nil {
		now.Scheduled.ObservedGeneration = r.after.GetGeneration()
	}
	changed, asBefore := r.s.results.decisions.set(key, now)
	if changed && r.after != nil && r.s.results.decisions.onChange != nil {
		r.s.results.decisions.onChange(key, asBefore)
	}
	if eventReasons[r.out.Status.Scheduled.Reason] && r.out.Status.Scheduled.Reason != before && r.in.Object.Template != nil {
		r.s.event(regarding(r.in.Object.Template), followed(r.in, r.out), r.out.Status.Scheduled.Reason, "Schedule", r.out.Status.Scheduled.Message)
	}
	r.leftBehind(r.out.LeftBehind)
	r.tellRollout()
	if len(r.out.Claims.Evicted) > 0 && r.in.Object.Template != nil {
		r.s.event(regarding(r.in.Object.Template), followed(r.in, r.out), hubv1.ReasonEvicted, "Schedule", evictedText(r.out))
	}
	return nil
}

// phase returns the reason in the condition Scheduled of the last decision, even if an earlier leader made this
// decision.
func (s *Scheduler) phase(in decide.Input) string {
	if last, ok := s.results.decisions.get(in.Object.ID.BindingKey()); ok {
		return last.Scheduled.Reason
	}
	if in.Binding != nil {
		if c := meta.FindStatusCondition(in.Binding.BindingStatus().Conditions, hubv1.ConditionScheduled); c != nil {
			return c.Reason
		}
	}
	return ""
}

// leftBehind records an event about copies that stay on their clusters for ever. It names at most three clusters.
func (r *run) leftBehind(left []string) {
	if len(left) == 0 {
		return
	}
	var about runtime.Object = r.in.Binding
	if r.in.Object.Template != nil {
		about = regarding(r.in.Object.Template)
	}
	const named = 3
	text := strings.Join(left[:min(named, len(left))], "; ")
	if more := len(left) - named; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	r.s.event(about, followed(r.in, r.out), "LeftBehind", "Withdraw", r.in.Object.ID.String()+" keeps its copy on "+text)
}

// tellRollout records the events about the step of the object's rollout that the decision has made. One of them is
// about a new revision that replaces an earlier one whose rollout has not finished on all clusters.
func (r *run) tellRollout() {
	if r.in.Binding == nil || r.in.Object.Template == nil || r.out.Spec == nil || r.in.Set != nil {
		return // of a bundle as a whole, its own steps tell
	}
	of := ""
	if hubv1.BundleOf(r.in.Object.Template) != nil {
		of = r.in.Object.ID.String() + ": "
	}
	record := func(e rollout.Event) {
		r.s.opts.Recorder.Eventf(regarding(r.in.Object.Template), followed(r.in, r.out), e.Type, e.Reason, e.Action, "%s", decide.Short(of+e.Note))
	}
	for _, revision := range r.out.Spec.Revisions {
		if before := r.in.Spec().Revision(revision.Number); revision.SupersededBy == 0 || before == nil || before.SupersededBy != 0 {
			continue
		}
		record(rollout.Event{
			Type: corev1.EventTypeNormal, Reason: hubv1.ReasonSuperseded, Action: "RollOut",
			Note: fmt.Sprintf("revision %d was superseded by revision %d, and had not passed on all clusters", revision.Number, revision.SupersededBy),
		})
	}
	for _, e := range rollout.Events(r.in.Spec().Rollout, r.out.Spec.Rollout) {
		record(e)
	}
}

func (s *Scheduler) event(about, related runtime.Object, reason, action, note string) {
	s.opts.Recorder.Eventf(about, related, corev1.EventTypeWarning, reason, action, "%s", decide.Short(note))
}

// followed returns the placement that the decision follows. Events name it as their related object.
func followed(in decide.Input, p decide.Plan) runtime.Object {
	if p.Spec != nil {
		return p.Spec.PlacementRef.Related()
	}
	return in.Spec().PlacementRef.Related()
}

// regarding returns the object to which events about a hub object belong. This is the hub object itself, or the bundle
// for an object of a bundle.
func regarding(template *unstructured.Unstructured) runtime.Object {
	if hubv1.BundleOf(template) == nil {
		return template
	}
	ref := decide.ReferenceOf(template)
	return ref.Regarding(template.GetNamespace())
}

// evictedText describes the evicted clusters and the clusters that replace them.
func evictedText(p decide.Plan) string {
	var parts []string
	for _, name := range p.Claims.Evicted {
		e := p.Spec.Target(name)
		if e == nil || e.Evicting == nil {
			continue
		}
		why := "did not answer for too long"
		if e.Evicting.Reason == hubv1.ReasonDrained {
			why = "is drained"
		}
		parts = append(parts, fmt.Sprintf("%s %s: %s", name, why, takers(e.Evicting.Replacements)))
	}
	return strings.Join(parts, "; ")
}

// takers returns a text about the clusters that replace an evicted cluster, such as "b, c and 2 more replace it".
func takers(replacements []hubv1.Replacement) string {
	const named = 3
	var names []string
	for _, r := range replacements[:min(named, len(replacements))] {
		names = append(names, r.Cluster)
	}
	switch more := len(replacements) - named; {
	case len(names) == 0:
		return "the other clusters replace it"
	case more > 0:
		return fmt.Sprintf("%s and %d more replace it", strings.Join(names, ", "), more)
	case len(names) == 1:
		return names[0] + " replaces it"
	}
	return strings.Join(names, ", ") + " replace it"
}
