package placement

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestExclusionsByRules(t *testing.T) {
	reported := Exclusion{Rule: "OverridePolicy shop/a, rule \"r\""}
	passing := Exclusion{Rule: reported.Rule, Passing: true, Why: "version is \"v1.30.1\""}
	away := func(c *Cluster) { c.Ready = false }
	const saidText, passingText = `excluded by OverridePolicy shop/a, rule "r"`, `excluded for now by OverridePolicy shop/a, rule "r": version is "v1.30.1"`
	tests := map[string]struct {
		in   Input
		want []string
	}{
		"a cluster without the object does not get it": {
			in:   Input{Clusters: []Cluster{open("a"), open("b")}, Excluded: map[string]Exclusion{"a": reported}},
			want: []string{"b holds Scheduled", "a rejected ExcludedByOverride " + saidText},
		},
		"a cluster with the object loses it": {
			in:   Input{Clusters: []Cluster{open("a"), open("b")}, Held: set([]string{"a", "b"}), Excluded: map[string]Exclusion{"a": reported}},
			want: []string{"b holds Scheduled", "a loses ExcludedByOverride " + saidText},
		},
		"a cluster that is away loses it as well": {
			in:   Input{Clusters: []Cluster{open("a", away), open("b")}, Held: set([]string{"a"}), Excluded: map[string]Exclusion{"a": reported}},
			want: []string{"b holds Scheduled", "a loses ExcludedByOverride " + saidText},
		},
		"one whose place others take loses it at once": {
			in:   Input{Clusters: []Cluster{open("a"), open("b")}, Evicting: set([]string{"a"}), Excluded: map[string]Exclusion{"a": reported}},
			want: []string{"b holds Scheduled", "a loses ExcludedByOverride " + saidText},
		},
		"what changes by itself keeps new objects away": {
			in:   Input{Clusters: []Cluster{open("a"), open("b")}, Excluded: map[string]Exclusion{"a": passing}},
			want: []string{"b holds Scheduled", "a rejected ExcludedByOverride " + passingText},
		},
		"what changes by itself takes nothing away": {
			in:   Input{Clusters: []Cluster{open("a"), open("b")}, Held: set([]string{"a"}), Excluded: map[string]Exclusion{"a": passing}},
			want: []string{"a holds ExcludedByOverride " + passingText, "b holds Scheduled"},
		},
		"what the placement says of a cluster is said first": {
			in: Input{
				Placement: compiled(t, hubv1.ClusterSelection{Names: []string{"b"}}, nil),
				Clusters:  []Cluster{open("a"), open("b")}, Excluded: map[string]Exclusion{"a": reported},
			},
			want: []string{"b holds Scheduled", "a rejected NotSelected name a is not in [b]"},
		},
		"an excluded cluster is no candidate of a spread": {
			in: Input{
				Placement: compiled(t, every(), &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)}),
				Clusters:  []Cluster{open("a"), open("b"), open("c")}, Excluded: map[string]Exclusion{"a": reported},
			},
			want: []string{"b holds Scheduled", "a rejected ExcludedByOverride " + saidText, "c rejected NotChosen numberOfClusters is 1, and other clusters come first"},
		},
		"another cluster takes the place of the excluded one": {
			in: Input{
				Placement: compiled(t, every(), &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)}),
				Clusters:  []Cluster{open("a"), open("b")}, Held: set([]string{"a"}), Excluded: map[string]Exclusion{"a": reported},
			},
			want: []string{"b holds Scheduled", "a loses ExcludedByOverride " + saidText},
		},
		"an excluded cluster takes no place of one that is drained": {
			in: Input{
				Placement: compiled(t, every(), &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)}),
				Clusters:  []Cluster{open("a", func(c *Cluster) { c.Draining = true }), open("b")}, Held: set([]string{"a"}),
				Excluded: map[string]Exclusion{"b": passing},
			},
			want: []string{"a holds Draining the cluster is being drained", "b rejected ExcludedByOverride " + passingText},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.in.Placement == nil {
				tc.in.Placement = compiled(t, every(), nil)
			}
			if diff := cmp.Diff(tc.want, inWords(Decide(tc.in))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func inWords(d Decision) []string {
	var out []string
	say := func(cluster, verb, reason, message string) {
		if message != "" {
			reason += " " + message
		}
		out = append(out, cluster+" "+verb+" "+reason)
	}
	for _, x := range d.Targets {
		say(x.Cluster, "holds", x.Reason, x.Message)
	}
	for _, x := range d.Withdraw {
		say(x.Cluster, "loses", x.Reason, x.Message)
	}
	for _, x := range d.Evict {
		say(x.Cluster, "evicting", x.Reason, x.Message)
	}
	for _, x := range d.Rejected {
		say(x.Cluster, "rejected", x.Reason, x.Message)
	}
	return out
}

func TestAnExcludedClusterIsNoTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		d := Decide(in)
		for _, x := range d.Targets {
			if e, yes := in.Excluded[x.Cluster]; yes && (!e.Passing || !in.Held[x.Cluster]) {
				t.Errorf("%s is a target, is excluded by %+v, and held before: %t", x.Cluster, e, in.Held[x.Cluster])
			}
		}
		for _, x := range d.Evict {
			if e, yes := in.Excluded[x.Cluster]; yes && !e.Passing {
				t.Errorf("%s waits for others to take its place and is excluded", x.Cluster)
			}
		}
	})
}

// A decision is the same whether an override rule excludes a cluster permanently or the placement excludes it by name.
func TestExclusionsByRuleAndByNameAreOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		var names []string
		for name, e := range in.Excluded {
			if e.Passing {
				delete(in.Excluded, name)
				continue
			}
			names = append(names, name)
		}
		for i := range in.Clusters { // taints are removed, because they hide the rule but not the name
			in.Clusters[i].Taints = slices.DeleteFunc(in.Clusters[i].Taints, func(t corev1.Taint) bool {
				return t.Effect == corev1.TaintEffectNoExecute && t.Key != hubv1.UnreachableTaint
			})
		}
		byRule := Decide(in)
		in.Excluded = nil
		in.Placement.excludedNames = append(in.Placement.excludedNames, names...)
		byName := Decide(in)
		if diff := cmp.Diff(clustersOf(byName), clustersOf(byRule)) + cmp.Diff(byName.Evict, byRule.Evict); diff != "" {
			t.Fatal(diff)
		}
	})
}
