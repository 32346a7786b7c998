package decide

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

func TestWhichKindsAClusterServesOtherwise(t *testing.T) {
	t.Parallel()
	gk := func(kind string) schema.GroupKind { return schema.GroupKind{Group: "example.com", Kind: kind} }
	type says = map[schema.GroupKind][]string
	tests := map[string]struct {
		before, after says
		want          []string
	}{
		"nothing has changed":               {says{gk("A"): {"v1"}, gk("B"): nil}, says{gk("A"): {"v1"}, gk("B"): {}}, nil},
		"another version, and one more":     {says{gk("A"): {"v1"}, gk("B"): {"v1"}}, says{gk("A"): {"v2"}, gk("B"): {"v1", "v2"}}, []string{"A", "B"}},
		"a kind of which nothing was known": {nil, says{gk("A"): nil}, []string{"*", "A"}},
		"a kind that is no longer asked for": {
			says{gk("A"): {"v1"}, gk("B"): {"v1"}}, says{gk("B"): {"v1"}}, []string{"A"},
		},
		"nothing is known": {nil, nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := func(s says) *placement.Cluster {
				return &placement.Cluster{Facts: placement.Facts{Served: s, ServedInFull: s != nil}}
			}
			var got []string
			for moved := range servedOtherwise(of(tc.before), of(tc.after)) {
				got = append(got, moved.Kind)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhichObjectsAChangeReaches has the objects on, which has an entry for eu, placed, which is on other clusters, and
// lacking, which has too few clusters.
func TestWhichObjectsAChangeReaches(t *testing.T) {
	t.Parallel()
	gold := func(c *hubv1.MemberCluster) { c.Labels["tier"] = "gold" }
	two := spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](2)})
	inRegions := spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](2), TopologySpreadConstraints: []hubv1.TopologySpreadConstraint{{TopologyKey: hubv1.RegionLabel}}})
	rebalancing := spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](2), Rebalance: hubv1.RebalanceAlways})
	taint := func(c *hubv1.MemberCluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}
	}
	waved := func(p *hubv1.Placement) {
		two(p)
		p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "a", Clusters: &hubv1.RuleClusters{Expression: "labels['tier'] == 'gold'"}}, {Name: "b"}}}
	}
	for name, tc := range map[string]struct {
		place  func(*hubv1.Placement)
		change func(*hubv1.MemberCluster)
		want   []string
	}{
		"a label that nothing reads": {two, gold, nil},
		"a label that the selector reads, with the same result": {func(p *hubv1.Placement) {
			p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "lead"}}}
		}, gold, []string{"lacking", "on", "placed"}},
		"a label that a wave reads":                              {waved, gold, []string{"on"}},
		"a readiness, of some clusters":                          {two, unreachable, []string{"lacking", "on"}},
		"a readiness, of all clusters":                           {func(*hubv1.Placement) {}, unreachable, []string{"lacking", "on"}},
		"a readiness, with constraints":                          {inRegions, unreachable, []string{"lacking", "on", "placed"}},
		"a readiness, while objects are rebalanced":              {rebalancing, unreachable, []string{"lacking", "on", "placed"}},
		"a taint of a cluster that is not selected":              {func(p *hubv1.Placement) { named("sg")(p) }, taint, []string{"on"}},
		"the namespaces that the cluster allows":                 {two, func(c *hubv1.MemberCluster) { c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromNone }, []string{"lacking", "on"}},
		"the namespaces that it allows, with every cluster":      {func(*hubv1.Placement) {}, func(c *hubv1.MemberCluster) { c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromNone }, []string{"lacking", "on", "placed"}},
		"the connection, which matters to objects on it at most": {two, func(c *hubv1.MemberCluster) { c.Spec.Connection.Direct = &hubv1.DirectConnection{} }, []string{"on"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := policy("web", tc.place)
			somewhere := func(c *hubv1.MemberCluster) { c.Labels[hubv1.RegionLabel] = "west" }
			touch := NewTouch(ClusterChange{Before: cluster("eu", somewhere), After: cluster("eu", somewhere, tc.change)}, only(p), nil, nil)
			var got []string
			for object, b := range map[string]*hubv1.ResourceBinding{"on": bound(present("eu"), present("sg")), "placed": bound(present("sg"), present("us")), "lacking": bound(present("sg"))} {
				if touch.Reaches(b, object != "lacking") {
					got = append(got, object)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if touch.Nothing() != (tc.want == nil) {
				t.Errorf("nothing: %t", touch.Nothing())
			}
		})
	}
}

func TestAnOutageReachesTheObjectsOnClustersThatAreAway(t *testing.T) {
	t.Parallel()
	eu, sg, us := cluster("eu"), cluster("sg"), cluster("us")
	goneEU, goneSG := cluster("eu", unreachable), cluster("sg", unreachable)
	one := NewOutage([]*hubv1.MemberCluster{eu, sg, us}, []*hubv1.MemberCluster{goneEU, sg, us}, 50, false)
	if one.Changed() {
		t.Error("one of three clusters is an outage")
	}
	two := NewOutage([]*hubv1.MemberCluster{goneEU, sg, us}, []*hubv1.MemberCluster{goneEU, goneSG, us}, 50, false)
	if !two.Changed() || !two.Reaches(bound(present("eu")), true) || two.Reaches(bound(present("us")), true) || !two.Reaches(bound(present("us")), false) {
		t.Error("the outage of two of three clusters reaches other objects")
	}
}

func TestADeletedClusterReachesEachObject(t *testing.T) {
	t.Parallel()
	p := policy("web", named("sg"))
	touch := NewTouch(ClusterChange{Before: cluster("eu")}, only(p), nil, nil)
	if touch.Nothing() || !touch.Reaches(bound(present("sg")), true) {
		t.Error("the decision on an object that is not on the cluster still names it among the rejected clusters")
	}
}
