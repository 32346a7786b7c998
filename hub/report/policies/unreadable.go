package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// unlistedAfter and brokenAfter are how long the watch of a kind must fail before the condition Scheduled says so.
// unlistedAfter applies to a kind without a first list, of which the hub knows no objects. brokenAfter applies to a
// kind of which only later changes are missing. Thus a restart of the hub or of its API server changes no status.
const (
	unlistedAfter = 10 * time.Second
	brokenAfter   = time.Minute
)

// unreadableKinds returns why the hub cannot read the objects of selected kinds, one text for each selector. An example
// is a kind whose conversion webhook does not answer. again is the time until the result may change without an event,
// or 0. Two failures are left to the condition Accepted: the hub does not serve the kind, and the hub lacks the right.
func unreadableKinds(policy hubv1.PlacementObject, templates Templates, now time.Time) (causes []string, again time.Duration) {
	look := func(field string, gk schema.GroupKind) {
		state, watched := templates.State(gk)
		if !watched || slices.Contains([]string{"", hubv1.ReasonKindNotServed, hubv1.ReasonForbidden}, state.Reason) {
			return
		}
		patience := unlistedAfter
		if state.Synced {
			patience = brokenAfter
		}
		if left := patience - now.Sub(state.Since); left > 0 {
			again = earlier(again, left)
			return
		}
		causes = append(causes, fmt.Sprintf("%s: the hub cannot read %s: %s: %s", field, gk, state.Reason, strings.ReplaceAll(state.Message, "; ", ", ")))
	}
	spec := policy.PlacementSpec()
	for i, s := range spec.ResourceSelectors {
		switch field := fmt.Sprintf("resourceSelectors[%d]", i); {
		case s.APIGroup == hubv1.GroupVersion.Group:
		case s.Kind == "*":
			for _, gk := range templates.Wanted(s.APIGroup) {
				look(field, gk)
			}
		default:
			look(field, schema.GroupKind{Group: s.APIGroup, Kind: s.Kind})
		}
	}
	for i, r := range spec.References {
		if r.Kind != "" && r.APIGroup != hubv1.GroupVersion.Group {
			look(fmt.Sprintf("references[%d]", i), schema.GroupKind{Group: r.APIGroup, Kind: r.Kind})
		}
	}
	return causes, again
}

// withUnreadable adds to the condition Scheduled the kinds whose objects the hub cannot read. The condition becomes
// Unknown, because the hub does not know how many objects of these kinds exist. If an object of another kind cannot be
// scheduled, the condition stays False.
func withUnreadable(c metav1.Condition, causes []string) metav1.Condition {
	switch {
	case len(causes) == 0:
		return c
	case c.Status == metav1.ConditionFalse:
		c.Message = strings.Join(append([]string{c.Message}, causes...), "; ")
	default:
		c.Status, c.Reason = metav1.ConditionUnknown, hubv1.ReasonKindUnreadable
		c.Message = strings.Join(append(slices.Clone(causes), c.Message), "; ")
	}
	return c
}

// earlier returns the shorter of two waits. 0 means that there is no wait.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
