package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestFailover(t *testing.T) {
	t.Parallel()
	eu, sg, us := cluster("eu"), cluster("sg"), cluster("us")
	euLost := cluster("eu", lost(time.Hour))
	byWeight := dividing(hubv1.DivideByWeight)
	limited := func(limit int32) func(*hubv1.Placement) { return dividing(hubv1.DivideByWeight, noMoreThan(limit)) }
	tests := map[string]struct {
		in      given
		want    []string
		reason  string // Scheduled if empty
		message string // part of the message
		takes   bool
		again   time.Duration
	}{
		"a cluster that did not answer for too long is replaced": {
			in:   given{binding: bound(present("eu")), clusters: []*hubv1.MemberCluster{euLost, sg, us}, placements: failingOver(1)},
			want: []string{"~eu Evicted by us", "us"}, takes: true, message: "1 of 3 clusters: 1 replaced by other clusters, 1 not needed",
		},
		"before its time it is waited for": {
			in:   given{binding: bound(present("eu")), clusters: []*hubv1.MemberCluster{cluster("eu", lost(time.Minute)), sg, us}, placements: failingOver(1)},
			want: []string{"eu"}, again: 4 * time.Minute,
		},
		"what is not confirmed moves nothing": {
			in:   given{binding: bound(present("eu")), clusters: []*hubv1.MemberCluster{euLost, sg, us}, placements: failingOver(1), holdBack: true},
			want: []string{"eu"},
		},
		"a cluster that is still away keeps its entry": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu Unknown", "sg"), clusters: []*hubv1.MemberCluster{euLost, sg, us}, placements: failingOver(1)},
			want: []string{"~eu Evicted by sg", "sg"},
		},
		"one that is back goes when its replacement is healthy": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu", "sg"), clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(1)},
			want: []string{"-eu Evicted Delete", "sg"}, takes: true,
		},
		"nothing goes before that is confirmed": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu", "sg"), clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(1), holdBack: true},
			want: []string{"~eu Evicted by sg", "sg"},
		},
		"one that is back goes not before that": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu", "sg Progressing"), clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(1)},
			want: []string{"~eu Evicted by sg", "sg"},
		},
		"nor before its copy is of the newest spec": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu Unknown", "sg"), clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(1)},
			want: []string{"~eu Evicted by sg", "sg"},
		},
		"unless it refuses that": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu Refused", "sg"), clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(1)},
			want: []string{"-eu Evicted Delete", "sg"}, takes: true,
		},
		"a replacement whose copy is still the old one is not healthy": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg/d"), present("sg")), "eu", "sg"), clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(1)},
			want: []string{"~eu Evicted by sg/d", "sg"},
		},
		"rows of an earlier decision say nothing": {
			in: given{binding: func() *hubv1.ResourceBinding {
				b := saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu", "sg")
				b.Status.ObservedGeneration = 2
				return b
			}(), clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(1)},
			want: []string{"~eu Evicted by sg", "sg"},
		},
		"without named replacements all must be healthy": {
			in:   given{binding: saying(bound(evictedBy("Evicted"), present("sg"), present("us")), "eu", "sg", "us Degraded"), clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(2)},
			want: []string{"~eu Evicted by", "sg", "us"},
		},
		"a replacement that is lost in turn is replaced by what comes back": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu", "sg Unknown"), clusters: []*hubv1.MemberCluster{eu, cluster("sg", lost(time.Hour)), us}, placements: failingOver(1)},
			want: []string{"eu", "~sg Evicted by eu"}, takes: true,
		},
		"a replacement of a replacement is waited for": {
			in: given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu Unknown", "sg Unknown"), placements: failingOver(1),
				clusters: []*hubv1.MemberCluster{euLost, cluster("sg", lost(time.Hour)), us, cluster("zz")}},
			want: []string{"~eu Evicted by us", "~sg Evicted by us", "us"}, takes: true,
		},
		"without another cluster nothing moves": {
			in:   given{binding: bound(present("eu"), present("sg")), clusters: []*hubv1.MemberCluster{euLost, sg}, placements: failingOver(2)},
			want: []string{"eu", "sg"}, reason: hubv1.ReasonNoReplacement, message: "2 of 2 clusters; stays on eu: no other cluster can replace it: without it, numberOfClusters: 1 of 2",
		},
		"while too many are away nothing moves": {
			in:   given{binding: bound(present("eu")), clusters: []*hubv1.MemberCluster{euLost, sg, cluster("us", unreachable)}, placements: failingOver(1)},
			want: []string{"eu"}, reason: hubv1.ReasonTooManyAway, message: "stays on eu: 2 of 3 clusters do not answer: the hub moves no object while more than half do not answer",
		},
		"an object that is wanted everywhere stays": {
			in:   given{binding: bound(present("eu"), present("sg"), present("us")), clusters: []*hubv1.MemberCluster{euLost, sg, us}, placements: failingOver(0)},
			want: []string{"eu", "sg", "us"}, message: "3 of 3 clusters; stays on eu: the placement wants the object on every cluster",
		},
		"a cluster that leaves is withdrawn from": {
			in:   given{binding: bound(evictedBy("Evicted", "sg"), present("sg")), clusters: []*hubv1.MemberCluster{cluster("eu", leaving(hubv1.RemovalOrphan)), sg, us}, placements: failingOver(1)},
			want: []string{"-eu ClusterLeaving Orphan", "sg"}, takes: true,
		},
		"a cluster that is no longer selected is withdrawn from": {
			in: given{binding: bound(evictedBy("Evicted", "sg"), present("sg")), clusters: []*hubv1.MemberCluster{euLost, sg, us},
				placements: failingOver(1, func(p *hubv1.Placement) { p.Spec.Clusters.ExcludedNames = []string{"eu"} })},
			want: []string{"-eu Excluded Delete", "sg"}, takes: true,
		},
		"an object that is deleted is withdrawn from everywhere": {
			in:   given{state: Deleted, binding: bound(evictedBy("Evicted", "sg"), present("sg")), clusters: []*hubv1.MemberCluster{euLost, sg, us}, placements: failingOver(1)},
			want: []string{"-eu ObjectDeleted Delete", "-sg ObjectDeleted Delete"}, takes: true, reason: hubv1.ReasonObjectDeleted,
		},
		"without its placement everything stays": {
			in:   given{binding: saying(bound(evictedBy("Evicted", "sg"), present("sg")), "eu", "sg"), clusters: []*hubv1.MemberCluster{eu, sg, us}},
			want: []string{"~eu Evicted by sg", "sg"}, reason: hubv1.ReasonPlacementGone,
		},

		"the share of a cluster that is away goes to the others": {
			in: given{binding: saying(divided(share("eu", 2), share("sg", 2), share("us", 2)), "eu Unknown", "sg", "us"),
				clusters: []*hubv1.MemberCluster{euLost, sg, us}, placements: failingOver(0, byWeight)},
			want: []string{"~eu=2 Evicted by sg/d us/d", "sg=3", "us=3"}, takes: true,
		},
		"as much of it as has room": {
			in: given{binding: saying(divided(share("eu", 2), share("sg", 2), share("us", 2)), "eu Unknown", "sg", "us"),
				clusters: []*hubv1.MemberCluster{euLost, sg, cluster("us", func(c *hubv1.MemberCluster) { c.Spec.Unschedulable = true })}, placements: failingOver(0, limited(3))},
			want: []string{"~eu=2 Evicted by sg/d", "sg=3", "us=2"}, takes: true, reason: hubv1.ReasonReplicasUnplaced,
		},
		"a cluster that is back gets its share when it is well": {
			in: given{binding: saying(divided(having(evictedBy("Evicted", "sg", "us"), 2), share("sg", 3), share("us", 3)), "eu Progressing", "sg", "us"),
				clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(0, byWeight)},
			want: []string{"~eu=2 Evicted by sg us", "sg=3", "us=3"},
		},
		"and then it has it": {
			in: given{binding: saying(divided(having(evictedBy("Evicted", "sg", "us"), 2), share("sg", 3), share("us", 3)), "eu", "sg", "us"),
				clusters: []*hubv1.MemberCluster{eu, sg, us}, placements: failingOver(0, byWeight)},
			want: []string{"eu=2", "sg=2", "us=2"},
		},
		"a surplus of replicas stays as long as the others have too few": {
			in: given{binding: saying(divided(having(evictedBy("Evicted", "sg", "us"), 2), share("sg", 2), share("us", 2)), "eu", "sg", "us"),
				clusters: []*hubv1.MemberCluster{cluster("eu", drained), sg, us}, placements: failingOver(0, limited(2))},
			want: []string{"~eu=2 Evicted by sg us", "sg=2", "us=2"}, reason: hubv1.ReasonReplicasUnplaced,
		},

		"a drained cluster is replaced": {
			in:   given{binding: bound(present("eu")), clusters: []*hubv1.MemberCluster{cluster("eu", drained), sg, us}, placements: only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)})))},
			want: []string{"~eu Drained by us", "us"}, takes: true,
		},
		"a drained cluster goes when its replacement is healthy": {
			in: given{binding: saying(bound(evictedBy("Drained", "sg"), present("sg")), "eu", "sg"), clusters: []*hubv1.MemberCluster{cluster("eu", drained), sg, us},
				placements: only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)})))},
			want: []string{"-eu Drained Delete", "sg"}, takes: true,
		},
		"a copy whose replacement has left stays, because no other cluster has one": {
			in: given{binding: saying(bound(evictedBy("Drained"), absent("sg", hubv1.ReasonClusterLeaving, hubv1.RemovalOrphan)), "eu"),
				clusters: []*hubv1.MemberCluster{cluster("eu", drained), cluster("sg", leaving(hubv1.RemovalOrphan))}, placements: failingOver(1)},
			want: []string{"~eu Drained by", "-sg ClusterLeaving Orphan"}, reason: hubv1.ReasonNoClusterSelected,
		},
		"so does the copy on a cluster that is back and takes no new objects": {
			in: given{binding: saying(bound(evictedBy("Evicted")), "eu"),
				clusters: []*hubv1.MemberCluster{cluster("eu", func(c *hubv1.MemberCluster) { c.Spec.Unschedulable = true })}, placements: failingOver(1)},
			want: []string{"~eu Evicted by"}, reason: hubv1.ReasonNoClusterSelected,
		},
		"a copy does not go together with its replacement": {
			in: given{binding: saying(bound(evictedBy("Drained", "sg"), present("sg")), "eu", "sg"),
				clusters: []*hubv1.MemberCluster{cluster("eu", drained), cluster("sg", leaving(hubv1.RemovalOrphan))}, placements: failingOver(1)},
			want: []string{"~eu Drained by", "-sg ClusterLeaving Orphan"}, reason: hubv1.ReasonNoClusterSelected, takes: true,
		},
		"a share stays if another cluster with a share is about to leave": {
			in: given{binding: saying(divided(having(evictedBy("Drained", "sg", "us"), 2), share("sg", 3), share("us", 3)), "eu", "sg", "us"),
				clusters: []*hubv1.MemberCluster{cluster("eu", drained), cluster("sg", leaving(hubv1.RemovalOrphan)), us}, placements: failingOver(0, byWeight)},
			want: []string{"~eu=2 Drained by us/d", "-sg ClusterLeaving Orphan", "us=6"}, takes: true,
		},
		"a drain that evicts takes away what is wanted everywhere": {
			in: given{binding: bound(present("eu"), present("sg"), present("us")), clusters: []*hubv1.MemberCluster{cluster("eu", emptied), sg, us},
				placements: only(policy("web", spreading(hubv1.SpreadPolicy{})))},
			want: []string{"-eu Draining Delete", "sg", "us"}, takes: true, message: "2 of 3 clusters: 1 drained",
		},
		"what a drain evicted comes back when it ends": {
			in: given{binding: bound(absent("eu", hubv1.ReasonDraining, hubv1.RemovalDelete), present("sg"), present("us")), clusters: []*hubv1.MemberCluster{eu, sg, us},
				placements: only(policy("web", spreading(hubv1.SpreadPolicy{})))},
			want: []string{"eu", "sg", "us"},
		},
		"a drain that evicts moves replicas although some have no room": {
			in: given{binding: saying(divided(share("eu", 2), share("sg", 2), share("us", 2)), "eu", "sg", "us"),
				clusters: []*hubv1.MemberCluster{cluster("eu", emptied), sg, us}, placements: failingOver(0, limited(2))},
			want: []string{"~eu=2 Drained by", "sg=2", "us=2"}, takes: true, reason: hubv1.ReasonReplicasUnplaced,
		},
		"replicas that have no room go with a drain that evicts": {
			in: given{binding: saying(divided(having(evictedBy("Drained"), 2), share("sg", 2), share("us", 2)), "eu", "sg", "us"),
				clusters: []*hubv1.MemberCluster{cluster("eu", emptied), sg, us}, placements: failingOver(0, limited(2))},
			want: []string{"-eu Drained Delete", "sg=2", "us=2"}, takes: true, reason: hubv1.ReasonReplicasUnplaced,
		},
		"a drain moves replicas only if all have room": {
			in: given{binding: saying(divided(share("eu", 2), share("sg", 2), share("us", 2)), "eu", "sg", "us"),
				clusters: []*hubv1.MemberCluster{cluster("eu", drained), sg, us}, placements: failingOver(0, limited(2))},
			want: []string{"eu=2", "sg=2", "us=2"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.in.state == Exists {
				tc.in.uid = "a"
			}
			f := tc.in.input()
			if f.Object.Template != nil {
				f.Object.Template.Object["spec"] = map[string]any{"size": int64(6)}
			}
			p := Decide(f)
			if diff := cmp.Diff(tc.want, entriesOf(p.Spec)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if tc.reason == "" {
				tc.reason = hubv1.ReasonScheduled
			}
			if p.Status.Scheduled.Reason != tc.reason || !strings.Contains(p.Status.Scheduled.Message, tc.message) {
				t.Errorf("it is %s: %s", p.Status.Scheduled.Reason, p.Status.Scheduled.Message)
			}
			if p.Withdraws != tc.takes || p.Again != tc.again {
				t.Errorf("takes %t, want %t; again after %s, want %s", p.Withdraws, tc.takes, p.Again, tc.again)
			}
		})
	}
}

// The test chooses at random which clusters have a copy, and which clusters are lost or drained. The limits of the hub
// permit no eviction now, so no copy may become Evicting.
func TestNothingIsEvictedBeyondTheLimits(t *testing.T) {
	t.Parallel()
	names := []string{"eu", "sg", "us", "za"}
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		var clusters []*hubv1.MemberCluster
		limits := &Limits{EvictionIn: time.Second, FullDrains: map[string]bool{}, MaxAway: 100}
		for _, name := range names {
			switch rapid.SampledFrom([]string{"answers", "is lost", "is drained"}).Draw(t, name) {
			case "is lost":
				clusters = append(clusters, cluster(name, lost(time.Hour)))
			case "is drained":
				clusters, limits.FullDrains[name] = append(clusters, cluster(name, drained)), true
			default:
				clusters = append(clusters, cluster(name))
			}
		}
		var entries []hubv1.BindingTarget
		for _, name := range some.Draw(t, "held") {
			entries = append(entries, present(name))
		}
		number := rapid.Int32Range(0, 3).Draw(t, "number")
		in := given{binding: bound(entries...), uid: "a", clusters: clusters, placements: failingOver(number, named(some.Draw(t, "selected")...))}.input()
		in.Limits, in.Removals = limits, map[string]Verdict{}
		p := Decide(in)
		for _, e := range p.Spec.Clusters {
			if e.State == hubv1.TargetEvicting {
				t.Fatalf("the entries are %v", entriesOf(p.Spec))
			}
		}
		if len(p.Claims.Evicted) > 0 {
			t.Fatalf("the claims are %+v", p.Claims)
		}
	})
}

// The test moves objects and changes clusters at random. A replaced copy may be removed only if another healthy copy
// stays.
func TestACopyIsReplacedOnlyByOneThatStays(t *testing.T) {
	t.Parallel()
	names := []string{"eu", "sg", "us", "za"}
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		var clusters []*hubv1.MemberCluster
		takesAway := map[string]bool{}
		for _, name := range names {
			switch rapid.SampledFrom([]string{"answers", "is lost", "is drained", "is emptied", "is cordoned", "leaves", "is gone"}).Draw(t, name) {
			case "is lost":
				clusters = append(clusters, cluster(name, lost(time.Hour)))
			case "is drained":
				clusters = append(clusters, cluster(name, drained))
			case "is emptied":
				clusters, takesAway[name] = append(clusters, cluster(name, emptied)), true
			case "is cordoned":
				clusters = append(clusters, cluster(name, func(c *hubv1.MemberCluster) { c.Spec.Unschedulable = true }))
			case "leaves":
				clusters = append(clusters, cluster(name, leaving(hubv1.RemovalOrphan)))
			case "is gone":
			default:
				clusters = append(clusters, cluster(name))
			}
		}
		var entries []hubv1.BindingTarget
		var rows []string
		for _, name := range names {
			switch rapid.SampledFrom([]string{"none", "present", "evicting", "absent"}).Draw(t, name+" has") {
			case "present":
				entries = append(entries, present(name))
			case "evicting":
				e := evictedBy("Drained", some.Draw(t, name+" is replaced by")...)
				e.Name = name
				entries = append(entries, e)
			case "absent":
				entries = append(entries, absent(name, hubv1.ReasonNotSelected, hubv1.RemovalDelete))
			}
			rows = append(rows, name+rapid.SampledFrom([]string{"", "", " Progressing", " Unknown"}).Draw(t, name+" says"))
		}
		number := rapid.Int32Range(0, 3).Draw(t, "number")
		in := given{binding: saying(bound(entries...), rows...), uid: "a", clusters: clusters, placements: failingOver(number)}.input()
		p := Decide(in)
		stays := func(e hubv1.BindingTarget) bool {
			before, row := in.Spec().Target(e.Name), in.Binding.BindingStatus().Row(e.Name)
			return e.State == hubv1.TargetPresent && before != nil && before.State == hubv1.TargetPresent && row != nil && row.Health == hubv1.HealthHealthy
		}
		for _, e := range p.Spec.Clusters {
			before := in.Spec().Target(e.Name)
			if before == nil || before.State != hubv1.TargetEvicting || e.State != hubv1.TargetAbsent || e.Absent.Reason != before.Evicting.Reason || takesAway[e.Name] {
				continue
			}
			if !slices.ContainsFunc(p.Spec.Clusters, stays) {
				t.Fatalf("from %v to %v", entriesOf(in.Spec()), entriesOf(p.Spec))
			}
		}
	})
}
