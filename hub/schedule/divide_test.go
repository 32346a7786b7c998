package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// dividing lets a placement divide /spec/size of what it selects.
func dividing(by hubv1.DivideBy, change ...func(*hubv1.DividePolicy)) func(*hubv1.Placement) {
	way := &hubv1.DividePolicy{By: by}
	for _, f := range change {
		f(way)
	}
	return func(p *hubv1.Placement) {
		p.Spec.Replicas = hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/size", Divide: way}
		if by == hubv1.DivideByCapacity || by == hubv1.DivideByPack {
			p.Spec.Replicas.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}
	}
}

func noMoreThan(n int32) func(*hubv1.DividePolicy) {
	return func(w *hubv1.DividePolicy) { w.Limits = []hubv1.ReplicaLimit{{MaxReplicas: &n}} }
}

// cpus can be allocated in the cluster.
func cpus(n int64) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
		c.Status.Nodes.Total = 1
	}
}

func share(cluster string, n int32) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent, Replicas: &n}
}

// divided is a binding whose entries are shares of /spec/size.
func divided(entries ...hubv1.BindingTarget) *hubv1.ResourceBinding {
	b := bound(entries...)
	b.Spec.Division = &hubv1.Division{Path: "/spec/size"}
	return b
}

// shares reads "eu=5 sg -us": what each entry has.
func shares(spec *hubv1.BindingSpec) string {
	if spec == nil {
		return "no binding"
	}
	var out []string
	for _, e := range spec.Clusters {
		text := e.Name
		if e.State == hubv1.TargetAbsent {
			text = "-" + text
		}
		if e.Replicas != nil {
			text = fmt.Sprintf("%s=%d", text, *e.Replicas)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestDecideOnShares(t *testing.T) {
	t.Parallel()
	const weight, capacity, packed = hubv1.DivideByWeight, hubv1.DivideByCapacity, hubv1.DivideByPack
	sized := func(p ...*hubv1.MemberCluster) []*hubv1.MemberCluster { return p }
	tests := map[string]struct {
		in      given
		size    any
		want    string
		whole   bool // nothing is divided
		reason  string
		message string
	}{
		"a new object is divided": {
			in: given{placements: only(policy("web", dividing(weight))), clusters: three()}, size: int64(10),
			want: "eu=4 sg=3 us=3", reason: hubv1.ReasonScheduled, message: "3 of 3 clusters",
		},
		"a cluster that would get none does not get the object": {
			in: given{placements: only(policy("web", dividing(weight))), clusters: three()}, size: int64(2),
			want: "eu=1 sg=1", reason: hubv1.ReasonScheduled, message: "2 of 3 clusters: 1 without a share of the replicas",
		},
		"an object scaled to nothing goes everywhere": {
			in: given{placements: only(policy("web", dividing(weight))), clusters: three()}, size: int64(0),
			want: "eu=0 sg=0 us=0", reason: hubv1.ReasonScheduled,
		},
		"a cluster that has the object keeps it without replicas": {
			in: given{binding: divided(share("eu", 1), share("sg", 1), share("us", 1)), placements: only(policy("web", dividing(weight))), clusters: three()}, size: int64(2),
			want: "eu=1 sg=1 us=0", reason: hubv1.ReasonScheduled, message: "3 of 3 clusters",
		},
		"as few as possible move when the number changes": {
			in: given{binding: divided(share("eu", 3), share("sg", 3), share("us", 4)), placements: only(policy("web", dividing(weight))), clusters: three()}, size: int64(11),
			want: "eu=4 sg=3 us=4", reason: hubv1.ReasonScheduled,
		},
		"the share of a cluster that is withdrawn goes to the others": {
			in: given{binding: divided(share("eu", 4), share("sg", 3), share("us", 3)), placements: only(policy("web", named("eu", "sg"), dividing(weight))), clusters: three()}, size: int64(10),
			want: "eu=5 sg=5 -us", reason: hubv1.ReasonScheduled,
		},
		"nothing goes to the others before the withdrawal is confirmed": {
			in: given{binding: divided(share("eu", 4), share("sg", 3), share("us", 3)), holdBack: true, placements: only(policy("web", named("eu", "sg"), dividing(weight))), clusters: three()}, size: int64(10),
			want: "eu=4 sg=3 us=3", reason: hubv1.ReasonScheduled,
		},
		"a cluster that is away keeps its share and gets no more": {
			in: given{binding: divided(share("eu", 2), share("sg", 2), share("us", 2)), placements: only(policy("web", dividing(weight))),
				clusters: sized(cluster("eu"), cluster("sg", unreachable), cluster("us"))}, size: int64(12),
			want: "eu=5 sg=2 us=5", reason: hubv1.ReasonScheduled,
		},
		"one that had all replicas until now gets its share": {
			in: given{binding: bound(present("eu"), present("sg")), placements: only(policy("web", named("eu", "sg"), dividing(weight))),
				clusters: sized(cluster("eu"), cluster("sg", unreachable))}, size: int64(12),
			want: "eu=6 sg=6", reason: hubv1.ReasonScheduled,
		},
		"a cluster without a MemberCluster keeps its share": {
			in: given{binding: divided(share("eu", 3), share("mars", 3)), placements: only(policy("web", dividing(weight))), clusters: three()}, size: int64(12),
			want: "eu=3 mars=3 sg=3 us=3", reason: hubv1.ReasonScheduled,
		},
		"what has no room is told": {
			in: given{placements: only(policy("web", dividing(weight, noMoreThan(3)))), clusters: three()}, size: int64(12),
			want: "eu=3 sg=3 us=3", reason: hubv1.ReasonReplicasUnplaced, message: "3 of 3 clusters; 3 of 12 replicas have no room",
		},
		"by capacity": {
			in: given{placements: only(policy("web", dividing(capacity))), clusters: sized(cluster("eu", cpus(30)), cluster("sg", cpus(10)), cluster("us", cpus(20)))}, size: int64(12),
			want: "eu=6 sg=2 us=4", reason: hubv1.ReasonScheduled,
		},
		"nodes that nobody has looked at have no room": {
			in: given{placements: only(policy("web", dividing(capacity))), clusters: sized(cluster("eu", cpus(30)), cluster("sg"))}, size: int64(12),
			want: "eu=12", reason: hubv1.ReasonScheduled, message: "1 of 2 clusters: 1 without a share of the replicas",
		},
		"packed": {
			in: given{placements: only(policy("web", dividing(packed))), clusters: sized(cluster("eu", cpus(10)), cluster("sg", cpus(40)), cluster("us", cpus(20)))}, size: int64(45),
			want: "sg=40 us=5", reason: hubv1.ReasonScheduled, message: "2 of 3 clusters: 1 without a share of the replicas",
		},
		"a number that is not there changes nothing": {
			in:   given{binding: divided(share("eu", 3), share("sg", 2)), placements: only(policy("web", dividing(weight))), clusters: three()},
			want: "eu=3 sg=2", reason: hubv1.ReasonDivisionRefused,
			message: "Placement/web cannot be followed, every cluster keeps what it has: dividing /spec/size of the Widget: it is not there: set it on the hub object, or correct spec.replicas.path",
		},
		"a kind that needs a path is not guessed at": {
			in: given{binding: bound(present("eu")), placements: only(policy("web", func(p *hubv1.Placement) { p.Spec.Replicas.Type = hubv1.ReplicasDivide })), clusters: three()}, size: int64(3),
			want: "eu", whole: true, reason: hubv1.ReasonDivisionRefused,
			message: "Placement/web cannot be followed, every cluster keeps what it has: dividing the replicas of a Widget.example.com: which field has them is not known: set spec.replicas.path; " +
				"the scale path of its definition suggests /spec/shards, if what that counts can be divided",
		},
		"capacity needs to know what a replica asks for": {
			in: given{placements: only(policy("web", dividing(capacity), func(p *hubv1.Placement) { p.Spec.Replicas.Requests = nil })), clusters: three()}, size: int64(3),
			want: "no binding", reason: hubv1.ReasonDivisionRefused,
			message: "Placement/web cannot be followed, every cluster keeps what it has: finding what one replica of the Widget asks for: it has no pod template at /spec/template: " +
				"set spec.replicas.requests to what one replica asks for",
		},
		"a placement that no longer divides says so": {
			in: given{binding: divided(share("eu", 3), share("sg", 2)), placements: only(policy("web", named("eu", "sg"))), clusters: three()}, size: int64(5),
			want: "eu sg", whole: true, reason: hubv1.ReasonScheduled,
		},
		"shares of another number are no shares": {
			in: given{binding: func() *hubv1.ResourceBinding {
				b := divided(share("eu", 0), share("sg", 9), share("us", 0))
				b.Spec.Division.Path = "/spec/other"
				return b
			}(), placements: only(policy("web", dividing(weight))), clusters: three()}, size: int64(10),
			want: "eu=4 sg=3 us=3", reason: hubv1.ReasonScheduled,
		},
		"a placement that is gone leaves the shares": {
			in: given{binding: divided(share("eu", 3), share("sg", 2)), clusters: three()}, size: int64(9),
			want: "eu=3 sg=2", reason: hubv1.ReasonPlacementGone,
		},
		"so does one that is suspended": {
			in: given{binding: divided(share("eu", 3), share("sg", 2)), placements: only(policy("web", dividing(weight), func(p *hubv1.Placement) { p.Spec.Suspend.Scheduling = true })),
				clusters: three()}, size: int64(9),
			want: "eu=3 sg=2", reason: hubv1.ReasonSuspended,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.in.uid = "a"
			f := tc.in.facts()
			f.scalePath = ".spec.shards"
			f.template.Object["spec"] = map[string]any{"size": tc.size}
			p := decide(f)
			if got := shares(p.spec); got != tc.want {
				t.Errorf("shares %q, want %q", got, tc.want)
			}
			if p.scheduled.Reason != tc.reason || (tc.message != "" && p.scheduled.Message != tc.message) {
				t.Errorf("%s: %s\nwant\n%s: %s", p.scheduled.Reason, p.scheduled.Message, tc.reason, tc.message)
			}
			if p.spec == nil {
				return
			}
			if divides := p.spec.Division != nil; divides == tc.whole || divides && p.spec.Division.Path != "/spec/size" {
				t.Errorf("the division is %+v", p.spec.Division)
			}
			if f.binding == nil || f.holdBack {
				return
			}
			again := bound()
			again.Spec = *p.spec
			f.binding = again
			if diff := cmp.Diff(p.spec, decide(f).spec); diff != "" {
				t.Errorf("a second decision differs: %s", diff)
			}
		})
	}
}

func TestTheCompletionsOfAJobStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	p := policy("web", func(p *hubv1.Placement) {
		p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "batch", Kind: "Job"}}
		p.Spec.Replicas.Type = hubv1.ReplicasDivide
	})
	before := divided(share("eu", 6), share("sg", 4))
	before.Spec.Division.Path = "/spec/completions"
	before.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Name: object.Name, UID: "a"}
	tests := map[string]struct {
		placement *hubv1.Placement
		uid       string
		want      string
	}{
		"a cluster that is new gets nothing of it":                 {p, "a", "eu=6 sg=4"},
		"what is withdrawn is done by a cluster that is new to it": {func() *hubv1.Placement { q := p.DeepCopy(); q.Spec.Clusters.ExcludedNames = []string{"sg"}; return q }(), "a", "eu=6 -sg us=4"},
		"another Job of the name is divided anew":                  {p, "b", "eu=4 sg=3 us=3"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := given{binding: before, uid: "a", placements: only(tc.placement), clusters: three()}.facts()
			f.id.Group, f.id.Kind = "batch", "Job"
			f.template.SetAPIVersion("batch/v1")
			f.template.SetKind("Job")
			f.template.SetUID(before.Spec.ObjectRef.UID)
			f.template.Object["spec"] = map[string]any{"completions": int64(10), "parallelism": int64(2)}
			if tc.uid != "a" {
				f.template.SetUID("b")
			}
			if got := shares(decide(f).spec); got != tc.want {
				t.Errorf("shares %q, want %q", got, tc.want)
			}
		})
	}
}

func TestANodeThatComesAndGoesMovesNothing(t *testing.T) {
	t.Parallel()
	var c capacities
	at := func(after time.Duration, n int64) (believed int64, wait time.Duration) {
		m := cluster("eu", cpus(n))
		m.UID = "eu"
		list, known, wait := c.of(m, now.Add(after))
		if !known {
			t.Fatal("it is not known")
		}
		return list.Cpu().Value(), wait
	}
	steps := []struct {
		after    time.Duration
		says     int64
		believed int64
		wait     time.Duration
		why      string
	}{
		{0, 30, 30, 5 * time.Minute, "the first is taken for the time being"},
		{time.Minute, 40, 40, 5 * time.Minute, "as is the next one, which begins anew"},
		{6 * time.Minute, 40, 40, 0, "then it is settled"},
		{7 * time.Minute, 30, 40, 5 * time.Minute, "a node goes"},
		{9 * time.Minute, 40, 40, 0, "and comes back"},
		{10 * time.Minute, 30, 40, 5 * time.Minute, "and goes again, which begins anew"},
		{14 * time.Minute, 30, 40, time.Minute, "for long"},
		{15 * time.Minute, 30, 30, 0, "and is believed to be gone"},
		{16 * time.Minute, 31, 30, 0, "a little more is nothing"},
		{17 * time.Minute, 60, 30, 5 * time.Minute, "a cluster that grows"},
		{18 * time.Minute, 90, 30, 4 * time.Minute, "and goes on to"},
		{22 * time.Minute, 120, 120, 0, "is believed what it says in the end"},
	}
	for _, s := range steps {
		if believed, wait := at(s.after, s.says); believed != s.believed || wait != s.wait {
			t.Errorf("%s: %d is believed, wait %s; want %d, %s", s.why, believed, wait, s.believed, s.wait)
		}
	}
}

func TestSharesStayWhileCapacityIsUnsettled(t *testing.T) {
	t.Parallel()
	in := given{binding: divided(share("eu", 6), share("sg", 6)), uid: "a", placements: only(policy("web", dividing(hubv1.DivideByCapacity)))}
	said := func(eu, sg int64) []*hubv1.MemberCluster {
		out := []*hubv1.MemberCluster{cluster("eu", cpus(eu)), cluster("sg", cpus(sg))}
		for _, c := range out {
			c.UID = types.UID("uid-of-" + c.Name)
		}
		return out
	}
	var c capacities
	at := func(after time.Duration, size, asks, eu, sg int64) (string, time.Duration) {
		in.clusters = said(eu, sg)
		in.placements[0].PlacementSpec().Replicas.Requests[corev1.ResourceCPU] = *resource.NewQuantity(asks, resource.DecimalSI)
		f := in.facts()
		f.capacities, f.now = &c, now.Add(after)
		f.template.Object["spec"] = map[string]any{"size": size}
		p := decide(f)
		in.binding = divided(p.spec.Clusters...)
		in.binding.Spec.Division = p.spec.Division
		return shares(p.spec), p.again
	}
	steps := []struct {
		after              time.Duration
		size, asks, eu, sg int64
		want               string
		again              time.Duration
		why                string
	}{
		{0, 12, 1, 30, 10, "eu=6 sg=6", 5 * time.Minute, "after a start the shares stay"},
		{time.Minute, 13, 1, 30, 10, "eu=9 sg=4", 4 * time.Minute, "unless the number changes"},
		{2 * time.Minute, 13, 3, 30, 10, "eu=10 sg=3", 3 * time.Minute, "or what one replica asks for"},
		{3 * time.Minute, 12, 1, 30, 10, "eu=9 sg=3", 2 * time.Minute, "and again"},
		{5 * time.Minute, 12, 1, 30, 10, "eu=9 sg=3", 0, "settled"},
		{6 * time.Minute, 12, 1, 10, 10, "eu=9 sg=3", 5 * time.Minute, "nodes go"},
		{8 * time.Minute, 12, 1, 30, 10, "eu=9 sg=3", 0, "and are back"},
		{9 * time.Minute, 12, 1, 10, 10, "eu=9 sg=3", 5 * time.Minute, "and go again"},
		{14 * time.Minute, 12, 1, 10, 10, "eu=6 sg=6", 0, "for good"},
	}
	at(0, 12, 1, 30, 10)
	in.binding.Spec.Clusters, c = divided(share("eu", 6), share("sg", 6)).Spec.Clusters, capacities{} // the hub is started anew
	for _, s := range steps {
		if got, again := at(s.after, s.size, s.asks, s.eu, s.sg); got != s.want || again != s.again {
			t.Errorf("%s: %q, again in %s; want %q, %s", s.why, got, again, s.want, s.again)
		}
	}
}

func TestAFirstDivisionWaitsForAnswers(t *testing.T) {
	t.Parallel()
	silent := func(c *hubv1.MemberCluster) {
		c.Status.APIResources = []hubv1.ServedKind{{Group: "other.example.com", Kind: "Other"}}
	}
	var u unanswered
	in := given{uid: "a", placements: only(policy("web", dividing(hubv1.DivideByWeight)))}
	at := func(after time.Duration, clusters ...*hubv1.MemberCluster) (string, time.Duration) {
		in.clusters = clusters
		f := in.facts()
		f.unanswered, f.now = &u, now.Add(after)
		f.template.Object["spec"] = map[string]any{"size": int64(10)}
		p := decide(f)
		return shares(p.spec), p.again
	}
	steps := []struct {
		after    time.Duration
		clusters []*hubv1.MemberCluster
		want     string
		again    time.Duration
		why      string
	}{
		{0, []*hubv1.MemberCluster{cluster("eu"), cluster("sg", silent)}, "no binding", askAgain, "one has not answered"},
		{time.Second, []*hubv1.MemberCluster{cluster("eu"), cluster("sg")}, "eu=5 sg=5", 0, "all have"},
		{2 * time.Second, []*hubv1.MemberCluster{cluster("eu"), cluster("sg", silent)}, "no binding", askAgain, "another object begins anew"},
		{11800 * time.Millisecond, []*hubv1.MemberCluster{cluster("eu"), cluster("sg", silent)}, "no binding", 200 * time.Millisecond, "for a while"},
		{12 * time.Second, []*hubv1.MemberCluster{cluster("eu"), cluster("sg", silent)}, "eu=10", 0, "and no longer"},
	}
	for _, s := range steps {
		if got, again := at(s.after, s.clusters...); got != s.want || again != s.again {
			t.Errorf("%s: %q, again in %s; want %q, %s", s.why, got, again, s.want, s.again)
		}
	}
	in.binding = divided(share("eu", 10))
	if got, again := at(time.Minute, cluster("eu"), cluster("sg", silent)); got != "eu=10" || again != 0 {
		t.Errorf("an object that is divided: %q, again in %s", got, again)
	}
}

func TestAFirstChoiceWaitsForAnswers(t *testing.T) {
	t.Parallel()
	silent := func(c *hubv1.MemberCluster) {
		c.Status.APIResources = []hubv1.ServedKind{{Group: "other.example.com", Kind: "Other"}}
	}
	one := func(p *hubv1.Placement) { p.Spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)} }
	var u unanswered
	at := func(after time.Duration, held []hubv1.BindingTarget, clusters ...*hubv1.MemberCluster) (string, time.Duration) {
		in := given{uid: "a", placements: only(policy("web", one)), clusters: clusters}
		if held != nil {
			in.binding = bound(held...)
		}
		f := in.facts()
		f.unanswered, f.now = &u, now.Add(after)
		p := decide(f)
		return shares(p.spec), p.again
	}
	if got, again := at(0, nil, cluster("eu", silent), cluster("sg")); got != "no binding" || again != askAgain {
		t.Errorf("one has not answered: %q, again in %s", got, again)
	}
	if got, again := at(time.Second, nil, cluster("eu"), cluster("sg")); got != "eu" || again != 0 {
		t.Errorf("all have: %q, again in %s", got, again)
	}
	if got, again := at(time.Second, []hubv1.BindingTarget{present("sg")}, cluster("eu", silent), cluster("sg")); got != "sg" || again != 0 {
		t.Errorf("an object that has its cluster: %q, again in %s", got, again)
	}
}
