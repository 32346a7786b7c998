package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Write writes the status as text.
func (s Status) Write(w io.Writer, now time.Time) { s.write(w, now, false) }

// WriteWide writes the status as text with all columns of the rows.
func (s Status) WriteWide(w io.Writer, now time.Time) { s.write(w, now, true) }

// Undated returns the status as text, with the same fixed time in place of every timestamp. The caller compares two
// such texts: they differ only if something other than an age has changed.
func (s Status) Undated(wide bool) string {
	now := metav1.Unix(1, 0)
	dated := func(t *metav1.Time) *metav1.Time {
		if t == nil {
			return nil
		}
		return &now
	}
	s.Clusters = slices.Clone(s.Clusters)
	for i := range s.Clusters {
		r := &s.Clusters[i]
		r.LastObservedTime, r.LastTransitionTime = dated(r.LastObservedTime), dated(r.LastTransitionTime)
	}
	if s.Silence != nil {
		s.Silence = &Silence{Since: dated(s.Silence.Since)}
	}
	if s.Rollout != nil {
		s.Rollout = s.Rollout.DeepCopy()
		s.Rollout.Since = now
	}
	if b := s.BundleRollout; b != nil {
		s.BundleRollout = &BundleRollout{b.Bundle, *b.DeepCopy()}
		s.BundleRollout.Since = now
	}
	var text strings.Builder
	s.write(&text, now.Time, wide)
	return text.String()
}

func (s Status) write(w io.Writer, now time.Time, wide bool) {
	fmt.Fprintln(w, strings.Join(s.Headline(), gap))
	if s.Silence != nil {
		line(w, "Hub", s.Silence.Text(now))
	}
	if s.NotFederated != nil {
		s.NotFederated.write(w)
		return
	}
	fmt.Fprintln(w, strings.Join(s.summary(), gap))
	if len(s.Clusters) > 0 {
		header := []string{"CLUSTER", "REGION", "GEN"}
		if s.Rollout != nil {
			header = append(header, "REV")
		}
		header = append(header, "APPLIED", "READY", "HEALTH", "AS OF")
		if wide {
			header = append(header, "STATE", "SINCE", "UID", "DIGEST")
		}
		table(w, append(header, "WHY"), s.rows(now, wide))
	}
	for _, l := range s.lines(s.rollout(now), wide) {
		line(w, l.Name, l.Text)
	}
}

// Line is a line below a table: a name and a text.
type Line struct{ Name, Text string }

// Lines returns the lines about the whole object, without ages. It leaves out lines without a text.
func (s Status) Lines() []Line {
	rollout := ""
	switch {
	case s.BundleRollout != nil:
		rollout = s.BundleRollout.text()
	case s.Rollout != nil:
		rollout = inShort(s.Rollout)
	}
	return filled(s.lines(rollout, false))
}

func filled(all []Line) []Line {
	return slices.DeleteFunc(all, func(l Line) bool { return l.Text == "" })
}

// Summed returns the counts of the object's clusters and replicas as texts. It returns none if the object has no
// binding.
func (s Status) Summed() []string {
	if s.Federated.Summary == nil {
		return nil
	}
	return s.summary()
}

// RowText has the state of an object on one cluster as texts, one for each column of a table.
type RowText struct{ Generation, Revision, Ready, Health, AsOf, Why string }

// TextOf returns the texts of r, which is the state of the object on one cluster.
func (s Status) TextOf(r Row, now time.Time) RowText {
	text := RowText{
		Generation: r.generation(s.Object.Generation), Ready: r.ready(), Health: r.health(), AsOf: r.asOf(now),
		Why: r.why(),
	}
	if s.Rollout != nil {
		text.Revision = r.revision(s.Rollout.Newest)
	}
	return text
}

func (s Status) lines(rollout string, wide bool) []Line {
	return []Line{
		{"Regions", s.regions(wide)},
		{"On object", s.onObject(wide)},
		{"Scheduled", s.scheduled()},
		{"Not sent", s.notSent()},
		{"Rollout", rollout},
		{"Also", s.others()},
		{"Rows", s.truncated()},
		{"Waiting", s.waits()},
		{"Give up", s.giveUp()},
	}
}

// notSent returns the metadata of the hub object that its copies do not get. It says what this means for finalizers.
func (s Status) notSent() string {
	text := strings.Join(s.NotSent, ", ")
	if slices.ContainsFunc(s.NotSent, func(what string) bool { return strings.HasPrefix(what, "finalizer ") }) {
		text += ": finalizers act on the hub only, where a client must remove them before the object is deleted; copies have no finalizers"
	}
	return text
}

// Text says what it means for the displayed state that no hub runs: the state is old, and no change reaches a member.
func (s Silence) Text(now time.Time) string {
	const so = "no change reaches a member; see kubectl get pods -n " + hubv1.SystemNamespace
	if s.Since == nil {
		return "no hub has run yet, or its Lease is gone: " + so
	}
	return fmt.Sprintf("no hub has run for %s: the state is not newer, and %s", age(*s.Since, now), so)
}

// Headline returns the parts of the first line.
func (s Status) Headline() []string {
	name := s.Object.Name
	if s.Object.Namespace != "" {
		name = s.Object.Namespace + "/" + name
	}
	parts := []string{s.Object.Kind + " " + name}
	if s.Object.Bundle != "" {
		parts = append(parts, "in "+s.Object.Bundle)
	}
	switch s.Object.State {
	case Deleted:
		parts = append(parts, "deleted")
	case Deleting:
		parts = append(parts, fmt.Sprintf("generation %d, being deleted", s.Object.Generation))
	default:
		if s.Object.Generation != 0 { // ConfigMaps have no generation
			parts = append(parts, fmt.Sprintf("generation %d", s.Object.Generation))
		}
	}
	if s.NotFederated != nil {
		return append(parts, "not federated")
	}
	if going := s.withdrawing(); going != "" {
		parts = append(parts, going)
	}
	if p := s.Placement; p != nil {
		parts = append(parts, p.Kind+"/"+p.Name)
	}
	if s.Object.State == Deleted {
		return parts
	}
	return append(parts, "status: "+s.StatusTo.Mode)
}

// withdrawing returns the number of clusters from which the object is being withdrawn, as text. It returns an empty
// text if there are none.
func (f Federated) withdrawing() string {
	absent := 0
	for _, r := range f.Clusters {
		if r.State == hubv1.TargetAbsent {
			absent++
		}
	}
	return withdrawing(absent, len(f.Clusters))
}

func (s Status) summary() []string {
	var parts []string
	if s.Unplaced != nil {
		parts = append(parts, s.Unplaced.text())
	}
	parts = append(parts,
		fmt.Sprintf("APPLIED %d/%d", s.Summary.Applied, s.Summary.Desired),
		fmt.Sprintf("HEALTHY %d/%d", s.Summary.Healthy, s.Summary.Desired),
	)
	if r := s.Replicas; r != nil {
		text := fmt.Sprintf("REPLICAS %d/%d live", r.ReadyLive, r.Total)
		if r.ReadyLastKnown > 0 {
			text += fmt.Sprintf(", %d last known", r.ReadyLastKnown)
		}
		parts = append(parts, text)
	}
	return append(parts, s.healthy())
}

// healthy returns the condition Healthy as text. It is Unknown if the condition says that all clusters are healthy, and
// some of them do not answer now: the hub writes that into the condition some seconds later.
func (s Status) healthy() string {
	healthy := "Healthy=Unknown (not yet reported)"
	if c := meta.FindStatusCondition(s.Conditions, hubv1.ConditionHealthy); c != nil {
		if away := s.unobserved(); c.Status == metav1.ConditionTrue && len(away) > 0 {
			return "Healthy=Unknown (not observed now: " + firstClusters(away) + ")"
		}
		var details []string
		// The reason HealthyEverywhere covers only the clusters that get the object. It is not printed if some selected
		// clusters do not get the object.
		if s.Unplaced == nil || c.Reason != hubv1.ReasonHealthyEverywhere {
			details = append(details, c.Reason)
		}
		if c.ObservedGeneration > 0 && c.ObservedGeneration < s.decided {
			details = append(details, "before the last decision")
		}
		healthy = fmt.Sprintf("Healthy=%s", c.Status)
		if len(details) > 0 {
			healthy += " (" + strings.Join(details, ", ") + ")"
		}
	}
	return healthy
}

// unobserved returns the clusters that shall have the object and whose rows may be out of date.
func (s Status) unobserved() []string {
	var out []string
	for _, r := range s.Clusters {
		if r.State == hubv1.TargetPresent && r.lastKnown() {
			out = append(out, r.Cluster)
		}
	}
	return out
}

func (s Status) rows(now time.Time, wide bool) [][]string {
	var out [][]string
	for _, r := range s.Clusters {
		row := []string{r.Cluster, r.Region, r.generation(s.Object.Generation)}
		if s.Rollout != nil {
			row = append(row, r.revision(s.Rollout.Newest))
		}
		row = append(row, string(r.Applied), r.ready(), r.health(), r.asOf(now))
		if wide {
			row = append(row, string(r.State), since(r.LastTransitionTime, now), string(r.UID), r.Digest)
		}
		out = append(out, append(row, r.why()))
	}
	return out
}

func since(t *metav1.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return age(*t, now)
}

func (r Row) generation(hub int64) string {
	switch {
	case r.Generation == 0:
		return ""
	case hub == 0: // the hub object is gone
		return strconv.FormatInt(r.Generation, 10)
	}
	return fmt.Sprintf("%d/%d", r.Generation, hub)
}

// revision returns the cluster's revision and the newest revision as text: "6/7".
func (r Row) revision(newest int64) string {
	if r.Revision == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.Revision, newest)
}

func (r Row) ready() string {
	if r.Ready == nil && r.Replicas == nil {
		return ""
	}
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return strconv.FormatInt(*n, 10)
	}
	text := number(r.Ready) + "/" + number(r.Replicas)
	if r.lastKnown() || r.Health == hubv1.HealthUnknown {
		text += "?"
	}
	return text
}

func (r Row) health() string {
	switch {
	case r.State == hubv1.TargetAbsent:
		return ""
	case r.lastKnown() && r.Health != hubv1.HealthUnknown:
		return string(r.Health) + "?"
	}
	return string(r.Health)
}

func (r Row) asOf(now time.Time) string {
	return asOf(r.LastObservedTime == nil && !r.lastKnown() && !r.noRow && !r.unsure, r.LastObservedTime, now)
}

func why(reason, message string) string {
	if message == "" {
		return reason
	}
	if reason == "" {
		return message
	}
	return reason + ": " + message
}

func (s Status) regions(wide bool) string {
	var parts []string
	for _, r := range s.Regions {
		text := fmt.Sprintf("%s %d/%d", cmp.Or(r.Region, "(no region)"), r.Healthy, r.Total)
		if wide && r.Replicas != nil && r.ReadyReplicas != nil {
			text += fmt.Sprintf(", %d/%d replicas", *r.ReadyReplicas, *r.Replicas)
		}
		if r.Unknown > 0 {
			text += fmt.Sprintf(" (%d unknown)", r.Unknown)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, gap)
}

// onObject describes the merged status on the hub object. It names all fields that were left out only if wide is true,
// because a kind may have many of them.
func (s Status) onObject(wide bool) string {
	switch {
	case s.StatusTo.Mode == string(hubv1.StatusBindingOnly):
		if s.StatusTo.Message == "" {
			return "nothing is written: " + s.StatusTo.Reason
		}
		return fmt.Sprintf("nothing is written: %s: %s", s.StatusTo.Reason, s.StatusTo.Message)
	case s.OnObject == nil:
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.OnObject.Integers)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, s.OnObject.Integers[name]))
	}
	if s.OnObject.Available != "" {
		parts = append(parts, "Available="+s.OnObject.Available)
	}
	if s.OnObject.Ready != "" {
		parts = append(parts, "Ready="+s.OnObject.Ready)
	}
	text := strings.Join(parts, " ")
	if len(s.StatusTo.LeftOut) == 0 {
		return text
	}
	fields := list(s.StatusTo.LeftOut)
	if wide {
		fields = strings.Join(s.StatusTo.LeftOut, ", ")
	}
	return strings.TrimPrefix(text+" | "+leftOut+fields, " | ")
}

// rollout describes the progress of the object's rollout. It returns an empty text if the object has no rollout.
func (s Status) rollout(now time.Time) string {
	switch {
	case s.BundleRollout != nil:
		return s.BundleRollout.text() + ", for " + age(s.BundleRollout.Since, now)
	case s.Rollout == nil:
		return ""
	}
	return inShort(s.Rollout) + ", for " + age(s.Rollout.Since, now)
}

// scheduled returns the reason and message of a decision that has a problem. It returns an empty text if the object was
// scheduled normally.
func (s Status) scheduled() string {
	c := meta.FindStatusCondition(s.Conditions, hubv1.ConditionScheduled)
	if c == nil || c.Reason == hubv1.ReasonScheduled {
		return ""
	}
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

func (s Status) others() string {
	if len(s.OtherPlacements) == 0 {
		return ""
	}
	return "selected by " + strings.Join(s.OtherPlacements, ", ") + ", not followed"
}

func (s Status) truncated() string {
	c := meta.FindStatusCondition(s.Conditions, hubv1.ConditionRowsTruncated)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Message
}

// maxNamed is the maximum number of clusters that one line names.
const maxNamed = 5

func (s Status) waits() string {
	var here, going, replaced, away []string
	for _, wait := range s.Waiting {
		name := wait.Cluster
		if wait.Reason != "" {
			name += " (" + wait.Reason + ")"
		}
		switch {
		case wait.Withdrawing:
			going = append(going, name)
		case wait.Replaced && wait.Away:
			away = append(away, name)
		case wait.Replaced:
			replaced = append(replaced, name)
		default:
			here = append(here, name)
		}
	}
	var parts []string
	if len(here) > 0 {
		parts = append(parts, "for "+list(here)+"; copies there keep running, and move only if the placement has failover")
	}
	if len(replaced) > 0 {
		parts = append(parts, "for the replacement of "+list(replaced)+" to be Healthy; then the copy there is removed")
	}
	if len(away) > 0 {
		parts = append(parts, "for "+list(away)+" to answer, and for the replacement to be Healthy")
	}
	if len(going) > 0 {
		parts = append(parts, "for "+list(going)+" to confirm that the object is gone")
	}
	return strings.Join(parts, "; ")
}

func (s Status) giveUp() string {
	var names []string
	for _, wait := range s.Waiting {
		if wait.MayBeLost {
			names = append(names, wait.Cluster)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("hansectl unjoin %s --abandon, which leaves this and every other object behind on that cluster", names[0])
	}
	return "hansectl unjoin NAME --abandon for each of them, which leaves this and every other object behind on that cluster"
}

func list(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// counted returns a count with its noun, such as "1 copy" or "3 copies".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
