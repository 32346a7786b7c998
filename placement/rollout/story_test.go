package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// cordoned is a Target.Kept.
const cordoned = "is cordoned: hansectl uncordon it"

// names are the names of the placement and the object in messages.
var names = Names{Placement: "web", Object: "widget cart", PlacementNamespace: "shop", ObjectNamespace: "shop"}

// verbsOf returns the requests in the annotations of a placement, as if the status of the placement recorded them all.
func verbsOf(annotations map[string]string) (Verbs, []error) {
	r, errs := ParseRequests(annotations)
	v := Verbs{Pause: annotations[hubv1.RolloutPauseAnnotation] == "true"}
	v.follow(&hubv1.PlacementRollout{Approvals: r.Approvals, Skips: r.Skips, Promotion: r.Promotion})
	return v, errs
}

// noon is the time at which stories begin.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// story is the rollout of one object to five clusters: a in wave canary, b and c in wave asia, d and e in wave rest.
type story struct {
	t    *testing.T
	in   Input
	last Result
	news []string // the events so far
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{t: t, in: Input{
		Names: names,
		Policy: &hubv1.RolloutPolicy{
			Waves: []hubv1.RolloutWave{
				{Name: "canary", Clusters: &hubv1.RuleClusters{Names: []string{"a"}}},
				{Name: "asia", Clusters: &hubv1.RuleClusters{Names: []string{"b", "c"}}},
				{Name: "rest"},
			},
			SettleSeconds: ptr.To[int32](0),
		},
		Live: hubv1.ObjectRevision{Template: "t1", Policies: "p1", Generation: 1},
		Now:  noon,
	}}
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		s.join(name, []int{0, 1, 1, 2, 2}[i])
	}
	return s
}

// running returns a story in which the first revision passed on all clusters an hour ago.
func running(t *testing.T) *story {
	t.Helper()
	s := newStory(t)
	s.step().healthy("a", "b", "c", "d", "e").step().want("Complete: a=1 b=1 c=1 d=1 e=1")
	return s.later(time.Hour)
}

func (s *story) join(name string, wave int) *story {
	s.in.Targets = append(s.in.Targets, Target{Cluster: name, Wave: wave})
	return s
}

func (s *story) leave(name string) *story {
	s.in.Targets = slices.DeleteFunc(s.in.Targets, func(t Target) bool { return t.Cluster == name })
	return s
}

func (s *story) target(name string) *Target {
	i := slices.IndexFunc(s.in.Targets, func(t Target) bool { return t.Cluster == name })
	if i < 0 {
		s.t.Fatalf("there is no cluster %s", name)
	}
	return &s.in.Targets[i]
}

// step calls Step and stores its result, as the hub does.
func (s *story) step() *story {
	next := Step(s.in)
	for _, e := range Events(s.in.Before, &next.Rollout) {
		s.news = append(s.news, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
	}
	s.last = next
	s.in.Before, s.in.Revisions = &s.last.Rollout, s.last.Revisions
	for i := range s.in.Targets {
		t := &s.in.Targets[i]
		t.Holds, t.KeptHealth = s.last.Holds[t.Cluster], s.last.KeptHealth[t.Cluster]
		if slices.Contains(s.last.Moved, t.Cluster) {
			t.Since = latest(s.in.Now.Truncate(time.Second), s.last.Rollout.Began.Time)
		}
	}
	return s
}

func (s *story) later(d time.Duration) *story {
	s.in.Now = s.in.Now.Add(d)
	return s
}

func (s *story) change(template string) *story {
	s.in.Live.Template = template
	s.in.Live.Generation++
	return s
}

// report makes the clusters report that they have applied their revision and have this health.
func (s *story) report(health hubv1.Health, clusters ...string) *story {
	for _, name := range clusters {
		t := s.target(name)
		row := Row{
			Revision: t.Holds, Applied: true, Health: health, Reason: string(health), Message: "the report of " + name,
			Changed: t.Row.Changed, Observes: true,
		}
		if row.Health != t.Row.Health || row.Applied != t.Row.Applied {
			row.Changed = s.in.Now
		}
		if health == hubv1.HealthHealthy {
			row.PassingSince = s.in.Now
		}
		t.Row = row
	}
	return s
}

// healthy makes the clusters report, one second later, that they are healthy.
func (s *story) healthy(clusters ...string) *story {
	return s.later(time.Second).report(hubv1.HealthHealthy, clusters...)
}

// verb sets an annotation of the placement to a value.
func (s *story) verb(annotation, value string) *story {
	verbs, errs := verbsOf(map[string]string{annotation: value})
	if len(errs) > 0 {
		s.t.Fatal(errs)
	}
	s.in.Verbs = verbs
	return s
}

func (s *story) undo(value string) *story {
	s.in.Undo = value
	return s
}

// at returns the present time of the story, in the format of an annotation.
func (s *story) at() string { return s.in.Now.Format(time.RFC3339) }

// summary returns the phase, the wave, and the revision of each cluster as text.
func (s *story) summary() string {
	text := strings.TrimSpace(string(s.last.Rollout.Phase)+" "+s.last.Rollout.Wave) + ":"
	for _, t := range s.in.Targets {
		text += fmt.Sprintf(" %s=%d", t.Cluster, s.last.Holds[t.Cluster])
	}
	return text
}

func (s *story) want(summary string) *story {
	s.t.Helper()
	if got := s.summary(); got != summary {
		s.t.Fatalf("got  %s (%s)\nwant %s", got, s.last.Rollout.Message, summary)
	}
	return s
}

// wantSuperseded checks which revisions later revisions have superseded, such as "2 by 3".
func (s *story) wantSuperseded(want string) {
	s.t.Helper()
	var got []string
	for _, r := range s.last.Revisions {
		if r.SupersededBy != 0 {
			got = append(got, fmt.Sprintf("%d by %d", r.Number, r.SupersededBy))
		}
	}
	if text := strings.Join(got, ", "); text != want {
		s.t.Fatalf("superseded are %q, want %q", text, want)
	}
}

func (s *story) says(message string) *story {
	s.t.Helper()
	if diff := cmp.Diff(message, s.last.Rollout.Message); diff != "" {
		s.t.Fatalf("message (-want +got):\n%s", diff)
	}
	return s
}

func (s *story) again(d time.Duration) *story {
	s.t.Helper()
	if s.last.Again != d {
		s.t.Fatalf("again in %s, want %s", s.last.Again, d)
	}
	return s
}

// concurrent sets maxConcurrent of wave asia to n.
func (s *story) concurrent(n string) *story {
	v := intstr.Parse(n)
	s.in.Policy.Waves[1].MaxConcurrent = &v
	return s
}

// tell runs each story as a subtest. The name of a story is a sentence about the expected behaviour.
func tell(t *testing.T, stories map[string]func(s *story)) {
	t.Helper()
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { story(running(t)) })
	}
}
