package schedule

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// decision is the part of a binding's status that only scheduling knows.
type decision struct {
	scheduled metav1.Condition // without a time
	rejected  *hubv1.DecisionStatus
	others    []string
}

// decisions are the last ones of this process.
type decisions struct {
	onChange func(binding types.NamespacedName, asBefore bool)

	mu   sync.RWMutex
	last map[types.NamespacedName]decision
}

// Decision returns what was last said of a binding beside its spec: the condition Scheduled without a time, the rejected clusters
// and the placements that match and are not followed. known is false until this process has decided. Nothing of it is to be changed.
func (s *Scheduler) Decision(binding types.NamespacedName) (scheduled metav1.Condition, rejected *hubv1.DecisionStatus, otherPlacements []string, known bool) {
	d, ok := s.decisions.get(binding)
	return d.scheduled, d.rejected, d.others, ok
}

func (d *decisions) get(key types.NamespacedName) (decision, bool) {
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

// set returns whether the decision is another one than before, and whether spec, status and reason are as they were: then only its words are others.
func (d *decisions) set(key types.NamespacedName, now decision) (changed, asBefore bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, known := d.last[key]
	if known && reflect.DeepEqual(before, now) {
		return false, true
	}
	if d.last == nil {
		d.last = map[types.NamespacedName]decision{}
	}
	d.last[key] = now
	was, is := before.scheduled, now.scheduled
	return true, known && was.ObservedGeneration == is.ObservedGeneration && was.Status == is.Status && was.Reason == is.Reason
}

// told are the reasons that a user hears of through an event on his object.
var told = map[string]bool{
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
}

// announce publishes the decision and tells of it if it is another phase than before. b is the binding after the write, nil if
// there is none.
func (s *Scheduler) announce(f facts, p plan, b hubv1.BindingObject) {
	key := f.id.BindingKey()
	if p.scheduled.Reason == "" {
		s.decisions.forget(key)
		return
	}
	before := s.phase(f)
	now := decision{scheduled: p.scheduled, rejected: p.rejected, others: p.others}
	if b != nil {
		now.scheduled.ObservedGeneration = b.GetGeneration()
	}
	changed, asBefore := s.decisions.set(key, now)
	if changed && b != nil && s.decisions.onChange != nil {
		s.decisions.onChange(key, asBefore)
	}
	if told[p.scheduled.Reason] && p.scheduled.Reason != before && f.template != nil {
		s.event(f.template, p.scheduled.Reason, "Schedule", p.scheduled.Message)
	}
	s.leftBehind(f, p.left)
	if len(p.leaves) > 0 && f.template != nil {
		s.event(f.template, hubv1.ReasonEvicted, "Schedule", evictedText(p))
	}
}

// phase is the reason of the last decision, of this process or of the one before.
func (s *Scheduler) phase(f facts) string {
	if last, ok := s.decisions.get(f.id.BindingKey()); ok {
		return last.scheduled.Reason
	}
	if f.binding != nil {
		if c := meta.FindStatusCondition(f.binding.BindingStatus().Conditions, hubv1.ConditionScheduled); c != nil {
			return c.Reason
		}
	}
	return ""
}

// leftBehind tells of copies that nobody will withdraw, at most three by name.
func (s *Scheduler) leftBehind(f facts, left []string) {
	if len(left) == 0 {
		return
	}
	var regarding runtime.Object = f.binding
	if f.template != nil {
		regarding = f.template
	}
	const named = 3
	text := strings.Join(left[:min(named, len(left))], "; ")
	if more := len(left) - named; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	s.event(regarding, "LeftBehind", "Withdraw", f.id.String()+" is left as it is on "+text)
}

func (s *Scheduler) event(regarding runtime.Object, reason, action, note string) {
	s.Recorder.Eventf(regarding, nil, corev1.EventTypeWarning, reason, action, "%s", short(note))
}

// short cuts a text to what conditions and events show.
func short(text string) string {
	const longest = 1000
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "")
}
