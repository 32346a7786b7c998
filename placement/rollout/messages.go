package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	maxMessage = 512 // maximum length of BindingRollout.Message, in characters
	maxReport  = 256 // maximum length of a cluster's report in the message, in characters
)

// join joins the parts that are not empty with "; ", and cuts the result to the maximum length of a message.
func join(parts ...string) string {
	set := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return hubv1.CutMessage(strings.Join(set, "; "), maxMessage)
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

// StillHas returns a text about an object whose clusters have an older revision than the hub object. newest is the
// revision of the hub object.
func StillHas(newest int64) string {
	return fmt.Sprintf("the hub object still has revision %d: correct it in Git, or the next change starts from there", newest)
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
		skip = s.skipping(t)
	}
	return join(fmt.Sprintf("%s failed: %s", t.Cluster, s.report(t)), others, skip, s.waysOn())
}

// command returns a command of hansectl rollout that a user can paste.
func command(verb, arguments, namespace string) string {
	text := "hansectl rollout " + verb + " " + arguments
	if namespace != "" {
		text += " -n " + namespace
	}
	return text
}

// verb returns the command about the placement. argument is its second argument, or empty.
func (n Names) verb(verb, argument string) string {
	return command(verb, strings.TrimSpace(n.Placement+" "+argument), n.PlacementNamespace)
}

// Leaving returns a text with the command that lets no wave wait for the cluster.
func (n Names) Leaving(cluster string) string {
	return "to leave the cluster out, use " + n.verb("skip", cluster)
}

// undo returns the command that returns an object to the revision before. object is its name in Progress, "Kind
// namespace/name".
func (n Names) undo(object string) string {
	kind, name, _ := strings.Cut(object, " ")
	namespace, short, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace, short = "", name
	}
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
	return command("undo", kind+" "+short, namespace)
}

// waysOn returns a text that says how a user can continue after a failure.
func (s *step) waysOn() string {
	n := s.in.Names
	change := "change the object, or use " + command("undo", n.Object, n.ObjectNamespace)
	switch {
	case n.Whole:
		change = "change " + n.Bundle + ", or use " + command("undo", n.Object, n.ObjectNamespace)
	case n.Bundle != "": // only its bundle returns it to an earlier content
		change = "change its " + n.Bundle
	}
	return fmt.Sprintf("%s, or %s", change, n.verb("promote", `--full --reason TEXT`))
}

func (s *step) skipping(t *target) string { return s.in.Names.Leaving(t.Cluster) }

func (s *step) pausedMessage() string {
	return "a user has paused the rollouts: " + s.in.Names.verb("resume", "")
}

// keptMessage returns a text about clusters that keep their revision, and for which the current wave waits. It names
// the first one.
func (s *step) keptMessage(kept []*target) string {
	t, others := kept[0], ""
	if n := len(kept) - 1; n > 0 {
		others = fmt.Sprintf("and for %d more clusters", n)
	}
	state := fmt.Sprintf("keeps revision %d", t.Holds)
	if t.Holds == s.rollout.Revision {
		state = fmt.Sprintf("is not healthy with revision %d", t.Holds)
	}
	return join(fmt.Sprintf("wave %s waits for %s, which %s and %s", s.waves[s.at].Name, t.Cluster, state, t.Kept), others, s.skipping(t))
}

// lostMessage returns a text about a current wave that has begun and has no cluster any more.
func (s *step) lostMessage() string {
	name := s.waves[s.at].Name
	return fmt.Sprintf("wave %s has begun, and all its clusters have left: wait for a cluster that joins the wave, or use %s",
		name, s.in.Names.verb("skip", "--wave "+name))
}

// lagging returns a text about a cluster that has another revision after the change is complete. It is empty if there
// is no such cluster.
func (s *step) lagging() string {
	first, others := (*target)(nil), -1
	for _, t := range s.targets {
		if t.Holds != s.rollout.Revision && !t.Evicting {
			if others++; first == nil {
				first = t
			}
		}
	}
	if first == nil {
		return ""
	}
	open, next := s.open()
	why := "waits for the end of the pause: " + s.in.Names.verb("resume", "")
	switch {
	case first.Kept != "":
		why = first.Kept
	case s.in.Verbs.Pause:
	case !open && next.IsZero():
		why = "waits for a window, and none ever opens: correct the windows of the placement"
	case !open:
		why = "waits for the window that opens at " + next.Format(time.RFC3339)
	}
	text := fmt.Sprintf("but %s has revision %d, and %s", first.Cluster, first.Holds, why)
	if others > 0 {
		text += fmt.Sprintf("; %d more clusters have another revision", others)
	}
	return text
}

// desertion returns the message for a failed change whose current wave has no cluster left that could show whether the
// revision works.
func (s *step) desertion() string {
	skip := ""
	for t := range s.members(s.at) {
		skip = s.skipping(t)
		break
	}
	return join(fmt.Sprintf("revision %d failed, and wave %s has no cluster left that can pass", s.rollout.Revision, s.waves[s.at].Name), skip, s.waysOn())
}

// late returns a text about clusters that have failed with a promoted revision. It names the first one, and is empty if
// there are none.
func (s *step) late() string {
	first, others := (*target)(nil), -1
	for _, t := range s.targets {
		if !s.counts(t) || !s.failing(t) {
			continue
		}
		if others++; first == nil {
			first = t
		}
	}
	if first == nil {
		return ""
	}
	text := fmt.Sprintf("%s: %s", first.Cluster, s.report(first))
	if others > 0 {
		text += fmt.Sprintf("; %d more clusters failed", others)
	}
	return text
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
		parts = []string{late, fmt.Sprintf("the cluster has not reported revision %d", s.rollout.Revision)}
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return hubv1.CutMessage(strings.Join(parts, ": "), maxReport)
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
