package report

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

// completeByScan is complete without the memory of the last look.
func completeByScan(e *entry, away map[string]bool, holds func(string) bool) (reached, bool) {
	fresh := *e
	fresh.results.awaited = 0
	return fresh.complete("", away, holds)
}

func TestALookThatGoesOnFindsTheSameAsALookFromTheStart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "targets")]
		e, away, foreign := &entry{}, map[string]bool{}, map[string]bool{}
		holds := func(name string) bool { return !foreign[name] }
		adopt := func(generation int64) {
			var targets []hubv1.BindingTarget
			for _, name := range names {
				target := rapid.SampledFrom([]func(string) hubv1.BindingTarget{present, present, absent}).Draw(t, "state")(name)
				if rapid.Bool().Draw(t, "drawn") {
					targets = append(targets, target)
				}
			}
			e.adopt(bindingOf(generation, targets...))
		}
		adopt(1)
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			name := rapid.SampledFrom(names).Draw(t, "cluster")
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0:
				away[name] = !away[name]
			case 1:
				foreign[name] = !foreign[name]
			case 2:
				adopt(e.binding.generation + 1)
			case 3:
				e.results.moved = nil
			case 4:
				delete(e.results.outcomes, name)
			case 5:
				e.change(name, away, holds)
			default:
				e.record(name, appliedAt(rapid.Int64Range(1, 2).Draw(t, "content")), away, holds)
			}
			want, wantOK := completeByScan(e, away, holds)
			if got, ok := e.complete(name, away, holds); ok != wantOK || ok && got != want {
				t.Fatalf("complete returns %v, %v; a look from the start returns %v, %v", got, ok, want, wantOK)
			}
			unmoved := slices.ContainsFunc(e.binding.targets, func(t hubv1.BindingTarget) bool {
				return !e.results.moved[t.Name] && !away[t.Name] && holds(t.Name)
			})
			if e.allMoved(away, holds) == unmoved {
				t.Fatalf("allMoved returns %v, and a copy that has not changed: %v", !unmoved, unmoved)
			}
		}
	})
}

func TestTheLooksForAllOutcomesOfAnObjectGrowWithItsClusters(t *testing.T) {
	t.Parallel()
	const clusters = 1000
	var targets []hubv1.BindingTarget
	for i := range clusters {
		targets = append(targets, present(fmt.Sprintf("c%04d", i)))
	}
	for name, order := range map[string]func(int) int{
		"in the order of names":         func(i int) int { return i },
		"in the reverse order":          func(i int) int { return clusters - 1 - i },
		"in an order without a pattern": func(i int) int { return i * 617 % clusters },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, looks := &entry{}, 0
			e.adopt(bindingOf(1, targets...))
			holds := func(string) bool { looks++; return true }
			for content := int64(1); content <= 2; content++ {
				for i := range clusters {
					e.record(targets[order(i)].Name, appliedAt(content), nil, holds)
				}
				e.results.moved = nil
				for i := range clusters {
					e.change(targets[order(i)].Name, nil, holds)
				}
			}
			if most := 40 * clusters; looks > most {
				t.Errorf("%d looks at targets, want at most %d", looks, most)
			}
		})
	}
}

func TestTheIndexByClusterHasTheTargetsOfEachBinding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &Reporter{opts: Options{Clock: clock.RealClock{}, Shard: Shard{Holds: func(string) bool { return true }}}, entries: map[types.NamespacedName]*entry{}}
		for i := range rapid.IntRange(1, 20).Draw(t, "events") {
			var targets []hubv1.BindingTarget
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, name) {
					targets = append(targets, present(name))
				}
			}
			b := bindingOf(int64(i+1), targets...)
			b.Name = rapid.SampledFrom([]string{"o", "p"}).Draw(t, "binding")
			r.bindingChanged(b, pace.Many)
			if rapid.Bool().Draw(t, "gone") {
				r.bindingGone(b)
			}
			want := map[string]map[types.NamespacedName]*entry{}
			for key, e := range r.entries {
				for _, target := range e.binding.targets {
					if want[target.Name] == nil {
						want[target.Name] = map[types.NamespacedName]*entry{}
					}
					want[target.Name][key] = e
				}
			}
			if !maps.EqualFunc(r.byCluster, want, maps.Equal) {
				t.Fatalf("the index is %v, and the entries have %v", r.byCluster, want)
			}
		}
	})
}
