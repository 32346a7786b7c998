package docs

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/rollout"
	"github.com/hanse-dev/hanse/test/examples"
)

var update = flag.Bool("update", false, "write what is decided into docs/rollout.md and testdata/stories.md, and the generated parts of other pages")

// storyFiles are the files with stories, and the minimum number of stories in each. The guide shows what readers need.
// The file in testdata covers all other rules.
var storyFiles = []examples.File{
	{Path: filepath.Join("..", "..", "docs", "rollout.md"), AtLeast: 12},
	{Path: filepath.Join("testdata", "stories.md"), AtLeast: 12},
}

// A story is a block of YAML, followed by a block of text with the decisions of package rollout.
var storyBlocks = regexp.MustCompile("```yaml\n(rollout:\n[^`]*)```\n\n```text\n([^`]*)```")

// monday is the time at which every story begins.
var monday = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// longest is the maximum duration of a story.
const longest = 8 * 24 * time.Hour

// storyCluster is a cluster in the YAML of a story.
type storyCluster struct {
	Name   string            `json:"name"`
	Region string            `json:"region"`
	Labels map[string]string `json:"labels"`
}

// story has a rollout and the events during it. At the start, every cluster has revision 1 of every object. Each object
// changes to revision 2 at the time in storyObject.Changes.
type story struct {
	Rollout *hubv1.RolloutPolicy `json:"rollout"`
	// Objects are the hub objects that the placement selects. If a story lists no objects, it has one object without a
	// name, with default values.
	Objects []storyObject `json:"objects"`
	// Degraded are the names of clusters that report revision 2 as degraded.
	Degraded []string `json:"degraded"`
	// Away are the names of clusters that do not answer. Cordoned are the names of cordoned clusters.
	Away     []string `json:"away"`
	Cordoned []string `json:"cordoned"`
	Then     []event  `json:"then"`
}

// storyObject is a hub object that the placement selects.
type storyObject struct {
	Name string `json:"name"`
	// Changes is the time from the start until the object changes.
	Changes metav1.Duration `json:"changes"`
	// Takes is the time until the object is healthy on a cluster that has got a new revision. The default is 30 s.
	Takes metav1.Duration `json:"takes"`
	// Fails is true if all clusters report revision 2 as degraded.
	Fails bool `json:"fails"`
}

// event is an action of a user, or a change of a cluster.
type event struct {
	At      metav1.Duration `json:"at"`
	Approve string          `json:"approve"`
	Skip    string          `json:"skip"`
	Promote string          `json:"promote"`
	Pause   bool            `json:"pause"`
	Resume  bool            `json:"resume"`
	Undo    string          `json:"undo"`
	Change  bool            `json:"change"`
	Policy  bool            `json:"policy"`
	Answers string          `json:"answers"`
	// Cordon and Uncordon are names of clusters.
	Cordon   string `json:"cordon"`
	Uncordon string `json:"uncordon"`
}

func TestTheScenariosOfRolloutMdHappenAsDocumented(t *testing.T) {
	examples.Run(t, *update, storyBlocks, storyFiles, func(t *testing.T, page, input string) string {
		t.Helper()
		var s story
		if err := yaml.UnmarshalStrict([]byte(input), &s); err != nil {
			t.Fatal(err)
		}
		return s.tell(t, examples.Fleet[storyCluster](t, page))
	})
}

func TestThePlacementInRolloutMdIsAnExampleFile(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "rollout.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "rollout", "placement.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```yaml\n"+string(example)+"```") {
		t.Error("docs/rollout.md does not show docs/examples/rollout/placement.yaml")
	}
}

// actor is one object with its state in the rollout.
type actor struct {
	storyObject
	in       rollout.Input
	last     rollout.Result
	reported string
	changed  bool
}

// teller simulates the hub, the clusters and the users of a story.
type teller struct {
	story
	*testing.T
	fleet       []storyCluster
	actors      []*actor
	annotations map[string]string
	now         time.Time
	lines       [][]string
}

// tell returns the decisions of a story. It has one line for each decision that differs from the decision before.
func (s story) tell(t *testing.T, fleet []storyCluster) string {
	t.Helper()
	errs, warnings := rollout.Validate(s.Rollout, field.NewPath("spec", "rollout"))
	if len(errs) > 0 {
		return "refused: " + errs.ToAggregate().Error() + "\n"
	}
	x := &teller{story: s, T: t, fleet: fleet, annotations: map[string]string{}, now: monday}
	if len(x.Objects) == 0 {
		x.Objects = []storyObject{{}}
	}
	x.begin()
	for x.now.Before(monday.Add(longest)) {
		x.happen()
		x.decide()
		next, more := x.next()
		if !more {
			break
		}
		x.now = next
	}
	var out strings.Builder
	for _, w := range warnings {
		out.WriteString("warning: " + w + "\n")
	}
	out.WriteString(columns(x.lines))
	return out.String()
}

// begin makes all clusters hold revision 1 of each object.
func (x *teller) begin() {
	for _, o := range x.Objects {
		a := &actor{storyObject: o}
		a.Takes.Duration = cmp.Or(o.Takes.Duration, 30*time.Second)
		a.in = rollout.Input{Names: namesOf(o.Name), Policy: x.Rollout, Live: hubv1.ObjectRevision{Template: "1", Policies: "1"}}
		before := monday.Add(-time.Hour)
		for _, c := range x.fleet {
			a.in.Targets = append(a.in.Targets, rollout.Target{Cluster: c.Name, Wave: x.waveOf(c)})
		}
		a.in.Now = before
		a.step()
		for i := range a.in.Targets {
			t := &a.in.Targets[i]
			t.Row = rollout.Row{Revision: 1, Applied: true, Health: hubv1.HealthHealthy, PassingSince: before, Changed: before, Observes: true}
		}
		a.step()
		for i := range a.in.Targets {
			t := &a.in.Targets[i]
			t.Row.Away = slices.Contains(x.Away, t.Cluster)
			if slices.Contains(x.Cordoned, t.Cluster) {
				t.Kept = cordonedAs(t.Cluster)
			}
		}
		x.actors = append(x.actors, a)
	}
}

func (x *teller) waveOf(c storyCluster) int {
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[hubv1.RegionLabel] = c.Region
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: labels}}
	for i, w := range x.Rollout.Waves {
		if ok, err := overrides.Selects(&hubv1.OverrideRule{Clusters: w.Clusters}, overrides.ClusterOf(m)); err != nil {
			x.Fatal(err)
		} else if ok {
			return i
		}
	}
	return len(x.Rollout.Waves) - 1
}

// happen executes all events of the story whose time has come: actions of users, changes of objects, and reports of
// clusters.
func (x *teller) happen() {
	x.Then = slices.DeleteFunc(x.Then, func(e event) bool {
		if x.now.Before(monday.Add(e.At.Duration)) {
			return false
		}
		x.do(e)
		return true
	})
	for _, a := range x.actors {
		if !a.changed && !x.now.Before(monday.Add(a.Changes.Duration)) {
			a.changed, a.in.Live.Template = true, "2"
		}
		for i := range a.in.Targets {
			if at, due := x.reports(a, &a.in.Targets[i]); due && !x.now.Before(at) {
				x.report(a, &a.in.Targets[i])
			}
		}
	}
}

// reports returns the time at which a cluster reports its revision. It returns false if the cluster has reported it
// already, or does not answer.
func (x *teller) reports(a *actor, t *rollout.Target) (time.Time, bool) {
	return t.Since.Add(a.Takes.Duration), t.Holds != t.Row.Revision && !t.Row.Away
}

func (x *teller) report(a *actor, t *rollout.Target) {
	t.Row = rollout.Row{Revision: t.Holds, Applied: true, Health: hubv1.HealthHealthy, PassingSince: x.now, Changed: x.now, Observes: true}
	if t.Holds == 2 && (a.Fails || slices.Contains(x.Degraded, t.Cluster)) {
		t.Row.Health, t.Row.PassingSince, t.Row.Reason, t.Row.Message = hubv1.HealthDegraded, time.Time{}, "ImagePullBackOff", "no such image"
	}
}

// do executes an action of a user. It sets annotations to the same values as hansectl.
func (x *teller) do(e event) {
	began := monday
	for _, a := range x.actors {
		if at := a.last.Rollout.Began.Time; at.After(began) {
			began = at
		}
	}
	at := began.Format(time.RFC3339)
	for annotation, value := range map[string]string{
		hubv1.RolloutApproveAnnotation: e.Approve + "@" + at, hubv1.RolloutSkipAnnotation: e.Skip + "@" + at, hubv1.RolloutPromoteAnnotation: at + " " + e.Promote,
	} {
		if !strings.HasPrefix(value, "@") && !strings.HasSuffix(value, " ") {
			x.annotations[annotation] = value
		}
	}
	switch {
	case e.Pause:
		x.annotations[hubv1.RolloutPauseAnnotation] = "true"
	case e.Resume:
		delete(x.annotations, hubv1.RolloutPauseAnnotation)
	}
	for _, a := range x.actors {
		a.in.Undo = cmp.Or(e.Undo, a.in.Undo)
		if e.Change {
			a.in.Live.Template = "3"
		}
		if e.Policy {
			a.in.Live.Policies = "2"
		}
		for i := range a.in.Targets {
			switch t := &a.in.Targets[i]; t.Cluster {
			case e.Answers:
				t.Row.Away = false
			case e.Cordon:
				t.Kept = cordonedAs(t.Cluster)
			case e.Uncordon:
				t.Kept = ""
			}
		}
	}
}

// cordonedAs returns the rollout.Target.Kept of a cordoned cluster, as package decide does.
func cordonedAs(cluster string) string { return "is cordoned: hansectl uncordon " + cluster }

// verbs records the requests in the annotations as the status of a placement does, and returns them.
func (x *teller) verbs() rollout.Verbs {
	requests, errs := rollout.ParseRequests(x.annotations)
	if len(errs) > 0 {
		x.Fatal(errs)
	}
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Annotations: x.annotations}}
	p.Status.Rollout = &hubv1.PlacementRollout{Approvals: requests.Approvals, Skips: requests.Skips, Promotion: requests.Promotion}
	return rollout.VerbsOf(p)
}

// objectOf returns the name that messages about other objects have for an object of a story.
func objectOf(name string) string { return "Prometheus monitoring/" + cmp.Or(name, "web") }

// namesOf returns the names for the commands in messages about an object of a story.
func namesOf(name string) rollout.Names {
	return rollout.Names{
		Placement: "metrics", PlacementNamespace: "monitoring", Object: "prometheus " + cmp.Or(name, "web"), ObjectNamespace: "monitoring",
	}
}

// decide calls step for each object until no decision changes any more.
func (x *teller) decide() {
	for again := true; again; {
		again = false
		for _, a := range x.actors {
			a.in.Verbs = x.verbs()
			var all []rollout.Progress
			for _, other := range x.actors {
				p := other.last.Progress
				p.Object = objectOf(other.Name)
				all = append(all, p)
			}
			a.in.Peers, a.in.Now = rollout.NewPeers(all).Without(objectOf(a.Name)), x.now
			a.step()
			again = x.say(a) || again
		}
	}
}

// step makes the decision for one object, and stores it as the binding of the object would.
func (a *actor) step() {
	a.last = rollout.Step(a.in)
	state := a.last.Rollout
	a.in.Before, a.in.Revisions = &state, a.last.Revisions
	for i := range a.in.Targets {
		t := &a.in.Targets[i]
		if slices.Contains(a.last.Moved, t.Cluster) && t.Holds != 0 {
			t.Since = a.in.Now
		}
		t.Holds, t.KeptHealth = a.last.Holds[t.Cluster], a.last.KeptHealth[t.Cluster]
	}
}

// say adds a line if the decision differs from the last one. It reports whether it differs.
func (x *teller) say(a *actor) bool {
	state := a.last.Rollout
	reported := fmt.Sprint(state.Wave, state.Phase, state.Message)
	if reported == a.reported && len(a.last.Moved) == 0 {
		return false
	}
	first := a.reported == ""
	// The first state is skipped, because it is that before the change.
	if a.reported = reported; first && state.Phase == hubv1.RolloutComplete {
		return false
	}
	moved := ""
	if len(a.last.Moved) > 0 {
		moved = fmt.Sprintf("%s to %d", strings.Join(a.last.Moved, ", "), state.Revision)
	}
	line := []string{short(x.now.Sub(monday)), a.Name, state.Wave, string(state.Phase), moved, state.Message}
	if len(x.actors) == 1 {
		line = slices.Delete(line, 1, 2)
	}
	x.lines = append(x.lines, line)
	return true
}

// short formats a duration without zero units, such as 10m30s.
func short(d time.Duration) string {
	text := d.String()
	if text, ok := strings.CutSuffix(text, "m0s"); ok {
		text += "m"
		return strings.TrimSuffix(text, "h0m") + map[bool]string{true: "h"}[strings.HasSuffix(text, "h0m")]
	}
	return text
}

// next returns the time of the next possible event. more is false if there is none.
func (x *teller) next() (next time.Time, more bool) {
	offer := func(at time.Time) {
		if at.After(x.now) && (!more || at.Before(next)) {
			next, more = at, true
		}
	}
	for _, e := range x.Then {
		offer(monday.Add(e.At.Duration))
	}
	for _, a := range x.actors {
		if !a.changed {
			offer(monday.Add(a.Changes.Duration))
		}
		if a.last.Again > 0 {
			offer(x.now.Add(a.last.Again))
		}
		for i := range a.in.Targets {
			if at, due := x.reports(a, &a.in.Targets[i]); due {
				offer(at)
			}
		}
	}
	return next, more
}

// columns aligns the cells of the lines in columns. An empty cell is shown as a dash, unless it is the last one of its
// line.
func columns(lines [][]string) string {
	width := map[int]int{}
	for _, line := range lines {
		for i := range line {
			if line[i] == "" && i < len(line)-1 {
				line[i] = "-"
			}
			width[i] = max(width[i], len(line[i]))
		}
	}
	var out strings.Builder
	for _, line := range lines {
		text := ""
		for i, cell := range line {
			text += fmt.Sprintf("%-*s  ", width[i], cell)
		}
		out.WriteString(strings.TrimRight(text, " -") + "\n")
	}
	return out.String()
}
