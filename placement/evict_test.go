package placement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// gone sets the taints and the condition of a cluster that has been unreachable for the given time.
func gone(since time.Duration) func(*Cluster) {
	return func(c *Cluster) {
		c.Ready = false
		at := &metav1.Time{Time: noon.Add(-since)}
		c.Taints = append(c.Taints, corev1.Taint{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoSchedule, TimeAdded: at},
			corev1.Taint{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoExecute, TimeAdded: at})
	}
}

func drained(c *Cluster) { c.Draining = true }

// emptied sets the drain of a cluster, so that the drain also removes objects that no other cluster can hold.
func emptied(c *Cluster) { c.Draining, c.TakesAway = true, true }

func TestEvict(t *testing.T) {
	in := func(number int32, edit func(*hubv1.PlacementSpec), held []string, clusters ...Cluster) Input {
		spec := &hubv1.PlacementSpec{Clusters: every(), Failover: hubv1.FailoverPolicy{EvictAfterSeconds: ptr.To[int32](300)}}
		if number > 0 {
			spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: ptr.To(number)}
		}
		if edit != nil {
			edit(spec)
		}
		p, err := Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		return Input{Placement: p, Object: hubv1.HubObject{GVK: widget}, Clusters: clusters, Held: set(held), Now: noon}
	}
	tolerating := func(ts ...corev1.Toleration) func(*hubv1.PlacementSpec) {
		return func(s *hubv1.PlacementSpec) { s.Clusters.Tolerations = ts }
	}
	a, b, c, d := open("a"), open("b"), open("c"), open("d")
	lost := func(name string) Cluster { return open(name, gone(time.Hour)) }
	changed := func(in Input, edit func(*Input)) Input {
		edit(&in)
		return in
	}

	tests := map[string]struct {
		in      Input
		targets []string
		evict   []string
		gone    []string          // clusters that lose the object without a replacement
		unmoved map[string]string // reasons why clusters keep the object, by cluster
		again   time.Duration
	}{
		"one that is away is replaced":       {in: in(1, nil, []string{"a"}, lost("a"), b, c), targets: []string{"b"}, evict: []string{"a"}},
		"one that is away is waited for":     {in: in(1, nil, []string{"a"}, open("a", gone(time.Minute)), b, c), targets: []string{"a"}, again: 4 * time.Minute},
		"without failover for ever":          {in: in(1, func(s *hubv1.PlacementSpec) { s.Failover.EvictAfterSeconds = nil }, []string{"a"}, lost("a"), b, c), targets: []string{"a"}},
		"one that answers again has no time": {in: in(1, nil, []string{"a"}, open("a", gone(time.Hour), func(c *Cluster) { c.Ready = true }), b, c), targets: []string{"a"}},
		"a toleration that names the taint makes it shorter": {
			in:      in(1, tolerating(corev1.Toleration{Key: hubv1.UnreachableTaint, Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](30)}), []string{"a"}, open("a", gone(time.Minute)), b, c),
			targets: []string{"b"}, evict: []string{"a"},
		},
		"one that names it without a time makes it endless": {
			in: in(1, tolerating(corev1.Toleration{Key: hubv1.UnreachableTaint, Operator: corev1.TolerationOpExists}), []string{"a"}, lost("a"), b, c), targets: []string{"a"},
		},
		"one of every key does not speak of it": {
			in: in(1, tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), []string{"a"}, lost("a"), b, c), targets: []string{"b"}, evict: []string{"a"},
		},
		"the shortest of several counts": {
			in: in(1, tolerating(corev1.Toleration{Key: hubv1.UnreachableTaint, Operator: corev1.TolerationOpExists},
				corev1.Toleration{Key: hubv1.UnreachableTaint, Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](7200)}), []string{"a"}, lost("a"), b, c),
			targets: []string{"a"}, again: time.Hour,
		},
		"one of two can be replaced": {
			in: in(2, nil, []string{"a", "b"}, lost("a"), lost("b"), c, d, open("e", func(c *Cluster) { c.Unschedulable = true }), open("f")), targets: []string{"c", "d"}, evict: []string{"a", "b"},
		},
		"the first of two is replaced if there is one cluster only": {
			in: in(2, nil, []string{"a", "b"}, lost("a"), lost("b"), c, open("d", drained), open("e", drained)), targets: []string{"b", "c"}, evict: []string{"a"},
			unmoved: map[string]string{"b": hubv1.ReasonNoReplacement},
		},
		"one that is away is replaced rather than one that is drained": {
			in: in(2, nil, []string{"a", "b"}, open("a", drained), lost("b"), c), targets: []string{"a", "c"}, evict: []string{"b"},
			unmoved: map[string]string{"a": hubv1.ReasonNoReplacement},
		},
		"nothing is replaced on every cluster": {
			in: in(0, nil, []string{"a", "b"}, open("a", drained), lost("b"), c, d), targets: []string{"a", "b", "c", "d"},
			unmoved: map[string]string{"a": hubv1.ReasonWantedEverywhere, "b": hubv1.ReasonWantedEverywhere},
		},
		"of divided replicas others take over the share": {
			in:      changed(in(0, nil, []string{"a", "b", "c"}, open("a", drained), lost("b"), c), func(in *Input) { in.Divided = true }),
			targets: []string{"c"}, evict: []string{"a", "b"},
		},
		"unless there is nobody": {
			in: changed(in(0, nil, []string{"a", "b"}, open("a", drained), lost("b")), func(in *Input) { in.Divided = true }), targets: []string{"a", "b"},
			unmoved: map[string]string{"a": hubv1.ReasonNoReplacement, "b": hubv1.ReasonNoReplacement},
		},
		"more than half are away": {
			in: in(1, nil, []string{"a"}, lost("a"), lost("b"), open("c", func(c *Cluster) { c.Ready = false }), d), targets: []string{"a"},
			unmoved: map[string]string{"a": hubv1.ReasonTooManyAway},
		},
		"half are away": {in: in(1, nil, []string{"a"}, lost("a"), lost("b"), c, d), targets: []string{"c"}, evict: []string{"a"}},
		"a drain that evicts moves an object that another cluster can take": {
			in: in(1, nil, []string{"a"}, open("a", emptied), b), targets: []string{"b"}, evict: []string{"a"},
		},
		"a drain that evicts takes away the only copy": {
			in: in(1, nil, []string{"a"}, open("a", emptied), open("b", func(c *Cluster) { c.Unschedulable = true })), gone: []string{"a"},
		},
		"a drain that evicts takes away an object that is wanted everywhere": {
			in: in(0, nil, []string{"a", "b"}, open("a", emptied), b), targets: []string{"b"}, gone: []string{"a"},
		},
		"a drain that evicts waits for the turn of an object that can move": {
			in: changed(in(1, nil, []string{"a"}, open("a", emptied), b), func(in *Input) { in.Hold = map[string]string{"a": "later"} }), targets: []string{"a"},
			unmoved: map[string]string{"a": hubv1.ReasonEvictionHeld},
		},
		"a drain that evicts takes nothing away from another cluster that is drained": {
			in: in(2, nil, []string{"a", "b"}, open("a", emptied), open("b", drained), c), targets: []string{"b", "c"}, evict: []string{"a"},
			unmoved: map[string]string{"b": hubv1.ReasonNoReplacement},
		},
		"a drain goes on while many are away":            {in: in(1, nil, []string{"a"}, open("a", drained), lost("b"), lost("c"), d), targets: []string{"d"}, evict: []string{"a"}},
		"a fifth may be away":                            {in: changed(in(1, nil, []string{"a"}, lost("a"), b, c, d), func(in *Input) { in.MaxAway = 20 }), targets: []string{"a"}, unmoved: map[string]string{"a": hubv1.ReasonTooManyAway}},
		"what is held stays":                             {in: changed(in(1, nil, []string{"a"}, lost("a"), b, c), func(in *Input) { in.Hold = map[string]string{"a": "not now"} }), targets: []string{"a"}, unmoved: map[string]string{"a": hubv1.ReasonEvictionHeld}},
		"one that was evicted comes first":               {in: changed(in(1, nil, []string{"c"}, a, b, lost("c")), func(in *Input) { in.Evicting = set([]string{"b"}) }), targets: []string{"b"}, evict: []string{"c"}},
		"one that was evicted is not needed":             {in: changed(in(1, nil, []string{"c"}, a, b, c), func(in *Input) { in.Evicting = set([]string{"b"}) }), targets: []string{"c"}, evict: []string{"b"}},
		"one that was evicted waits while it is drained": {in: changed(in(2, nil, []string{"c"}, c, open("b", drained)), func(in *Input) { in.Evicting = set([]string{"b"}) }), targets: []string{"c"}, evict: []string{"b"}},
		"a group is left when none of its clusters is there": {
			in: in(1, func(s *hubv1.PlacementSpec) {
				s.Spread.AffinityGroups = []hubv1.AffinityGroup{{Name: "own", Names: []string{"a", "b"}}, {Name: "cloud", Names: []string{"c"}}}
			}, []string{"a"}, lost("a"), lost("b"), c, d),
			targets: []string{"c"}, evict: []string{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.in)
			var evict []string
			for _, x := range got.Evict {
				evict = append(evict, x.Cluster)
			}
			var unmoved map[string]string
			for _, x := range got.Unmoved {
				if unmoved == nil {
					unmoved = map[string]string{}
				}
				unmoved[x.Cluster] = x.Reason
			}
			if diff := cmp.Diff(tc.targets, clustersOf(got)) + cmp.Diff(tc.evict, evict) + cmp.Diff(tc.unmoved, unmoved) + cmp.Diff(tc.again, got.Again); diff != "" {
				t.Errorf("targets, evicted, unmoved, again (-want +got):\n%s", diff)
			}
			var gone []string
			for _, x := range got.Withdraw {
				gone = append(gone, x.Cluster)
				if x.Reason != hubv1.ReasonDraining {
					t.Errorf("%s is withdrawn for %s", x.Cluster, x.Reason)
				}
			}
			if diff := cmp.Diff(tc.gone, gone); diff != "" {
				t.Errorf("withdrawn (-want +got):\n%s", diff)
			}
		})
	}
}
