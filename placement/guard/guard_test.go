package guard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// removals of n copies of one placement from one cluster.
func removals(n int, placement, cluster string) []Removal {
	out := make([]Removal, n)
	for i := range out {
		out[i] = Removal{Set: placement, Group: placement, Cluster: cluster}
	}
	return out
}

func scope(copies int) Scope { return Scope{Limit: DefaultLimit, Copies: copies} }

func TestJudge(t *testing.T) {
	var hundred []Removal
	small := map[string]Scope{}
	for i := range 100 {
		name := fmt.Sprint("p", i)
		small[name] = scope(9)
		hundred = append(hundred, removals(3, name, "eu")...)
	}
	last := removals(1, "p", "eu")
	last[0].Last = true
	var everywhere []Removal
	for _, object := range []string{"web", "db"} {
		for _, cluster := range []string{"eu", "sg"} {
			everywhere = append(everywhere, Removal{Set: "p", Object: object, Group: "p", Cluster: cluster, Last: true})
		}
	}
	for name, tc := range map[string]struct {
		removals             []Removal
		placements, clusters map[string]Scope
		want                 map[string]string // reasons of the held sets, by set
	}{
		"five copies go, however few there are": {
			removals(5, "p", "eu"), map[string]Scope{"p": scope(6)}, map[string]Scope{"eu": scope(6)}, map[string]string{},
		},
		"six of ten do not": {
			removals(6, "p", "eu"), map[string]Scope{"p": scope(10)}, map[string]Scope{"eu": scope(1000)},
			map[string]string{"p": "[6 of 10 copies of p, limit 5]"},
		},
		"a fifth of many goes": {
			removals(20, "p", "eu"), map[string]Scope{"p": scope(100)}, map[string]Scope{"eu": scope(100)}, map[string]string{},
		},
		"more than a fifth does not": {
			removals(21, "p", "eu"), map[string]Scope{"p": scope(100)}, map[string]Scope{"eu": scope(1000)},
			map[string]string{"p": "[21 of 100 copies of p, limit 20]"},
		},
		"a cluster loses no more than its limit over all placements": {
			append(removals(4, "p", "eu"), removals(4, "q", "eu")...), map[string]Scope{"p": scope(100), "q": scope(100)}, map[string]Scope{"eu": scope(8)},
			map[string]string{"p": "[8 of 8 copies on cluster eu, limit 5]", "q": "[8 of 8 copies on cluster eu, limit 5]"},
		},
		"what takes nothing from there goes": {
			append(removals(8, "p", "eu"), removals(4, "q", "us")...), map[string]Scope{"p": scope(100), "q": scope(100)},
			map[string]Scope{"eu": scope(8), "us": scope(8)}, map[string]string{"p": "[8 of 8 copies on cluster eu, limit 5]"},
		},
		"the last copy of an object does not go": {
			last, map[string]Scope{"p": scope(100)}, map[string]Scope{"eu": scope(100)}, map[string]string{"p": "[the last copy of 1 object]"},
		},
		"an object that loses several last copies counts once": {
			everywhere, map[string]Scope{"p": scope(100)}, map[string]Scope{"eu": scope(100)}, map[string]string{"p": "[the last copies of 2 objects]"},
		},
		"what went a moment ago counts": {
			removals(2, "p", "eu"), map[string]Scope{"p": {Limit: DefaultLimit, Copies: 6, Recent: 4}}, map[string]Scope{"eu": scope(100)},
			map[string]string{"p": "[6 of 10 copies of p, limit 5]"},
		},
		"a placement may set its limit": {
			removals(2, "p", "eu"), map[string]Scope{"p": {Limit: Limit{Copies: 1}, Copies: 100}}, map[string]Scope{"eu": scope(100)},
			map[string]string{"p": "[2 of 100 copies of p, limit 1]"},
		},
		"a placement that is gone has the default limit": {
			removals(6, "gone", "eu"), nil, map[string]Scope{"eu": scope(100)}, map[string]string{"gone": "[6 of 6 copies of gone, limit 5]"},
		},
	} {
		got := map[string]string{}
		for set, breaches := range Judge(tc.removals, tc.placements, tc.clusters) {
			got[set] = fmt.Sprint(breaches)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if held := Judge(hundred, small, map[string]Scope{"eu": scope(300)}); len(held) != 100 {
		t.Errorf("100 placements of 3 copies under one wrong label: %d are held", len(held))
	}
}

func genRemovals(t *rapid.T) []Removal {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Removal {
		p := rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "placement")
		return Removal{
			Set: rapid.SampledFrom([]string{p, p, "leaving"}).Draw(t, "set"), Group: p,
			Cluster: rapid.SampledFrom([]string{"eu", "sg", "us"}).Draw(t, "cluster"), Last: rapid.IntRange(0, 20).Draw(t, "last") == 0,
		}
	}), 0, 40).Draw(t, "removals")
}

func genScopes(t *rapid.T, names ...string) map[string]Scope {
	out := map[string]Scope{}
	for _, n := range names {
		out[n] = Scope{
			Limit:  Limit{Copies: rapid.IntRange(0, 10).Draw(t, "limit"), Percent: rapid.IntRange(0, 100).Draw(t, "percent")},
			Copies: rapid.IntRange(0, 100).Draw(t, "copies"), Recent: rapid.IntRange(0, 5).Draw(t, "recent"),
		}
	}
	return out
}

// For any removals, no placement and no cluster loses more copies than its limit, and no object loses its last copy. A
// removal that is not held would also be allowed without the held ones.
func TestWhatGoesKeepsTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := genRemovals(t)
		placements, clusters := genScopes(t, "p", "q", "r"), genScopes(t, "eu", "sg", "us")
		held := Judge(all, placements, clusters)
		var goes []Removal
		gone := map[string]int{}
		for _, r := range all {
			if held[r.Set] != nil {
				continue
			}
			goes = append(goes, r)
			gone["group "+r.Group]++
			gone["cluster "+r.Cluster]++
			if r.Last {
				t.Fatal("a last copy goes")
			}
		}
		check := func(kind string, scopes map[string]Scope) {
			for name, s := range scopes {
				n := gone[kind+" "+name]
				if copies := max(s.Copies, len(all)) + s.Recent; n > 0 && n+s.Recent > s.Limit.Of(copies) {
					t.Fatalf("%s %s: %d of %d copies go", kind, name, n, copies)
				}
			}
		}
		check("group", placements)
		check("cluster", clusters)
		for set := range held {
			if len(held[set]) == 0 {
				t.Fatalf("set %s is held without a reason", set)
			}
		}
		if again := Judge(goes, placements, clusters); len(again) > 0 {
			t.Fatalf("without those that are held, more are held: %v", again)
		}
		slices.Reverse(all)
		if diff := cmp.Diff(held, Judge(all, placements, clusters)); diff != "" {
			t.Fatalf("the order counts:\n%s", diff)
		}
	})
}

// Even if many small sets of removals follow each other, no more copies than the limit are removed within a window.
func TestRepeatedSmallRemovalsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var recent Recent
		now := time.Unix(0, 0)
		copies := 10
		type gone struct {
			at time.Time
			n  int
		}
		var log []gone
		for range rapid.IntRange(1, 60).Draw(t, "sets") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			n := rapid.IntRange(1, 3).Draw(t, "copies")
			if n > copies {
				break
			}
			s := Scope{Limit: DefaultLimit, Copies: copies, Recent: recent.Of("p", now)}
			if len(Judge(removals(n, "p", "eu"), map[string]Scope{"p": s}, map[string]Scope{"eu": scope(1000)})) > 0 {
				continue
			}
			for range n {
				recent.Add("p", now)
			}
			copies -= n
			log = append(log, gone{now, n})
			sum := 0
			for _, g := range log {
				if now.Sub(g.at) < Window {
					sum += g.n
				}
			}
			if sum > DefaultLimit.Copies {
				t.Fatalf("%d of 10 copies went within %s", sum, Window)
			}
		}
	})
}

func TestWhatAConfirmationCovers(t *testing.T) {
	shown := Shown{Copies: 100, Clusters: []string{"eu", "sg"}, Causes: []string{"NotSelected"}}
	for name, tc := range map[string]struct {
		now  Shown
		want bool
	}{
		"the same":                   {shown, true},
		"a tenth more":               {Shown{110, []string{"eu"}, []string{"NotSelected"}}, true},
		"more than a tenth more":     {Shown{111, []string{"eu"}, []string{"NotSelected"}}, false},
		"fewer":                      {Shown{1, []string{"sg"}, []string{"NotSelected"}}, true},
		"copies of another cluster":  {Shown{1, []string{"us"}, []string{"NotSelected"}}, false},
		"copies for another reason":  {Shown{1, []string{"eu"}, []string{"TaintNotTolerated"}}, false},
		"copies for one more reason": {Shown{2, []string{"eu"}, []string{"NotSelected", "Excluded"}}, false},
	} {
		if got := shown.Covers(tc.now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
