package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestDecideOnShares(t *testing.T) {
	t.Parallel()
	const weight, capacity, packed = hubv1.DivideByWeight, hubv1.DivideByCapacity, hubv1.DivideByPack
	sized := func(p ...*hubv1.MemberCluster) []*hubv1.MemberCluster { return p }
	tests := map[string]struct {
		in      given
		size    any
		want    string
		whole   bool // the replicas are not divided
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
			message: "Placement/web is invalid, so every cluster keeps its copy: dividing /spec/size of the Widget: the field is missing: set it on the hub object, or correct spec.replicas.path",
		},
		"a kind that needs a path is not guessed at": {
			in: given{binding: bound(present("eu")), placements: only(policy("web", func(p *hubv1.Placement) { p.Spec.Replicas.Type = hubv1.ReplicasDivide })), clusters: three()}, size: int64(3),
			want: "eu", whole: true, reason: hubv1.ReasonDivisionRefused,
			message: "Placement/web is invalid, so every cluster keeps its copy: dividing the replicas of a Widget.example.com: the field with the replicas is not known: set spec.replicas.path; " +
				"the scale subresource of its definition suggests /spec/shards, if that number can be divided",
		},
		"capacity needs to know what a replica asks for": {
			in: given{placements: only(policy("web", dividing(capacity), func(p *hubv1.Placement) { p.Spec.Replicas.Requests = nil })), clusters: three()}, size: int64(3),
			want: "no binding", reason: hubv1.ReasonDivisionRefused,
			message: "Placement/web is invalid, so every cluster keeps its copy: finding the requests of one replica of the Widget: the object has no pod template at /spec/template: " +
				"set spec.replicas.requests to the requests of one replica",
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
			f := tc.in.input()
			f.Object.ScalePath = ".spec.shards"
			f.Object.Template.Object["spec"] = map[string]any{"size": tc.size}
			p := Decide(f)
			if got := shares(p.Spec); got != tc.want {
				t.Errorf("shares %q, want %q", got, tc.want)
			}
			if p.Status.Scheduled.Reason != tc.reason || (tc.message != "" && p.Status.Scheduled.Message != tc.message) {
				t.Errorf("%s: %s\nwant\n%s: %s", p.Status.Scheduled.Reason, p.Status.Scheduled.Message, tc.reason, tc.message)
			}
			if p.Spec == nil {
				return
			}
			if divides := p.Spec.Division != nil; divides == tc.whole || divides && p.Spec.Division.Path != "/spec/size" {
				t.Errorf("the division is %+v", p.Spec.Division)
			}
			if f.Binding == nil || f.Object.Unconfirmed {
				return
			}
			again := bound()
			again.Spec = *p.Spec
			f.Binding = again
			if diff := cmp.Diff(p.Spec, Decide(f).Spec); diff != "" {
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
		"another Job of the name is divided anew":                  {p, "b", "-eu=4 -sg=3 us=3"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := given{binding: before, uid: "a", placements: only(tc.placement), clusters: three()}.input()
			f.Object.ID.Group, f.Object.ID.Kind = "batch", "Job"
			f.Object.Template.SetAPIVersion("batch/v1")
			f.Object.Template.SetKind("Job")
			f.Object.Template.SetUID(before.Spec.ObjectRef.UID)
			f.Object.Template.Object["spec"] = map[string]any{"completions": int64(10), "parallelism": int64(2)}
			if tc.uid != "a" {
				f.Object.Template.SetUID("b")
			}
			if got := shares(Decide(f).Spec); got != tc.want {
				t.Errorf("shares %q, want %q", got, tc.want)
			}
		})
	}
}
