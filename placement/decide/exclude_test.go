package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestDecideOnExcludedClusters(t *testing.T) {
	t.Parallel()
	const del, orphan = hubv1.RemovalDelete, hubv1.RemovalOrphan
	odd := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Odd"}}}
	everywhere := only(policy("web"))
	tests := map[string]struct {
		in        given
		overrides []hubv1.OverridePolicyObject
		want      []hubv1.BindingTarget // nil: there is no binding
		reason    string
		message   string
		takes     bool
	}{
		"an excluded cluster does not get the object": {
			in: given{uid: "a", placements: everywhere, clusters: three()}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{present("sg"), present("us")}, reason: hubv1.ReasonScheduled, message: "2 of 3 clusters: 1 excluded by override policies",
		},
		"a cluster that is excluded turns Absent": {
			in: given{uid: "a", binding: bound(present("eu"), present("sg")), placements: only(policy("web", named("eu", "sg"))), clusters: three()}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonExcludedByOverride, del), present("sg")}, reason: hubv1.ReasonScheduled,
			message: "1 of 3 clusters: 1 excluded by override policies, 1 not selected", takes: true,
		},
		"what becomes of its copy is what the placement says of unselected clusters": {
			in: given{uid: "a", binding: bound(present("eu"), present("sg")), clusters: three(), placements: only(policy("web", named("eu", "sg"), func(p *hubv1.Placement) {
				p.Spec.Deletion.WhenUnselected = orphan
			}))}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonExcludedByOverride, orphan), present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"nothing is taken while it is held back": {
			in: given{uid: "a", binding: bound(present("eu")), placements: only(policy("web", named("eu"))), clusters: three(), holdBack: true}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"a cluster that is no longer excluded gets the object again": {
			in:   given{uid: "a", binding: bound(absent("eu", hubv1.ReasonExcludedByOverride, del)), placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"another cluster takes its place in a spread": {
			in:        given{uid: "a", binding: bound(present("eu")), clusters: three(), placements: only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: new(int32(1))})))},
			overrides: these(excluding(naming("eu"))),
			want:      []hubv1.BindingTarget{absent("eu", hubv1.ReasonExcludedByOverride, del), present("us")}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"what a cluster is takes nothing away": {
			in: given{uid: "a", binding: bound(present("eu")), placements: everywhere, clusters: three()}, overrides: these(excluding(&hubv1.RuleClusters{Expression: "version < 'v1.36'"})),
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled, message: "1 of 3 clusters: 2 excluded by override policies",
		},
		"a policy for other objects excludes nothing": {
			in: given{uid: "a", placements: everywhere, clusters: three()}, overrides: these(excluding(naming("eu"), func(p *hubv1.OverridePolicy) {
				p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
			})),
			want: []hubv1.BindingTarget{present("eu"), present("sg"), present("us")}, reason: hubv1.ReasonScheduled,
		},
		"a policy whose objects cannot be read leaves the decision as it is": {
			in:        given{uid: "a", binding: bound(present("eu"), present("sg")), placements: only(policy("web", named("us"))), clusters: three()},
			overrides: these(excluding(naming("us"), func(p *hubv1.OverridePolicy) { p.Spec.ResourceSelectors[0].LabelSelector = odd })),
			want:      []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonOverrideInvalid,
			message: `every cluster keeps its copy: OverridePolicy shop/x: resourceSelectors[0].labelSelector: "Odd" is not a valid label selector operator: correct the selector`,
		},
		"a rule whose clusters cannot be read leaves the decision as it is": {
			in: given{uid: "a", binding: bound(present("eu"), present("sg")), placements: everywhere, clusters: three()}, overrides: these(excluding(&hubv1.RuleClusters{LabelSelector: odd})),
			want: []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonOverrideInvalid,
			message: `every cluster keeps its copy: OverridePolicy shop/x, rule "r": clusters.labelSelector: "Odd" is not a valid label selector operator: correct the selector`,
		},
		"an object that is nowhere yet waits for a policy that can be read": {
			in: given{uid: "a", placements: everywhere, clusters: three()}, overrides: these(excluding(&hubv1.RuleClusters{LabelSelector: odd})),
			reason: hubv1.ReasonOverrideInvalid,
		},
		"a placement that suspends scheduling keeps excluded clusters": {
			in:        given{uid: "a", binding: bound(present("eu")), clusters: three(), placements: only(policy("web", func(p *hubv1.Placement) { p.Spec.Suspend.Scheduling = true }))},
			overrides: these(excluding(naming("eu"))),
			want:      []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonSuspended,
		},
		"an excluded cluster keeps what it has when its placement is gone": {
			in: given{uid: "a", binding: bound(present("eu")), clusters: three()}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonPlacementGone,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tc.in.input()
			f.Facts.Overrides = tc.overrides
			p := Decide(f)
			var got []hubv1.BindingTarget
			if p.Spec != nil {
				got = p.Spec.Clusters
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if p.Status.Scheduled.Reason != tc.reason || tc.message != "" && p.Status.Scheduled.Message != tc.message || p.Withdraws != tc.takes {
				t.Errorf("%s: %s, takes %t; want %s: %s, takes %t", p.Status.Scheduled.Reason, p.Status.Scheduled.Message, p.Withdraws, tc.reason, tc.message, tc.takes)
			}
			if tc.in.binding == nil || tc.in.holdBack {
				return
			}
			if diff := cmp.Diff(*p.Spec, Replay(f).Spec); diff != "" {
				t.Errorf("replayed (-decided +replayed):\n%s", diff)
			}
		})
	}
}

func TestTheShareOfAnExcludedClusterGoesToTheOthers(t *testing.T) {
	t.Parallel()
	f := given{
		uid: "a", binding: divided(share("eu", 4), share("sg", 3), share("us", 3)), clusters: three(), placements: only(policy("web", dividing(hubv1.DivideByWeight))),
	}.input()
	f.Object.Template.Object["spec"] = map[string]any{"size": int64(10)}
	f.Facts.Overrides = these(excluding(naming("eu")))
	if got, want := shares(Decide(f).Spec), "-eu sg=5 us=5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFleetIsSettledWithoutExcludedClusters(t *testing.T) {
	t.Parallel()
	fleet := Fleet{
		Clusters: three(), Placements: only(policy("web")), Overrides: these(excluding(naming("eu"))), Now: now,
		Objects: []FleetObject{{Object: template("a"), Binding: bound(present("eu"), present("sg"), present("us"))}},
	}
	s, err := fleet.Settle(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	want := []hubv1.BindingTarget{present("sg"), present("us")}
	if diff := cmp.Diff(want, s.Outcomes[0].Binding.BindingSpec().Clusters); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
