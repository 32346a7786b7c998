package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// lost has been away for so long.
func lost(since time.Duration) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		unreachable(c)
		at := &metav1.Time{Time: now.Add(-since)}
		c.Status.Taints = []corev1.Taint{
			{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoSchedule, TimeAdded: at},
			{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoExecute, TimeAdded: at},
		}
	}
}

func drained(c *hubv1.MemberCluster) {
	c.Spec.Drain = &hubv1.DrainPolicy{MaxUnavailable: ptr.To[int32](1)}
}

func evictedBy(reason string, by ...string) hubv1.BindingTarget {
	e := hubv1.BindingTarget{Name: "eu", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{Reason: reason}}
	for _, b := range by {
		cluster, digest, _ := strings.Cut(b, "/")
		e.Evicting.Replacements = append(e.Evicting.Replacements, hubv1.Replacement{Cluster: cluster, Digest: digest})
	}
	return e
}

func having(e hubv1.BindingTarget, replicas int32) hubv1.BindingTarget {
	e.Replicas = &replicas
	return e
}

// entriesOf reads "eu=3" for a cluster with a share, "~eu Evicted by sg/digest" and "-eu Evicted Delete".
func entriesOf(spec *hubv1.BindingSpec) []string {
	var out []string
	for _, e := range spec.Clusters {
		text := e.Name
		if e.Replicas != nil {
			text += fmt.Sprintf("=%d", *e.Replicas)
		}
		switch {
		case e.Absent != nil:
			text = fmt.Sprintf("-%s %s %s", text, e.Absent.Reason, e.Absent.Policy)
		case e.Evicting != nil:
			text = fmt.Sprintf("~%s %s by", text, e.Evicting.Reason)
			for _, r := range e.Evicting.Replacements {
				text += " " + strings.TrimSuffix(r.Cluster+"/"+r.Digest, "/")
			}
		}
		out = append(out, text)
	}
	return out
}

// saying gives the binding rows: "eu" is healthy, "eu Progressing" is not, "eu Unknown" cannot be said to hold anything.
func saying(b *hubv1.ResourceBinding, rows ...string) *hubv1.ResourceBinding {
	for _, r := range rows {
		name, says, _ := strings.Cut(r, " ")
		row := hubv1.ClusterRow{Name: name, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Digest: "d"}
		switch says {
		case "":
		case "Unknown":
			row.Applied, row.Health, row.Digest = metav1.ConditionUnknown, hubv1.HealthUnknown, ""
		case "Refused":
			row.Applied, row.Health, row.Reason = metav1.ConditionFalse, hubv1.HealthUnknown, hubv1.ReasonManifestRefused
		default:
			row.Health = hubv1.Health(says)
		}
		b.Status.Clusters = append(b.Status.Clusters, row)
	}
	return b
}

func failingOver(number int32, change ...func(*hubv1.Placement)) []hubv1.PlacementObject {
	return only(policy("web", append([]func(*hubv1.Placement){func(p *hubv1.Placement) {
		if number > 0 {
			p.Spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: &number}
		}
		p.Spec.Failover.EvictAfterSeconds = ptr.To[int32](300)
	}}, change...)...))
}

func TestFailover(t *testing.T) {
	t.Parallel()
	eu, sg, us := cluster("eu"), cluster("sg"), cluster("us")
	euLost := cluster("eu", lost(time.Hour))
	byWeight := dividing(hubv1.DivideByWeight)
	limited := func(most int32) func(*hubv1.Placement) { return dividing(hubv1.DivideByWeight, noMoreThan(most)) }
	tests := map[string]struct {
		in      given
		want    []string
		reason  string // Scheduled if empty
		message string // a part of it
		takes   bool
		again   time.Duration
	}{
		"a cluster that was away for too long is replaced": {
			in:   given{binding: bound(present("eu")), clusters: []*hubv1.MemberCluster{euLost, sg, us}, placements: failingOver(1)},
			want: []string{"~eu Evicted by sg", "sg"}, takes: true, message: "1 of 3 clusters: 1 replaced by others, 1 not needed",
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
			want: []string{"eu", "sg"}, reason: hubv1.ReasonNoReplacement, message: "2 of 2 clusters; stays on eu: no other cluster can take its place: without it, numberOfClusters: 1 of 2",
		},
		"while too many are away nothing moves": {
			in:   given{binding: bound(present("eu")), clusters: []*hubv1.MemberCluster{euLost, sg, cluster("us", unreachable)}, placements: failingOver(1)},
			want: []string{"eu"}, reason: hubv1.ReasonTooManyAway, message: "stays on eu: 2 of 3 clusters are away: the hub moves nothing while more than half are",
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
			in:   given{fate: gone, binding: bound(evictedBy("Evicted", "sg"), present("sg")), clusters: []*hubv1.MemberCluster{euLost, sg, us}, placements: failingOver(1)},
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
			want: []string{"~eu Drained by sg", "sg"}, takes: true,
		},
		"a drained cluster goes when its replacement is healthy": {
			in: given{binding: saying(bound(evictedBy("Drained", "sg"), present("sg")), "eu", "sg"), clusters: []*hubv1.MemberCluster{cluster("eu", drained), sg, us},
				placements: only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)})))},
			want: []string{"-eu Drained Delete", "sg"}, takes: true,
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
			if tc.in.fate == alive {
				tc.in.uid = "a"
			}
			f := tc.in.facts()
			if f.template != nil {
				f.template.Object["spec"] = map[string]any{"size": int64(6)}
			}
			p := decide(f)
			if diff := cmp.Diff(tc.want, entriesOf(p.spec)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if tc.reason == "" {
				tc.reason = hubv1.ReasonScheduled
			}
			if p.scheduled.Reason != tc.reason || !strings.Contains(p.scheduled.Message, tc.message) {
				t.Errorf("it is %s: %s", p.scheduled.Reason, p.scheduled.Message)
			}
			if p.takes != tc.takes || p.again != tc.again {
				t.Errorf("takes %t, want %t; again after %s, want %s", p.takes, tc.takes, p.again, tc.again)
			}
		})
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	var turns turns
	turns.Failover = Failover{Grace: time.Minute, PerSecond: 4}.WithDefaults()
	if got := turns.settled(now); got != time.Minute {
		t.Errorf("a hub that does not lead believes what it sees after %s", got)
	}
	turns.begin(now.Add(-40 * time.Second))
	if got := turns.settled(now); got != 20*time.Second {
		t.Errorf("after 40 s, a leader believes what it sees after %s", got)
	}
	if got := turns.settled(now.Add(time.Hour)); got != 0 {
		t.Errorf("after an hour, a leader believes what it sees after %s", got)
	}
	id := func(n int) key { return key{Name: fmt.Sprint(n)} }
	for n := range 12 {
		want := max(0, time.Duration(n-3)*250*time.Millisecond)
		if got := turns.turn(id(n), now); got != want {
			t.Errorf("object %d is to wait for %s, want %s", n, got, want)
		}
	}
	if got := turns.turn(id(11), now.Add(time.Second)); got != time.Second {
		t.Errorf("an object that asks again is to wait for %s", got)
	}
	turns.decided(id(11), plan{waits: true}, true)
	turns.decided(id(10), plan{leaves: []string{"eu"}}, false) // the write failed
	turns.decided(id(9), plan{leaves: []string{"eu"}}, true)
	turns.decided(id(8), plan{}, true)
	if _, kept := turns.taken[id(11)]; !kept || len(turns.taken) != 10 {
		t.Errorf("kept are %v", turns.taken)
	}
	if got := turns.turn(id(20), now.Add(time.Hour)); got != 0 {
		t.Errorf("after a pause an object is to wait for %s", got)
	}
}
