package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	mostMessage = 512 // maximum length of BindingRollout.Message, in characters
	mostReport  = 256 // maximum length of a cluster's report in the message, in characters
)

// cut shortens a text to the given number of characters.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return text
}

// join joins the parts that are not empty with "; ", and cuts the result to the maximum length of a message.
func join(parts ...string) string {
	set := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return cut(strings.Join(set, "; "), mostMessage)
}

// origin returns a text that explains why the clusters get an earlier template than that of the hub object. This is the
// case if only policies have changed since a rollback or an undo. The text is empty if the clusters get the template of
// the hub object.
func (s *step) origin() string {
	r := &s.rollout
	desired := s.revision(r.Revision)
	if r.Revision == r.Newest || desired == nil || desired.TemplateOf == 0 {
		return ""
	}
	why := fmt.Sprintf("as annotation %s asks", hubv1.RolloutUndoAnnotation)
	if r.RolledBack != 0 {
		why = fmt.Sprintf("because revision %d failed", r.RolledBack)
	}
	return fmt.Sprintf("revision %d has newer policies and the template of revision %d, %s", r.Revision, desired.TemplateOf, why)
}

// failure returns a message that says why the change has failed, and how a user can continue. bad are the failed
// clusters.
func (s *step) failure(bad []*target) string {
	t := bad[0]
	others := ""
	if n := len(bad) - 1; n > 0 {
		others = fmt.Sprintf("%d more failed", n)
	}
	skip := ""
	if t.Row.Away {
		skip = skipping(t)
	}
	return join(fmt.Sprintf("%s failed: %s", t.Cluster, s.report(t)), others, skip, waysOn)
}

const waysOn = "change the object, or use hansectl rollout undo or hansectl rollout promote"

func skipping(t *target) string {
	return fmt.Sprintf("to leave the cluster out, use hansectl rollout skip PLACEMENT %s", t.Cluster)
}

// desertion returns the message for a failed change whose current wave has no cluster left that could show whether the
// revision works.
func (s *step) desertion() string {
	skip := ""
	for t := range s.members(s.at) {
		skip = skipping(t)
		break
	}
	return join(fmt.Sprintf("revision %d failed, and no cluster of wave %s is left that can pass", s.rollout.Revision, s.waves[s.at].Name), skip, waysOn)
}

// report returns the last report of a failing cluster as text.
func (s *step) report(t *target) string {
	if t.Row.Away {
		return "the cluster does not answer"
	}
	late := fmt.Sprintf("not healthy within %.0f s", s.gate.timeout.Seconds())
	parts := []string{late, cmp.Or(t.Row.Reason, string(t.Row.Health)), t.Row.Message}
	switch {
	case s.broken(t):
		parts = parts[1:]
	case t.Row.Revision != s.rollout.Revision:
		parts = []string{late, fmt.Sprintf("it has not reported revision %d", s.rollout.Revision)}
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return cut(strings.Join(parts, ": "), mostReport)
}

// remarks returns a text about two kinds of clusters of the current wave. On some, an admin has paused the copy. Others
// have failed, although the wave goes on. The text names the first cluster of each kind, and is empty if there are
// none.
func (s *step) remarks() string {
	left := ""
	for t := range s.counted(s.at) {
		if left == "" && t.Holds == s.rollout.Revision && s.failing(t) {
			left = fmt.Sprintf("%s failed and is left out: %s", t.Cluster, s.report(t))
		}
	}
	return join(s.pausedByMember(s.at, s.at), left)
}

// pausedByMember returns a text that names a cluster whose admin has paused the copy for longer than the timeout of the
// healthGate. It looks at the waves from index from to index to, both included. The text is empty if there is no such
// cluster.
func (s *step) pausedByMember(from, to int) string {
	for _, t := range s.targets {
		if t.Wave < from || t.Wave > to || !t.Row.HeldByMember || t.Holds != s.rollout.Revision || s.healthy(t) || !s.counts(t) {
			continue
		}
		if s.rollingBack() && !s.began(t) {
			continue // the cluster never had the failed revision
		}
		if s.reached(latest(t.Since, s.rollout.Began.Time).Add(s.gate.timeout)) {
			return fmt.Sprintf("an admin of %s has paused the copy there", t.Cluster)
		}
	}
	return ""
}
