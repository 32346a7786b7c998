package view

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Comparison compares the decision that the hub has recorded with a replay: hansectl makes the decision again and
// writes nothing.
type Comparison struct {
	// Scheduled is the condition Scheduled according to the decision that hansectl has made again. Recorded is the
	// condition Scheduled that the hub has written.
	Scheduled ConditionSummary  `json:"scheduled"`
	Recorded  *ConditionSummary `json:"recorded,omitempty"`
	Same      bool              `json:"same"`
	// Differences tells how the binding would change if the hub carried out the decision that hansectl has made again.
	Differences []string `json:"differences,omitempty"`

	since metav1.Time // LastTransitionTime of Recorded
}

// ConditionSummary is the status, reason and message of a condition.
type ConditionSummary struct {
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

func comparisonOf(binding hubv1.BindingObject, replay decide.Replayed) Comparison {
	c := Comparison{
		Scheduled:   ConditionSummary{replay.Scheduled.Status, replay.Scheduled.Reason, replay.Scheduled.Message},
		Differences: differences(binding.BindingSpec(), &replay.Spec),
	}
	c.Same = len(c.Differences) == 0
	if s := meta.FindStatusCondition(binding.BindingStatus().Conditions, hubv1.ConditionScheduled); s != nil {
		c.Recorded, c.since = &ConditionSummary{s.Status, s.Reason, s.Message}, s.LastTransitionTime
	}
	return c
}

// differences returns the changes that a new decision would make to the targets of the binding.
func differences(before, after *hubv1.BindingSpec) []string {
	var out []string
	if a, b := followedBy(before), followedBy(after); a != b {
		out = append(out, fmt.Sprintf("the binding follows %s, the replay %s", a, b))
	}
	names := map[string]bool{}
	for _, spec := range []*hubv1.BindingSpec{before, after} {
		for _, t := range spec.Clusters {
			names[t.Name] = true
		}
	}
	for name := range names {
		if a, b := holding(before, name), holding(after, name); a != b {
			out = append(out, fmt.Sprintf("%s: %s in the binding, %s in the replay", name, a, b))
		}
	}
	slices.Sort(out)
	return out
}

func followedBy(spec *hubv1.BindingSpec) string {
	ref := spec.PlacementRef
	if ref == nil {
		return "no placement"
	}
	return ref.Kind + "/" + ref.Name
}

// holding describes as text whether a binding has the cluster as a target: "selected", "evicting" or "not selected".
func holding(spec *hubv1.BindingSpec, cluster string) string {
	if isEvicting(spec, cluster) {
		return "evicting"
	}
	if !holds(spec, cluster) {
		return "not selected"
	}
	if n := spec.Target(cluster).Replicas; n != nil {
		return fmt.Sprintf("selected with %d replicas", *n)
	}
	return "selected"
}

func holds(spec *hubv1.BindingSpec, cluster string) bool {
	t := spec.Target(cluster)
	return t != nil && t.State == hubv1.TargetPresent
}

func isEvicting(spec *hubv1.BindingSpec, cluster string) bool {
	t := spec.Target(cluster)
	return t != nil && t.State == hubv1.TargetEvicting
}
