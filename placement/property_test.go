package placement

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// genInput generates an Input from few values, so that clusters, selectors and constraints often match. It skips specs
// that cannot be compiled.
func genInput(t *rapid.T) Input {
	spec := &hubv1.PlacementSpec{Clusters: genSelection(t), Spread: genSpread(t)}
	spec.Failover.EvictAfterSeconds = rapid.SampledFrom([]*int32{nil, ptr.To[int32](0), ptr.To[int32](60), ptr.To[int32](-1)}).Draw(t, "evictAfter")
	c, err := Compile(spec)
	if err != nil {
		t.Skip(err)
	}
	in := Input{
		Placement: c, Object: hubv1.HubObject{GVK: widget}, Held: map[string]bool{}, Evicting: map[string]bool{}, Hold: map[string]string{}, Excluded: map[string]Exclusion{}, Now: noon,
		ObjectName: rapid.SampledFrom([]string{"", "shop/web", "shop/api"}).Draw(t, "object"), Divided: rapid.Bool().Draw(t, "divided"), MaxAway: rapid.SampledFrom([]int{0, 0, 20, 100}).Draw(t, "maxAway"),
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "clusters") {
		in.Clusters = append(in.Clusters, genCluster(t, fmt.Sprintf("c%02d", i)))
	}
	for i := range 13 {
		name := fmt.Sprintf("c%02d", i)
		in.Held[name] = rapid.Bool().Draw(t, "held")
		in.Evicting[name] = !in.Held[name] && rapid.IntRange(0, 5).Draw(t, "evicting") == 0
		if rapid.IntRange(0, 7).Draw(t, "excluded") == 0 {
			in.Excluded[name] = Exclusion{Rule: "a rule", Passing: rapid.Bool().Draw(t, "passing"), Why: "of what it is"}
		}
		in.Hold[name] = rapid.SampledFrom([]string{"", "", "", "", "not now"}).Draw(t, "hold")
	}
	return in
}

var words = rapid.SampledFrom([]string{"", "x", "y", "z", "not valid"})

func genCluster(t *rapid.T, name string) Cluster {
	effect := rapid.SampledFrom([]corev1.TaintEffect{"", "", corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule})
	mostly := rapid.SampledFrom([]bool{true, true, true, false})
	ready := mostly.Draw(t, "ready")
	added := rapid.SampledFrom([]*metav1.Time{nil, {Time: noon}, {Time: noon.Add(-30 * time.Second)}, {Time: noon.Add(-time.Hour)}})
	taints := []corev1.Taint{{Key: words.Draw(t, "key"), Value: words.Draw(t, "value"), Effect: effect.Draw(t, "effect"), TimeAdded: added.Draw(t, "added")}}
	if !ready && rapid.Bool().Draw(t, "tainted") {
		taints = append(taints, corev1.Taint{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoSchedule, TimeAdded: added.Draw(t, "away")},
			corev1.Taint{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoExecute, TimeAdded: added.Draw(t, "away")})
	}
	return Cluster{
		Name: name,
		Labels: map[string]string{
			"k": words.Draw(t, "label"), hubv1.RegionLabel: words.Draw(t, "region"), hubv1.ZoneLabel: words.Draw(t, "zone"),
		},
		Taints:        taints,
		Unschedulable: !mostly.Draw(t, "schedulable"), Ready: ready,
		Departure: Departure{
			Draining: !mostly.Draw(t, "kept"), TakesAway: rapid.Bool().Draw(t, "takes away"), Leaving: !mostly.Draw(t, "stays"),
		},
		NamespaceAllowed: mostly.Draw(t, "allowed"),
		Facts: Facts{
			Version: rapid.SampledFrom([]string{"", "v1.30.1", "v1.36.0+k3s1", "odd"}).Draw(t, "version"),
			Nodes:   hubv1.NodeSummary{Ready: rapid.Int32Range(-1, 3).Draw(t, "nodes")},
			Served: rapid.SampledFrom([]map[schema.GroupKind][]string{
				nil, nil, {widget.GroupKind(): {"v1"}}, {widget.GroupKind(): {"v1beta1"}}, {widget.GroupKind(): nil},
			}).Draw(t, "served"),
		},
		Objects: rapid.IntRange(-1, 5).Draw(t, "objects"),
	}
}

var expressions = rapid.SampledFrom([]string{
	"", "true", "region == 'x'", "labels['k'] == 'x'", "labels['none'] == 'x'", "nodes.ready > 1", "semver(version, true).major() == 1",
	"capacity['cpu'].isGreaterThan(quantity('1'))", "servedKinds.exists(k, k.startsWith('Widget'))", "1 / nodes.ready > 0", "operators[?'rotors'].installed.orValue(false)",
})

func genSelection(t *rapid.T) hubv1.ClusterSelection {
	s := hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	if rapid.Bool().Draw(t, "any") {
		return s
	}
	s.Expression = expressions.Draw(t, "expression")
	names := rapid.SampledFrom([]string{"c00", "c01", "c02", "c03", "c04", "c05"})
	s.Names = rapid.SliceOfN(names, 0, 6).Draw(t, "names")
	s.ExcludedNames = rapid.SliceOfN(names, 0, 2).Draw(t, "excluded")
	s.LabelSelector = genSelector(t)
	s.Tolerations = []corev1.Toleration{{
		Key: words.Draw(t, "toleratedKey"), Operator: corev1.TolerationOpExists,
		TolerationSeconds: rapid.SampledFrom([]*int64{nil, nil, ptr.To[int64](0), ptr.To[int64](45), ptr.To[int64](math.MaxInt64), ptr.To[int64](math.MinInt64)}).Draw(t, "for"),
	}}
	return s
}

func genSelector(t *rapid.T) *metav1.LabelSelector {
	op := rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Odd"}).Draw(t, "op")
	var values []string
	if op == "In" || op == "NotIn" {
		values = rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y"}), 1, 2).Draw(t, "values")
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: op, Values: values}}}
}

func genSpread(t *rapid.T) *hubv1.SpreadPolicy {
	if rapid.Bool().Draw(t, "everywhere") {
		return nil
	}
	number := func(name string) *int32 {
		return rapid.SampledFrom([]*int32{nil, nil, ptr.To[int32](-1), ptr.To[int32](0), ptr.To[int32](1), ptr.To[int32](2), ptr.To[int32](3), ptr.To[int32](5)}).Draw(t, name)
	}
	s := &hubv1.SpreadPolicy{NumberOfClusters: number("numberOfClusters")}
	s.Rebalance = rapid.SampledFrom([]hubv1.Rebalance{"", hubv1.RebalanceNever, hubv1.RebalanceAlways}).Draw(t, "rebalance")
	for _, key := range rapid.SampledFrom([][]string{nil, {hubv1.RegionLabel}, {hubv1.ZoneLabel, hubv1.RegionLabel}, {"k", hubv1.RegionLabel, hubv1.ZoneLabel}}).Draw(t, "keys") {
		s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, hubv1.TopologySpreadConstraint{
			TopologyKey: key, MinDomains: number("minDomains"), MaxDomains: number("maxDomains"), ClustersPerDomain: number("perDomain"), MaxSkew: number("maxSkew"),
			WhenUnsatisfiable: rapid.SampledFrom([]hubv1.WhenUnsatisfiable{hubv1.DoNotSchedule, hubv1.ScheduleAnyway}).Draw(t, "when"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "preferences") {
		s.Preferences = append(s.Preferences, hubv1.ClusterPreference{Weight: rapid.Int32Range(-100, 100).Draw(t, "weight"), Expression: expressions.Draw(t, "preference")})
	}
	for _, name := range []hubv1.ScoreName{hubv1.ScoreAvailableCapacity, hubv1.ScoreFewestObjects} {
		if rapid.Bool().Draw(t, "weighs") {
			s.Scores = append(s.Scores, hubv1.WeighedScore{Name: name, Weight: rapid.Int32Range(-100, 100).Draw(t, "weight")})
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "groups") {
		s.AffinityGroups = append(s.AffinityGroups, hubv1.AffinityGroup{Name: fmt.Sprint(i), LabelSelector: genSelector(t)})
	}
	return s
}

func TestOrderOfClustersChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		want, wantTrace := Explain(in)
		in.Clusters = rapid.Permutation(in.Clusters).Draw(t, "order")
		got, trace := Explain(in)
		if diff := cmp.Diff(want, got) + cmp.Diff(wantTrace, trace); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestExplainingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		explained, _ := Explain(in)
		if diff := cmp.Diff(Decide(in), explained); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestWhatIsRememberedChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		want := Decide(in)
		for i := range in.Clusters {
			in.Clusters[i].Revision = "1"
		}
		if diff := cmp.Diff(want, Decide(in)) + cmp.Diff(want, Decide(in)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestADecisionIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		first := Decide(in)
		in.Held, in.Evicting = holders(first), evicting(first)
		for i := range in.Clusters { // without the object, no cluster has fewer than 0 objects
			in.Clusters[i].Objects = max(0, in.Clusters[i].Objects)
		}
		for range first.Unmoved { // each may be replaced later, when others have lost the object
			first = Decide(in)
			in.Held, in.Evicting = holders(first), evicting(first)
		}
		second := Decide(in)
		if diff := cmp.Diff(clustersOf(first), clustersOf(second)); diff != "" {
			t.Fatalf("decided again, the object moves:\n%s", diff)
		}
		in.ObjectName = "of another order"
		if diff := cmp.Diff(clustersOf(first), clustersOf(Decide(in))); diff != "" {
			t.Fatalf("decided by another order of ties, the object moves:\n%s", diff)
		}
	})
}

// The choices of many objects are independent: no cluster gets many more of them than its share, and neighbours by name
// are not chosen together more often than other clusters.
func TestTiesSpreadManyObjectsOverAllClusters(t *testing.T) {
	const clusters, objects, wanted = 300, 1000, 30
	in := Input{Placement: compiled(t, every(), &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](wanted)}), Object: hubv1.HubObject{GVK: widget}}
	for i := range clusters {
		in.Clusters = append(in.Clusters, open(fmt.Sprintf("eu-%03d", i)))
	}
	got, neighbours := map[string]int{}, 0
	for i := range objects {
		in.ObjectName = fmt.Sprintf("shop/web-%d", i)
		chosen := holders(Decide(in))
		for i, c := range in.Clusters {
			if chosen[c.Name] {
				got[c.Name]++
				if i > 0 && chosen[in.Clusters[i-1].Name] {
					neighbours++
				}
			}
		}
	}
	const share = objects * wanted / clusters
	for _, c := range in.Clusters {
		if n := got[c.Name]; n < share/2 || n > share*3/2 {
			t.Errorf("%s holds %d objects, the share of a cluster is %d", c.Name, n, share)
		}
	}
	const expected = objects * (clusters - 1) * wanted * (wanted - 1) / (clusters * (clusters - 1))
	if neighbours < expected*9/10 || neighbours > expected*11/10 {
		t.Errorf("%d pairs of neighbours hold the same object, independent choices give %d", neighbours, expected)
	}
}

func TestObjectsOfOneNameLandOnTheSameClusters(t *testing.T) {
	in := Input{Placement: compiled(t, every(), &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](3)}), Clusters: fleet(100), ObjectName: "shop/web"}
	var all [][]string
	for _, kind := range []string{"Deployment", "Service", "HorizontalPodAutoscaler"} {
		in.Object = hubv1.HubObject{GVK: schema.GroupVersionKind{Version: "v1", Kind: kind}}
		all = append(all, clustersOf(Decide(in)))
	}
	if !slices.Equal(all[0], all[1]) || !slices.Equal(all[0], all[2]) {
		t.Errorf("the objects are on %v", all)
	}
}

func holders(d Decision) map[string]bool {
	out := map[string]bool{}
	for _, x := range d.Targets {
		out[x.Cluster] = true
	}
	return out
}

func evicting(d Decision) map[string]bool {
	out := map[string]bool{}
	for _, x := range d.Evict {
		out[x.Cluster] = true
	}
	return out
}

func clustersOf(d Decision) []string {
	var out []string
	for _, x := range d.Targets {
		out = append(out, x.Cluster)
	}
	return out
}

func TestEveryClusterIsInExactlyOneList(t *testing.T) {
	unselecting := []string{
		hubv1.ReasonNotSelected, hubv1.ReasonExcluded, hubv1.ReasonExcludedByOverride, hubv1.ReasonTaintNotTolerated, hubv1.ReasonClusterLeaving,
		hubv1.ReasonNotChosen, hubv1.ReasonSpreadConstraint, hubv1.ReasonOtherAffinityGroup,
	}
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		d := Decide(in)
		lists := map[string]int{}
		for _, x := range d.Targets {
			lists[x.Cluster]++
		}
		for _, x := range d.Rejected {
			lists[x.Cluster]++
			if in.Held[x.Cluster] {
				t.Errorf("%s holds the object and is rejected instead of withdrawn", x.Cluster)
			}
		}
		for _, x := range d.Withdraw {
			lists[x.Cluster]++
			if !in.Held[x.Cluster] && !in.Evicting[x.Cluster] {
				t.Errorf("%s holds nothing and is withdrawn", x.Cluster)
			}
			if !slices.Contains(unselecting, x.Reason) && !takenAway(in, d)[x.Cluster] {
				t.Errorf("%s is withdrawn by %s, which may only keep new objects away", x.Cluster, x.Reason)
			}
		}
		for _, x := range d.Evict {
			lists[x.Cluster]++
			if !in.Held[x.Cluster] && !in.Evicting[x.Cluster] {
				t.Errorf("%s holds nothing and is evicted", x.Cluster)
			}
		}
		for _, x := range slices.Concat(d.Rejected, d.Withdraw, d.Evict, d.Unmoved) {
			if x.Reason == "" || x.Message == "" {
				t.Errorf("%s is left out without a reason: %+v", x.Cluster, x)
			}
		}
		for _, x := range d.Missing {
			lists[x]++
		}
		for _, c := range in.Clusters {
			if lists[c.Name] != 1 {
				t.Errorf("%s is in %d lists", c.Name, lists[c.Name])
			}
		}
	})
}

// counted has the numbers of chosen clusters in each domain, which spread constraints limit.
type counted struct {
	of   map[string]int
	most int
}

func countBy(in Input, d Decision, key string, which func(cluster string) bool) counted {
	labels := map[string]string{}
	for _, c := range in.Clusters {
		labels[c.Name] = c.Labels[key]
	}
	out := counted{of: map[string]int{}}
	for _, x := range d.Targets {
		if which(x.Cluster) {
			out.of[labels[x.Cluster]]++
			out.most = max(out.most, out.of[labels[x.Cluster]])
		}
	}
	return out
}

func TestEveryConstraintHoldsOrTheDecisionSaysSo(t *testing.T) {
	all := func(string) bool { return true }
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		d := Decide(in)
		if d.Kept {
			for _, x := range d.Targets {
				if !in.Held[x.Cluster] {
					t.Fatalf("the decision keeps what was and adds %s", x.Cluster)
				}
			}
			if len(d.Shortfalls) == 0 {
				t.Fatal("the decision keeps what was and does not say why")
			}
			return
		}
		p := in.Placement
		if p.number > 0 && len(d.Targets) > p.number {
			t.Fatalf("%d clusters, numberOfClusters is %d", len(d.Targets), p.number)
		}
		if p.number > 0 && len(d.Targets) < p.number && len(d.Targets) > 0 && len(d.Shortfalls) == 0 {
			t.Fatalf("%d clusters, numberOfClusters is %d, and nothing is said", len(d.Targets), p.number)
		}
		for _, c := range p.constraints {
			if c.anyway {
				continue
			}
			now := countBy(in, d, c.key, all)
			if len(d.Targets) > 0 && len(now.of) < c.minimum {
				t.Fatalf("%s: %v, minDomains is %d", c.key, now.of, c.minimum)
			}
			if c.maximum > 0 && len(now.of) > c.maximum {
				t.Fatalf("%s: %v, maxDomains is %d", c.key, now.of, c.maximum)
			}
			if c.perDomain > 0 && now.most > c.perDomain {
				t.Fatalf("%s: %v, clustersPerDomain is %d", c.key, now.of, c.perDomain)
			}
			held := countBy(in, d, c.key, func(x string) bool { return in.Held[x] })
			if least := leastOf(now); c.skew > 0 && len(now.of) > 1 && now.most-least > c.skew && now.most > held.most {
				t.Fatalf("%s: %v, of which held %v, maxSkew is %d", c.key, now.of, held.of, c.skew)
			}
		}
	})
}

func leastOf(c counted) int {
	least := c.most
	for _, n := range c.of {
		least = min(least, n)
	}
	return least
}

func TestAddingAClusterMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		if in.Placement.rebalance {
			t.Skip("rebalance was asked for")
		}
		before := Decide(in)
		if before.Kept {
			t.Skip("the constraints did not hold")
		}
		in.Held, in.Evicting = holders(before), evicting(before)
		in.Clusters = append(in.Clusters, genCluster(t, "new"))
		after := Decide(in)
		for _, c := range clustersOf(before) {
			if !slices.Contains(clustersOf(after), c) && !evicting(after)[c] && !takenAway(in, after)[c] {
				t.Fatalf("%s lost the object because another cluster came: %v, then %v", c, clustersOf(before), clustersOf(after))
			}
		}
	})
}

func TestRemovingAClusterMovesOnlyItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		if in.Placement.rebalance || len(in.Placement.groups) > 0 {
			t.Skip("the whole may be chosen anew")
		}
		before := Decide(in)
		if before.Kept || len(in.Clusters) == 0 {
			t.Skip("nothing to remove")
		}
		in.Held, in.Evicting = holders(before), evicting(before)
		gone := rapid.IntRange(0, len(in.Clusters)-1).Draw(t, "gone")
		name := in.Clusters[gone].Name
		in.Clusters = slices.Delete(slices.Clone(in.Clusters), gone, gone+1)
		delete(in.Held, name)
		delete(in.Evicting, name)
		after := Decide(in)
		if after.Kept {
			return
		}
		moved := 0
		for _, c := range clustersOf(before) {
			if c != name && !slices.Contains(clustersOf(after), c) && !evicting(after)[c] && !takenAway(in, after)[c] {
				moved++
			}
		}
		lost := 0
		for _, c := range in.Placement.constraints {
			lost += c.minimum // each lost domain may need another cluster
		}
		if moved > lost {
			t.Fatalf("without %s, %d other clusters lose the object: %v, then %v", name, moved, clustersOf(before), clustersOf(after))
		}
	})
}
