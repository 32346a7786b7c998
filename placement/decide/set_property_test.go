package decide

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestEachClusterEndsOnOneListOfTheBundle changes a bundle, its clusters and their health at random. Decisions are made
// in any order, and the hub may stop after each write. At the end, each cluster has exactly the objects of the revision
// that the SetRollout names for it.
//
// It makes fewer cases than other properties, because each takes some 70 ms. make test-long makes many.
func TestEachClusterEndsOnOneListOfTheBundle(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := flag.Set("rapid.checks", "25"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flag.Set("rapid.checks", checks.DefValue) }()
	}
	rapid.Check(t, func(t *rapid.T) {
		f := newFleetOfSet(t, rapid.SampledFrom([]hubv1.RolloutFailure{hubv1.FailureRollback, hubv1.FailurePause}).Draw(t, "onFailure"))
		if rapid.Bool().Draw(t, "adopted") { // the objects have followed rollouts of their own before
			f.brings(drawContent(t))
			for range 4 {
				f.now = f.now.Add(minute)
				for _, id := range f.objects() {
					f.decide(id)
				}
				f.report()
			}
		}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			f.disturbs(t)
			for range rapid.IntRange(0, 6).Draw(t, "rounds") {
				f.stumbles(t)
				f.checkHeld(t)
			}
		}
		f.broken = map[string]bool{}
		f.permits()
		f.settlesWithin(25)
		f.checkEnd(t)
	})
}

const minute = 60e9

// drawContent returns a content of the bundle, with at least one object.
func drawContent(t *rapid.T) map[string]string {
	out := map[string]string{"ClusterRole/r": "1"}
	for _, object := range []string{"ClusterRole/r", "ClusterRole/s", "Deployment/m", "Service/o", "CustomResourceDefinition/x"} {
		if value := rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, object); value != "" {
			out[object] = value
		}
	}
	return out
}

// disturbs changes one thing.
func (f *fleetOfSet) disturbs(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0:
		f.permits()
	case 3:
		f.holds(t)
	case 4:
		if revisions := f.spec.Revisions; len(revisions) > 0 {
			f.undoes(rapid.SampledFrom(revisions).Draw(t, "undo").Number)
			return // the content stays
		}
	case 1:
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "cluster")
		f.broken[fmt.Sprintf("%s Deployment/m %s", name, rapid.SampledFrom([]string{"2", "3"}).Draw(t, "broken"))] = true
	case 2:
		if _, known := f.has["d"]; !known {
			f.clusters, f.has["d"] = append(slices.Clone(f.clusters), cluster("d")), map[string]string{}
		}
	}
	f.brings(drawContent(t))
}

// holds makes package guard hold the removals of one object, until a user confirms them.
func (f *fleetOfSet) holds(t *rapid.T) {
	if objects := f.objects(); len(objects) > 0 {
		id := rapid.SampledFrom(objects).Draw(t, "held")
		f.verdicts[id] = map[string]Verdict{}
		for name := range f.has {
			f.verdicts[id][name] = Verdict{Reason: hubv1.ReasonNotInRevision, HeldSince: &metav1.Time{Time: f.now}}
		}
	}
}

// stumbles makes decisions and steps in a random order, and leaves some out.
func (f *fleetOfSet) stumbles(t *rapid.T) {
	f.now = f.now.Add(minute)
	for _, id := range rapid.Permutation(f.objects()).Draw(t, "order") {
		switch rapid.IntRange(0, 7).Draw(t, "next") {
		case 0:
			f.stepIfDecided()
		case 1:
			f.report()
		case 2: // the hub stops, and this decision is not made
			continue
		}
		f.decide(id)
	}
	f.report()
	f.stepIfDecided()
}

// stepIfDecided makes a step if all objects are decided, as hub/schedule does.
func (f *fleetOfSet) stepIfDecided() {
	for _, id := range f.objects() {
		if f.chosen[id] == nil {
			return
		}
	}
	f.step()
}

func (f *fleetOfSet) settlesWithin(rounds int) {
	for range rounds {
		f.now = f.now.Add(minute)
		for _, id := range f.objects() {
			f.decide(id)
		}
		f.report()
		f.stepIfDecided()
	}
	if f.step() {
		f.t.Fatalf("the bundle does not rest: %+v", f.spec.Rollout)
	}
}

// checkHeld checks that each copy has a content that a stored revision of the bundle has, once the bundle is decided on
// as a whole.
func (f *fleetOfSet) checkHeld(t *rapid.T) {
	if f.spec.Rollout == nil {
		return
	}
	for name, copies := range f.has {
		for object, content := range copies {
			if strings.HasPrefix(object, "orphan ") {
				continue
			}
			known := false
			for _, list := range f.lists {
				for id, part := range list {
					known = known || short(id) == object && f.parts[part] != nil && f.parts[part].Object["spec"].(map[string]any)["content"] == content
				}
			}
			if !known {
				t.Fatalf("%s has %s with content %q, which no list has", name, object, content)
			}
		}
	}
}

// checkEnd checks that each cluster has the objects of its revision.
func (f *fleetOfSet) checkEnd(t *rapid.T) {
	if f.spec.Rollout == nil {
		t.Fatalf("the bundle is not decided on as a whole: %+v", f.spec)
	}
	for _, c := range f.spec.Clusters {
		want := map[string]string{}
		of := f.spec.Revision(c.Revision)
		for id, part := range f.lists[of.List] {
			want[short(id)] = f.parts[part].Object["spec"].(map[string]any)["content"].(string)
		}
		if definitions := f.spec.Revision(c.Definitions); definitions != nil {
			for id, part := range f.lists[definitions.List] {
				if NoRollback(id) {
					want[short(id)] = f.parts[part].Object["spec"].(map[string]any)["content"].(string)
				}
			}
		}
		got := maps.Clone(f.has[c.Name])
		maps.DeleteFunc(got, func(object, _ string) bool { return strings.HasPrefix(object, "orphan ") })
		if !maps.Equal(got, want) {
			t.Fatalf("%s has %v, and its revision %d has %v; the rollout is %+v", c.Name, got, c.Revision, want, f.spec.Rollout)
		}
	}
}
